# Settings of one cluster, sourced by every script: where its state is, what it
# is called, and the addresses in use. Nothing here runs or writes anything.
#
#   PODBENCH_CLUSTER_DIR  the state folder; default <checkout>/.cluster. Another
#                         folder is another cluster, which may run at the same time.
#   PODBENCH_CACHE        built programs and images, shared by all checkouts
# shellcheck shell=bash disable=SC2034 # the variables are used by whoever sources this

export LC_ALL=C # numbers with a point, sorting by byte

CLUSTER_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CHECKOUT=$(cd "$CLUSTER_HOME/../.." && pwd)
LIB=$CLUSTER_HOME/lib
CACHE=${PODBENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podbench}
STATE=$(realpath -ms "${PODBENCH_CLUSTER_DIR:-$CHECKOUT/.cluster}")

# The name is the prefix of the cgroups and the kubeconfig's context. It and the
# first port to try come from the state folder's path, so that two clusters
# differ without anybody choosing.
digest=$(sha256sum <<<"$STATE")
NAME=pb-${digest:0:8}
FIRST_PORT=$((16000 + 16#${digest:8:6} % 10000)) # below the ephemeral ports
unset digest

MARK=$STATE/podbench-cluster  # this folder is ours: nothing else is ever removed
BIN=$STATE/bin                # link to the programs this cluster was started with
ADMIN=$STATE/admin.conf       # kubeconfig of the machine's side
NODES=2
VM_NODE=3                     # the one that vm/up.sh adds, on a kernel of its own

# These exist in the nodes' network namespaces alone: they clash neither with
# the machine's addresses nor with another cluster's.
NODE_NET=10.89.0              # node N is 10.89.0.N; node 1 holds the bridge
POD_NET=10.88                 # pods of node N: 10.88.N.0/24
SERVICE_NET=10.96             # 10.96.0.0/16; the DNS is 10.96.0.10

kube() { "$BIN/kubectl" --kubeconfig "$ADMIN" "$@"; }

# wait_for SECONDS COMMAND...: until it succeeds; its output is dropped.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}
