package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// image is what a recipe says.
type image struct {
	name       string
	user       string
	entrypoint []string
	layers     [][]byte // uncompressed tar files, lowest first
}

// parse reads a recipe, a word list a line, # for comments:
//
//	image NAME:TAG
//	user UID[:GID]
//	entrypoint WORD...
//	layer                                   what follows is a new layer
//	tree FILE.tar                           a layer as it is
//	dir  PATH MODE [UID:GID]
//	file PATH PROGRAM MODE [UID:GID] [CAP]  CAP: a file capability, +ep
//	text PATH MODE WORDS...
//	link PATH TARGET                        symbolic; TARGET as it stands
func parse(text, bin string) (*image, error) {
	i := &image{}
	l := newLayer()
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var err error
		switch verb, args := words[0], words[1:]; {
		case verb == "image" && len(args) == 1:
			i.name = args[0]
		case verb == "user" && len(args) == 1:
			i.user = args[0]
		case verb == "entrypoint":
			i.entrypoint = args
		case verb == "layer":
			i.layers = append(i.layers, l.bytes())
			l = newLayer()
		case verb == "tree" && len(args) == 1:
			var tree []byte
			tree, err = os.ReadFile(filepath.Join(bin, args[0]))
			i.layers = append(i.layers, tree)
		case verb == "dir" && len(args) >= 2:
			err = l.add(tar.Header{Typeflag: tar.TypeDir, Name: args[0]}, nil, args[1], args[2:])
		case verb == "file" && len(args) >= 3:
			var data []byte
			if data, err = os.ReadFile(filepath.Join(bin, args[1])); err == nil {
				err = l.add(tar.Header{Typeflag: tar.TypeReg, Name: args[0]}, data, args[2], args[3:])
			}
		case verb == "text" && len(args) >= 2:
			data := []byte(strings.Join(args[2:], " ") + "\n")
			err = l.add(tar.Header{Typeflag: tar.TypeReg, Name: args[0]}, data, args[1], nil)
		case verb == "link" && len(args) == 2:
			err = l.add(tar.Header{Typeflag: tar.TypeSymlink, Name: args[0], Linkname: args[1]}, nil, "777", nil)
		default:
			err = fmt.Errorf("not understood: %s", line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	i.layers = append(i.layers, l.bytes())
	return i, nil
}

// layer is a tar file under way.
type layer struct {
	buffer *bytes.Buffer
	tar    *tar.Writer
}

func newLayer() layer {
	buffer := &bytes.Buffer{}
	return layer{buffer, tar.NewWriter(buffer)}
}

func (l layer) bytes() []byte {
	_ = l.tar.Close() // a write to memory
	return l.buffer.Bytes()
}

// add appends one entry; extra holds an owner UID:GID and a capability, each optional.
func (l layer) add(h tar.Header, data []byte, mode string, extra []string) error {
	bits, err := strconv.ParseInt(mode, 8, 64)
	if err != nil {
		return fmt.Errorf("mode %q: %w", mode, err)
	}
	h.Name = strings.TrimPrefix(h.Name, "/")
	h.Mode, h.Size = bits, int64(len(data))
	for _, word := range extra {
		if uid, gid, ok := strings.Cut(word, ":"); ok {
			if h.Uid, err = strconv.Atoi(uid); err == nil {
				h.Gid, err = strconv.Atoi(gid)
			}
		} else {
			h.PAXRecords, err = fileCapability(word)
			h.Format = tar.FormatPAX
		}
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	if err := l.tar.WriteHeader(&h); err != nil {
		return err
	}
	_, err = l.tar.Write(data)
	return err
}
