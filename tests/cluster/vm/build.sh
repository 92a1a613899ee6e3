#!/bin/bash
# Builds the VM node's disk, kernel and first file system, once for each state of their sources, and
# prints the folder: build.sh
#   build.sh --pin   writes packages.lock anew, with the versions that apt offers today
# Nothing is installed or mounted: packages are unpacked, and mke2fs fills the disk.
set -euo pipefail
# shellcheck source=../lib/settings.sh
. "$(dirname "$0")/../lib/settings.sh"
# shellcheck source=../lib/debs.sh
. "$LIB/debs.sh"
cd "$CLUSTER_HOME/vm"
if [ "${1:-}" = --pin ]; then
  pin packages.lock
  exit
fi
PROGRAMS=$("$CLUSTER_HOME/build.sh")
OUT=$CACHE/vm-node/$({ sha256sum build.sh packages.lock first-init.sh node-init.sh "$LIB"/{debs,start-daemons}.sh; echo "$PROGRAMS"; } | sha256sum | cut -c-16)
if [ -d "$OUT" ]; then
  touch "$OUT"
  echo "$OUT"
  exit
fi

mkdir -p "$CACHE/vm-node"
exec {lock}>"$CACHE/vm-node/lock"
flock "$lock"
[ ! -d "$OUT" ] || { echo "$OUT"; exit; } # built while we waited
rm -rf "$CACHE"/vm-node/.new.* # of a build that was killed
WORK=$(mktemp -d "$CACHE/vm-node/.new.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
ROOT=$WORK/root
FIRST=$WORK/first
mkdir -p "$WORK/debs" "$ROOT" "$FIRST"/{bin,modules,newroot,proc,sys,dev}

tar -x -C "$ROOT" -f "$PROGRAMS/debian-rootfs.tar"
fetch_pinned packages.lock "$WORK/debs"
for deb in "$WORK"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$ROOT" --keep-directory-symlink \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./boot/System.map*'
done
mv "$ROOT"/boot/vmlinuz-* "$WORK/vmlinuz"
# What of the usual tools Debian's packages don't bring.
BUSYBOX=$ROOT/bin/busybox
for name in $("$BUSYBOX" --list); do
  [ -e "$ROOT/usr/bin/$name" ] || [ -e "$ROOT/usr/sbin/$name" ] || ln -s /bin/busybox "$ROOT/usr/sbin/$name"
done
KERNEL=$(basename "$ROOT"/lib/modules/*)
"$BUSYBOX" depmod -b "$ROOT" "$KERNEL"

mkdir -p "$ROOT"/{opt/cluster/{bin,pki},etc/cluster,usr/lib/cni,proc,sys,dev,run,tmp,root} \
  "$ROOT"/var/{lib/{containerd,kubelet},log/{cluster,pods,containers}}
for name in containerd containerd-shim-runc-v2 ctr kubebox kubelet kube-proxy runc; do cp -P "$PROGRAMS/$name" "$ROOT/opt/cluster/bin/"; done
cp /usr/lib/cni/{ptp,host-local,loopback,portmap} "$ROOT/usr/lib/cni/"
cp node-init.sh "$ROOT/usr/sbin/node-init"
cp "$LIB/start-daemons.sh" "$ROOT/opt/cluster/"
echo 0123456789abcdef0123456789abcdef >"$ROOT/etc/machine-id"
: >"$ROOT/etc/resolv.conf"
# No journal: the disk is written to a copy that ends with the machine.
truncate -s 2G "$WORK/disk.img"
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1,root_owner=0:0 -d "$ROOT" "$WORK/disk.img"

# Debian's cloud kernel has the disk's driver as modules, in the order they need each other.
cp "$BUSYBOX" "$FIRST/bin/"
for name in virtio/virtio_ring virtio/virtio virtio/virtio_pci_modern_dev virtio/virtio_pci_legacy_dev virtio/virtio_pci block/virtio_blk; do
  cp "$ROOT/lib/modules/$KERNEL/kernel/drivers/$name.ko" "$FIRST/modules/"
done
cp first-init.sh "$FIRST/init"
(cd "$FIRST" && find . | "$BUSYBOX" cpio -o -H newc >"$WORK/first.cpio" 2>/dev/null)
cp "$BUSYBOX" "$WORK/busybox"

rm -rf "$WORK"/{debs,root,first}
chmod 755 "$WORK"
mv -T "$WORK" "$OUT"
trap - EXIT
# Builds that no start has used for two weeks.
find "$CACHE/vm-node" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
echo "$OUT"
