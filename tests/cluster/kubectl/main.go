// Package kubectl is kubectl's own main as a function.
package kubectl

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Main doesn't return. Errors go through CheckErr, which prints the texts that
// users (and podbench) know.
func Main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
