package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// share gives one node's image to another by hard links. Blobs and unpacked
// layers are only ever read (a container writes to a layer of its own), so two
// nodes of one machine can hold the same inodes. Both nodes stay up.
func share(ctx context.Context, from, to node, name string) error {
	image, err := from.client.GetImage(ctx, name)
	if err != nil {
		return err
	}
	// Until the image's record refers to them, a lease keeps the new blobs and
	// snapshots from being collected. It is known to the receiving node alone.
	leased, release, err := to.client.WithLease(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = release(leased) }()

	collect := images.HandlerFunc(func(ctx context.Context, blob ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if err := shareBlob(ctx, leased, from, to, blob); err != nil {
			return nil, fmt.Errorf("blob %s: %w", blob.Digest, err)
		}
		return images.Children(ctx, from.client.ContentStore(), blob)
	})
	if err := images.Walk(ctx, collect, image.Target()); err != nil {
		return err
	}
	layers, err := image.RootFS(ctx)
	if err != nil {
		return err
	}
	for i := range layers {
		if err := shareLayer(ctx, leased, from, to, layers[:i+1]); err != nil {
			return fmt.Errorf("layer %s: %w", layers[i], err)
		}
	}
	return record(leased, to.client, images.Image{Name: name, Target: image.Target(), Labels: image.Labels()})
}

func record(ctx context.Context, client *containerd.Client, image images.Image) error {
	_, err := client.ImageService().Create(ctx, image)
	if errdefs.IsAlreadyExists(err) {
		_, err = client.ImageService().Update(ctx, image)
	}
	return err
}

// shareBlob links the file, then has the node take it over: a writer that is
// opened for a digest which is in place starts at its end, so that nothing is
// left to copy. Where the link was no use, the copy moves the bytes.
func shareBlob(ctx, leased context.Context, from, to node, blob ocispec.Descriptor) error {
	info, err := from.client.ContentStore().Info(ctx, blob.Digest)
	if err != nil {
		return err
	}
	source, target := from.blobPath(blob.Digest), to.blobPath(blob.Digest)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.Link(source, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	store := to.client.ContentStore()
	writer, err := content.OpenWriter(leased, store, content.WithRef("share-"+blob.Digest.String()), content.WithDescriptor(blob))
	if errdefs.IsAlreadyExists(err) {
		info.Size = blob.Size
		_, err = store.Update(leased, info, "labels")
		return err
	}
	if err != nil {
		return err
	}
	defer writer.Close()
	reader, err := from.client.ContentStore().ReaderAt(ctx, blob)
	if err != nil {
		return err
	}
	defer reader.Close()
	return content.Copy(leased, writer, io.NewSectionReader(reader, 0, blob.Size), blob.Size, blob.Digest, content.WithLabels(info.Labels))
}

// shareLayer makes the snapshot of the topmost of these layers.
func shareLayer(ctx, leased context.Context, from, to node, layers []digest.Digest) error {
	chain := identity.ChainID(layers).String()
	parent := ""
	if below := layers[:len(layers)-1]; len(below) > 0 {
		parent = identity.ChainID(below).String()
	}
	theirs, ours := from.client.SnapshotService(snapshotter), to.client.SnapshotService(snapshotter)
	if _, err := ours.Stat(leased, chain); err == nil {
		return nil
	}
	info, err := theirs.Stat(ctx, chain)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("share-%d-%s", os.Getpid(), chain)
	view, err := theirs.View(ctx, key, chain)
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Remove(ctx, key) }()
	active, err := ours.Prepare(leased, key, parent)
	if err != nil {
		return err
	}
	if err := linkTree(from.layerPath(view, "lowerdir="), to.layerPath(active, "upperdir=")); err != nil {
		_ = ours.Remove(leased, key)
		return err
	}
	err = ours.Commit(leased, chain, key, snapshots.WithLabels(info.Labels))
	if errdefs.IsAlreadyExists(err) { // somebody else's load was quicker
		return ours.Remove(leased, key)
	}
	return err
}

// linkTree leaves it to cp: modes, owners, times and xattrs (opaque folders,
// file capabilities) of folders are copied, all else is linked.
func linkTree(source, target string) error {
	if out, err := exec.Command("cp", "-al", source+"/.", target+"/").CombinedOutput(); err != nil {
		return fmt.Errorf("cp -al %s: %w: %s", source, err, out)
	}
	return nil
}

func (n node) blobPath(blob digest.Digest) string {
	return filepath.Join(n.store, "io.containerd.content.v1.content/blobs", blob.Algorithm().String(), blob.Encoded())
}

// layerPath is the folder of the topmost layer among mounts: an overlay names
// it in an option, a single layer is a bind mount.
func (n node) layerPath(mounts []mount.Mount, option string) string {
	inNode := mounts[0].Source
	for _, o := range mounts[0].Options {
		if dirs, ok := strings.CutPrefix(o, option); ok {
			inNode, _, _ = strings.Cut(dirs, ":")
		}
	}
	return filepath.Join(n.store, strings.TrimPrefix(inNode, "/var/lib/containerd/"))
}
