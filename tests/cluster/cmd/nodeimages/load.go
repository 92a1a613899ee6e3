package main

import (
	"context"
	"fmt"
	"os"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"golang.org/x/sync/errgroup"
)

const snapshotter = "overlayfs"

// load brings every image of every archive into every node: imported and
// unpacked in the first one, shared from there with the others. What a node
// has already is left as it is.
func load(ctx context.Context, nodes []node, archives []string) error {
	for _, archive := range archives {
		images, err := contents(archive)
		if err != nil {
			return err
		}
		for _, image := range images {
			if err := loadOne(ctx, nodes, archive, image); err != nil {
				return fmt.Errorf("%s: %w", image.name, err)
			}
		}
	}
	return nil
}

func loadOne(ctx context.Context, nodes []node, archive string, image archived) error {
	start := time.Now()
	first, lacking := nodes[0], []node{}
	for _, other := range nodes[1:] {
		if !other.holds(ctx, image) {
			lacking = append(lacking, other)
		}
	}
	imported := !first.holds(ctx, image)
	if imported {
		if err := first.importArchive(ctx, archive); err != nil {
			return err
		}
		if !first.holds(ctx, image) {
			return fmt.Errorf("%s was imported and is still not there", archive)
		}
	}
	inFirst := time.Now()
	var sharing errgroup.Group
	for _, other := range lacking {
		sharing.Go(func() error { return share(ctx, first, other, image.name) })
	}
	if err := sharing.Wait(); err != nil {
		return err
	}
	if imported || len(lacking) > 0 {
		fmt.Printf("%s loaded: imported in %.1f s, shared with the other nodes in %.1f s\n",
			image.name, inFirst.Sub(start).Seconds(), time.Since(inFirst).Seconds())
	} else {
		fmt.Printf("%s is there already\n", image.name)
	}
	return nil
}

// holds says whether the node has this very content under this name, unpacked.
func (n node) holds(ctx context.Context, want archived) bool {
	image, err := n.client.GetImage(ctx, want.name)
	if err != nil {
		return false
	}
	config, err := image.Config(ctx)
	if err != nil || config.Digest != want.config {
		return false
	}
	unpacked, err := image.IsUnpacked(ctx, snapshotter)
	return err == nil && unpacked
}

func (n node) importArchive(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	images, err := n.client.Import(ctx, file)
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := containerd.NewImage(n.client, image).Unpack(ctx, snapshotter); err != nil {
			return err
		}
	}
	return nil
}
