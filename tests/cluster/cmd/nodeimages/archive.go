package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// archived is one image of an archive. The digest of its configuration names
// its content, layers included, so it can be compared without reading them.
type archived struct {
	name   string
	config digest.Digest
}

// contents lists the images of a docker archive (docker save, or buildah and
// skopeo with docker-archive:). It seeks over the layers: milliseconds, however
// large the file is.
func contents(path string) ([]archived, error) {
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	raw, err := member(path, "manifest.json")
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has no manifest.json: save it as a docker archive (docker-archive:FILE:NAME:TAG)", path)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, fmt.Errorf("%s: manifest.json: %w", path, err)
	}
	var images []archived
	for _, m := range manifest {
		config, err := member(path, m.Config)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, m.Config, err)
		}
		for _, tag := range m.RepoTags {
			name, err := reference.ParseDockerRef(tag)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, tag, err)
			}
			images = append(images, archived{name.String(), digest.FromBytes(config)})
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("%s names no image: save it with a name (docker-archive:FILE:NAME:TAG)", path)
	}
	return images, nil
}

// member returns one small file of an archive, io.EOF where there is none.
func member(path, name string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err != nil {
			return nil, err
		}
		if header.Name == name {
			return io.ReadAll(io.LimitReader(archive, 4<<20))
		}
	}
}
