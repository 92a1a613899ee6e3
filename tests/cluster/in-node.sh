#!/bin/bash
# Runs a command inside node N, with the cluster's own programs in PATH:
#   in-node.sh 2 ctr -n k8s.io images ls
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
# shellcheck source=lib/nodes.sh
. "$LIB/nodes.sh"
[ $# -gt 1 ] || { echo "usage: in-node.sh N COMMAND..." >&2; exit 2; }
n=$1
shift
in_node "$n" env KUBECONFIG=/opt/cluster/pki/admin.conf "$@"
