#!/bin/bash
# Adds node 3 to the running cluster, on a kernel of its own: Debian's, with Yama, AppArmor and cgroup
# v2, in a machine that QEMU emulates: up.sh ARCHIVE...
# The archives' images are in its store; a later load.sh reaches the other nodes alone. The node is tainted
# podbench.test/vm:NoSchedule. It ends with the cluster: it lives in node 1's namespaces.
#   PODBENCH_VM_YAMA=1   the machine's ptrace_scope; Debian's own default is 0
set -euo pipefail
# shellcheck source=../lib/settings.sh
. "$(dirname "$0")/../lib/settings.sh"
for part in nodes images; do
  # shellcheck source=/dev/null
  . "$LIB/$part.sh"
done
N=$VM_NODE
NODE=$STATE/node$N
HERE=$CLUSTER_HOME/vm

[ -e "$STATE/run/up" ] || { echo "the cluster isn't up: up.sh" >&2; exit 1; }
[ $# -gt 0 ] || { echo "usage: vm/up.sh ARCHIVE..." >&2; exit 2; }
exec 9>"$STATE/lock"
flock 9
BEGAN=${EPOCHREALTIME/./}
say() { printf '%6.1f s  %s\n' "$(((${EPOCHREALTIME/./} - BEGAN) / 1000))e-3" "$*"; }
ready() { kube get node "node$N" --request-timeout=5s -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' | grep -q True; }
alive() { local pid; pid=$(node_pid "$N" 2>/dev/null) && is_node_init "$pid" "$N"; }

if alive; then
  wait_for 60 ready || { echo "node$N runs and isn't Ready; down.sh and up.sh --vm-node start it anew" >&2; exit 1; }
  say "node$N is up already"
  exit
fi

QEMU=$("$CHECKOUT/tests/kernel/packages.sh")
VM=$("$HERE/build.sh")
say "disk, kernel and QEMU"

# 1. The images, as another node's store: the layers are hard links while the disk is made of them.
mkdir -p "$NODE" "$STATE/log/node$N"
STORE=$NODE/images-$(realpath "$@" | sha256sum | cut -c-16).disk
if [ ! -e "$STORE" ]; then
  rm -rf "$NODE"/{*.disk,containerd,run}
  mkdir "$NODE"/{containerd,run}
  cat >"$NODE/containerd.toml" <<K
version = 3
root = "/var/lib/containerd"
state = "$NODE/run"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"]
[grpc]
address = "$NODE/run/containerd.sock"
K
  # With the store where every node has it, which nodeimages counts on, and no mount that others see.
  # shellcheck disable=SC2016
  unshare --mount sh -ec 'cd "$1"; mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/containerd; mount --bind . /var/lib/containerd; shift; exec "$@"' \
    sh "$NODE/containerd" "$BIN/containerd" -c "$NODE/containerd.toml" </dev/null >"$STATE/log/node$N/images.log" 2>&1 9>&- &
  containerd=$!
  # shellcheck disable=SC2064 # the variable is gone when it runs
  trap "kill $containerd" EXIT
  wait_for 20 test -S "$NODE/run/containerd.sock"
  "$BIN/nodeimages" load -node "$STATE/node1/containerd=/proc/$(node_pid 1)/root/run/containerd/containerd.sock" \
    -node "$NODE/containerd=$NODE/run/containerd.sock" "$@" >>"$STATE/log/node$N/images.log" 2>&1
  kill "$containerd"
  wait "$containerd" || true
  trap - EXIT
  size=$(du -sm "$NODE/containerd" | cut -f1)
  truncate -s "$((size + size / 4 + 1500))M" "$STORE.new"
  mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1,root_owner=0:0 -d "$NODE/containerd" "$STORE.new"
  rm -rf "$NODE"/{containerd,run}
  mv "$STORE.new" "$STORE"
fi
say "images"

# 2. What the node is told: its configuration, keys and the profiles of vm/given.
GIVEN=$NODE/given
rm -rf "$GIVEN"
(umask 077 && mkdir -p "$GIVEN/given"/{etc/cluster,opt/cluster/pki})
"$LIB/node-config.sh" "$N"
cp -r "$HERE/given/." "$GIVEN/given/"
cp -r "$NODE/etc/." "$GIVEN/given/etc/cluster/"
cp "$STATE"/pki/{ca.crt,"node$N.crt","node$N.key","node$N.conf",kube-proxy.conf} "$GIVEN/given/opt/cluster/pki/"
cat >"$GIVEN/given/etc/cluster/settings" <<K
NODE=$N NAME=$NAME NODE_NET=$NODE_NET POD_NET=$POD_NET SERVICE_NET=$SERVICE_NET NODES=$NODES YAMA=${PODBENCH_VM_YAMA:-0}
K
printf '127.0.0.1 localhost\n%s.1 node1\n' "$NODE_NET" >"$GIVEN/given/etc/hosts"
(cd "$GIVEN" && find . | "$VM/busybox" cpio -o -H newc 2>/dev/null | cat "$VM/first.cpio" - >"$STATE/run/vm.cpio")
rm -rf "$GIVEN"

# 3. The machine, in node 1's network, beside its bridge. Of an earlier one the API server still says Ready.
kube delete node "node$N" --ignore-not-found >/dev/null
in_node 1 sh -ec "ip link del node$N 2>/dev/null || true; ip tuntap add node$N mode tap; ip link set node$N master br0 up"
for n in $(seq "$NODES"); do in_node "$n" ip route replace "$POD_NET.$N.0/24" via "$NODE_NET.$N"; done
# QEMU reads a comma in a path as the end of it, unless there are two.
disk=${VM//,/,,}/disk.img
# No substitution below: it would be a child too, for a moment.
node1=$(node_pid 1)
setsid nsenter -t "$node1" -n -p nice -n 5 "$QEMU/qemu-system-x86_64" \
  -name "$NODE" -accel tcg,thread=multi,tb-size=512 -M pc -cpu max,-cx16 -smp 2 -m 2048 -display none -nodefaults -no-reboot \
  -L "$QEMU/root/usr/share/qemu" -L "$QEMU/root/usr/share/seabios" \
  -serial "file:$STATE/log/node$N/console.log" -serial "file:$STATE/log/node$N/daemons.log" \
  -drive "file=$disk,if=virtio,format=raw,snapshot=on,cache=unsafe" \
  -drive "file=${STORE//,/,,},if=virtio,format=raw,snapshot=on,cache=unsafe" \
  -netdev "tap,id=net,ifname=node$N,script=no,downscript=no" -device virtio-net-pci,netdev=net,romfile= \
  -kernel "$VM/vmlinuz" -initrd "$STATE/run/vm.cpio" -append "console=ttyS0 panic=-1 quiet random.trust_cpu=on mitigations=off" \
  </dev/null >"$STATE/log/node$N/qemu.log" 2>&1 9>&- &
nsenter=$!
wait_for 5 first_child "$nsenter"
first_child "$nsenter" >"$STATE/run/node$N.pid"
wait_for 180 ready || { tail -qn 20 "$STATE/log/node$N"/{qemu,console,daemons}.log >&2; echo "node$N doesn't get ready" >&2; exit 1; }
say "node$N Ready"
