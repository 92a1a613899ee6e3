// kubectl alone: another release of it than the cluster's (variants/).
package main

import "podbench.test/cluster/kubectl"

func main() { kubectl.Main() }
