package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// headers parses a recipe whose only program is `app`, and lists its last layer.
func headers(t *testing.T, recipe string) []tar.Header {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "app"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := parse(recipe, bin)
	if err != nil {
		t.Fatal(err)
	}
	var found []tar.Header
	for layer := tar.NewReader(bytes.NewReader(image.layers[len(image.layers)-1])); ; {
		h, err := layer.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, *h)
	}
}

func TestAFileCapabilityIsTheXattrThatSetcapWrites(t *testing.T) {
	h := headers(t, "file /app app 755 1:2 cap_net_bind_service")[0]
	// `setcap cap_net_bind_service+ep app; getfattr -n security.capability -e hex app`
	want := "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	if got := h.PAXRecords["SCHILY.xattr.security.capability"]; got != want {
		t.Errorf("got % x, want % x", got, want)
	}
	if h.Uid != 1 || h.Gid != 2 || h.Mode != 0o755 {
		t.Errorf("owner %d:%d mode %o", h.Uid, h.Gid, h.Mode)
	}
}

func TestALinkKeepsItsTargetAsItStands(t *testing.T) {
	h := headers(t, "layer\nlink /data /")[0]
	if h.Typeflag != tar.TypeSymlink || h.Name != "data" || h.Linkname != "/" {
		t.Errorf("%+v", h)
	}
}

func TestALineThatIsNotUnderstoodIsAnErrorThatNamesIt(t *testing.T) {
	for _, line := range []string{"copy a b", "dir /tmp", "dir /tmp rwx", "file /app app 755 cap_everything", "user"} {
		_, err := parse("# a comment\n"+line, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestEveryRecipeNamesAnImageAndWhatItRuns(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"addons", "pause", "zooapp", "debian-rootfs.tar"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := recipes.ReadDir("recipes")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := recipes.ReadFile("recipes/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		image, err := parse(string(text), bin)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		if want := "podbench.test/" + strings.TrimSuffix(f.Name(), ".image") + ":1"; image.name != want || len(image.entrypoint) == 0 {
			t.Errorf("%s: name %q, entrypoint %q", f.Name(), image.name, image.entrypoint)
		}
	}
}
