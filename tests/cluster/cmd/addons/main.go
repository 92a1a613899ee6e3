// addons is what a cluster needs that isn't part of Kubernetes itself, in one
// binary that is also the image the add-ons' pods run: CoreDNS with the
// plug-ins of a plain cluster, metrics-server, kube-router's NetworkPolicy
// controller (netpol.go) and the way from the machine to the API server
// (apiproxy.go).
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/coremain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/logs"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

var programs = map[string]func(){
	"coredns":        coremain.Run,
	"metrics-server": runMetricsServer,
	"netpol":         runNetpol,
	"apiproxy":       runAPIProxy,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, ok := programs[name]; !ok && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	program, ok := programs[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "addons: be one of coredns, metrics-server, netpol, apiproxy")
		os.Exit(2)
	}
	program()
}

func runMetricsServer() {
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := metricsserver.NewMetricsServerCommand(genericapiserver.SetupSignalHandler()).Execute(); err != nil {
		os.Exit(1)
	}
}

// exitOn ends the program over an error; who names the add-on.
func exitOn(who string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
		os.Exit(1)
	}
}
