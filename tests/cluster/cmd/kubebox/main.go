// kubebox is every long-running program of the test cluster in one binary
// (they share most of their code, so nine separate ones would be six times the
// size and link time). argv[0] or the first argument says which one to be.
//
// Not in here: the runtime shim, which starts once per pod (cmd/shim), and the
// add-ons that aren't part of Kubernetes (cmd/addons).
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	containerd "github.com/containerd/containerd/v2/cmd/containerd/command"
	ctr "github.com/containerd/containerd/v2/cmd/ctr/app"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"podbench.test/cluster/kubectl"

	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"containerd":              func() { exitOn(containerd.App().Run(os.Args)) },
	"ctr":                     func() { exitOn(ctr.New().Run(os.Args)) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllers.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 kubectl.Main,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, ok := programs[name]; !ok && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	program, ok := programs[name]
	if !ok {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintln(os.Stderr, "kubebox: be one of", strings.Join(names, ", "))
		os.Exit(2)
	}
	program()
}

func run(command *cobra.Command) { os.Exit(cli.Run(command)) }

func exitOn(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
}
