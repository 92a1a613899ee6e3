// nodeimages owns the image stores of the nodes: it gets archives into every
// node of a running cluster (load.go, share.go) and makes a stopped node's
// store forget the containers of the last run (forget.go). With it a start
// imports nothing that the nodes already hold, and a large image is unpacked
// once, not once a node.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

const usage = `nodeimages load -node STORE=SOCKET [-node STORE=SOCKET...] ARCHIVE...
    STORE   the node's /var/lib/containerd, as this process sees it
    SOCKET  the node's containerd socket, as this process sees it
nodeimages forget STORE`

// node is one running containerd and where its files are.
type node struct {
	client *containerd.Client
	store  string
}

// nodeFlags collects -node STORE=SOCKET.
type nodeFlags []node

func (f *nodeFlags) String() string { return "" }

func (f *nodeFlags) Set(value string) error {
	store, socket, ok := strings.Cut(value, "=")
	if !ok {
		return fmt.Errorf("want STORE=SOCKET, got %q", value)
	}
	client, err := containerd.New(socket)
	if err != nil {
		return fmt.Errorf("%s: %w", socket, err)
	}
	*f = append(*f, node{client, store})
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nodeimages:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage:\n%s", usage)
	}
	switch args[0] {
	case "forget":
		return forget(args[1])
	case "load":
		flags := flag.NewFlagSet("load", flag.ExitOnError)
		var nodes nodeFlags
		flags.Var(&nodes, "node", "STORE=SOCKET, once for each node")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if len(nodes) == 0 {
			return fmt.Errorf("usage:\n%s", usage)
		}
		ctx := namespaces.WithNamespace(context.Background(), "k8s.io")
		return load(ctx, nodes, flags.Args())
	}
	return fmt.Errorf("usage:\n%s", usage)
}
