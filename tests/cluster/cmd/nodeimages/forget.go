package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// kept are the folders of a store that hold images; everything else is about
// the containers of the last run.
var kept = map[string]bool{
	"io.containerd.content.v1.content":       true,
	"io.containerd.metadata.v1.bolt":         true,
	"io.containerd.snapshotter.v1.overlayfs": true,
}

// forget makes a stopped node's store forget its containers and keep its
// images, so that a new cluster starts with an empty node and imports nothing.
// The snapshots of forgotten containers have no owner any more: containerd's
// first garbage collection takes them away.
func forget(store string) error {
	entries, err := os.ReadDir(store)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !kept[e.Name()] {
			if err := os.RemoveAll(filepath.Join(store, e.Name())); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(store, "io.containerd.metadata.v1.bolt/meta.db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := bbolt.Open(path, 0o644, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, NoSync: true})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close()
	return db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("v1"))
		if bucket != nil {
			bucket = bucket.Bucket([]byte("k8s.io"))
		}
		if bucket == nil {
			return nil
		}
		for _, object := range []string{"containers", "sandboxes", "leases"} {
			if err := bucket.DeleteBucket([]byte(object)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
				return err
			}
		}
		return nil
	})
}
