package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// write makes the docker archive: one configuration, the layers, and the
// manifest that names them. Times and owners are zero.
func (i *image) write(path string) error {
	type object map[string]any
	var diffIDs, layers []string
	for n, l := range i.layers {
		diffIDs = append(diffIDs, fmt.Sprintf("sha256:%x", sha256.Sum256(l)))
		layers = append(layers, fmt.Sprintf("layer%d.tar", n))
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": object{
			"Entrypoint": i.entrypoint,
			"User":       i.user,
			"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": object{"type": "layers", "diff_ids": diffIDs},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]object{{"Config": configName, "RepoTags": []string{i.name}, "Layers": layers}})
	if err != nil {
		return err
	}

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	put := func(name string, data []byte) {
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))})
		}
		if err == nil {
			_, err = archive.Write(data)
		}
	}
	// The small files first: whoever only wants to know what is inside need
	// not skip the layers.
	put("manifest.json", manifest)
	put(configName, config)
	for n, l := range i.layers {
		put(layers[n], l)
	}
	if err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return file.Close()
}
