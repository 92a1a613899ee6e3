#!/bin/bash
# The root filesystem of the zoo's `debian`, as a tar file: debian-rootfs.sh OUT.tar
# A few packages of this machine's Debian, unpacked without their scripts: a
# shell, the core utilities and the C library, about 30 MB, in seconds. It has
# no package database; where apt is needed, use a debootstrap tree.
set -euo pipefail
OUT=$(realpath -m "$1")
PACKAGES=(base-files base-passwd bash dash coreutils sed grep libc6 libtinfo6 libselinux1
  libpcre2-8-0 libacl1 libattr1 libgmp10)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/debs" "$WORK/root"

download() { (cd "$WORK/debs" && apt-get download -q -o APT::Sandbox::User=root "${PACKAGES[@]}"); }
download || { apt-get update -q && download; }

# Debian's merged /usr, as its installer makes it.
for dir in bin sbin lib lib64; do
  mkdir -p "$WORK/root/usr/$dir"
  ln -s "usr/$dir" "$WORK/root/$dir"
done
for deb in "$WORK"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$WORK/root" --keep-directory-symlink \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*' \
    --exclude='./usr/lib/x86_64-linux-gnu/gconv/*'
done
cp "$WORK/root/usr/share/base-passwd/passwd.master" "$WORK/root/etc/passwd"
cp "$WORK/root/usr/share/base-passwd/group.master" "$WORK/root/etc/group"
tar -C "$WORK/root" -cf "$OUT" --sort=name --mtime=@0 --numeric-owner --format=gnu .
