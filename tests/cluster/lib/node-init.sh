#!/bin/bash
# PID 1 of a node: node-init.sh N NODE-FOLDER, under
#   unshare --fork --pid --mount --net --uts --ipc
# It builds the node's own file tree, pivots into it and then only reaps.
# Nothing it mounts is seen by the machine, and all of it ends with this process.
set -euo pipefail
N=$1
NODE=$2 # also how is_node_init recognises this process
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/settings.sh"
ROOT=$NODE/root
hostname "node$N"
mount --make-rprivate /

# 1. A root that is memory, with Debian's /usr and the state folder's parts.
mkdir -p "$ROOT" "$NODE"/{containerd,kubelet,etcd,pv} "$STATE/log/node$N/pods"
mount -t tmpfs -o mode=755,size=256m tmpfs "$ROOT"
mkdir -p "$ROOT"/{usr,etc/cluster,dev,proc,sys,run,tmp,root,old} "$ROOT"/opt/cluster/{bin,pki} \
  "$ROOT"/var/{cache,lib/{containerd,kubelet,etcd,pv},log/{cluster,pods,containers}}
for link in bin sbin lib lib64; do cp -P "/$link" "$ROOT/$link"; done
cp -a /etc/{passwd,group,nsswitch.conf,protocols,services,ld.so.cache,alternatives,ssl,subuid,subgid} "$ROOT/etc/" 2>/dev/null || true
: >"$ROOT/etc/resolv.conf"
echo "127.0.0.1 localhost" >"$ROOT/etc/hosts"
# shellcheck disable=SC2153 # NODES is set in settings.sh
for i in $(seq "$NODES"); do echo "$NODE_NET.$i node$i" >>"$ROOT/etc/hosts"; done

read_only() { mount --rbind "$1" "$ROOT/$2" && mount -o remount,bind,ro "$ROOT/$2"; }
read_only /usr usr
read_only "$(realpath "$BIN")" opt/cluster/bin
read_only "$STATE/pki" opt/cluster/pki
mount --rbind /dev "$ROOT/dev"
mount -t proc proc "$ROOT/proc"
mount -t sysfs sysfs "$ROOT/sys" # a new one shows this network namespace
mount --rbind /sys/fs/cgroup "$ROOT/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
for part in containerd kubelet etcd pv; do mount --bind "$NODE/$part" "$ROOT/var/lib/$part"; done
mount --bind "$STATE/log/node$N" "$ROOT/var/log/cluster"
mount --bind "$STATE/log/node$N/pods" "$ROOT/var/log/pods"
mount --bind "$NODE/etc" "$ROOT/etc/cluster"

# 2. The kubelet corrects these when they differ, and they are the whole
# machine's. It is shown files with the values it wants instead.
mkdir "$ROOT/run/tunables" "$ROOT/run/daemon"
while read -r tunable value; do
  shown=$ROOT/run/tunables/${tunable//\//.}
  echo "$value" >"$shown"
  mount --bind "$shown" "$ROOT/proc/sys/$tunable"
done <<T
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
T

cd "$ROOT" && pivot_root . old
cd / && umount -l /old && rmdir /old
# A pod with hostUsers: false may mount its /proc only where one with nothing
# mounted over it is in sight.
mkdir /run/proc && mount -t proc proc /run/proc
# After the pivot, which refuses a root that is shared; pods may ask for
# mount propagation.
mount --make-rshared /

export PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 # this network namespace's
: >/run/node-ready

# bash reaps orphans while it waits. Only SIGKILL from outside ends it.
trap : TERM INT HUP
while :; do
  sleep infinity &
  wait $! || true
done
