// mkimage makes the cluster's and the zoo's images from recipes/*.image, as
// docker archives, without a daemon or a registry. Same recipe and same
// programs, same bytes: nodes can tell by a digest that they have an image.
//
//	mkimage -bin DIR -out DIR
package main

import (
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed recipes/*.image
var recipes embed.FS

func main() {
	bin := flag.String("bin", "", "folder of the programs and tar files that recipes name")
	out := flag.String("out", "", "folder for NAME.tar of every recipe")
	flag.Parse()
	files, err := fs.Glob(recipes, "recipes/*.image")
	for _, file := range files {
		if err != nil {
			break
		}
		if err = makeImage(file, *bin, *out); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func makeImage(file, bin, out string) error {
	text, err := recipes.ReadFile(file)
	if err != nil {
		return err
	}
	image, err := parse(string(text), bin)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".image")
	return image.write(filepath.Join(out, name+".tar"))
}
