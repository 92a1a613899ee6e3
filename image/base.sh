#!/bin/bash
# base.sh ROOTFS: what debian:bookworm-slim holds, made by debootstrap, for a
# machine that reaches Debian's archive but no image registry.
#
# Owns the base and nothing above it: whatever podbench adds stands in the
# Dockerfile. Mirrors and proxies are the machine's own, asked of its apt.
set -euo pipefail

suite=bookworm
rootfs=${1:?usage: base.sh ROOTFS}
say() { printf '%s\n' "base: $*" >&2; }

[ "$(id -u)" = 0 ] || { say "debootstrap wants root"; exit 1; }
# SITE and RELEASE of each archive that the machine's apt knows for this suite,
# main component only. A machine of another suite still names a mirror.
# shellcheck disable=SC2016 # apt expands these
sources=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v s=$suite '$3 == "main" && ($2 == s || $2 == s "-updates" || $2 == s "-security") { print $1, $2 }' | sort -u)
mirror=$(awk -v s=$suite '$2 == s { print $1; exit }' <<<"$sources")
[ -n "$mirror" ] || { say "apt on this machine has no source for $suite main"; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keyring ] || { say "no $keyring (package debian-archive-keyring)"; exit 1; }

# apt's own proxy setting, where it has one; the environment's goes along by itself.
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "${proxy:-}" ] || export http_proxy=$proxy

say "debootstrap $suite"
debootstrap --variant=minbase --keyring=$keyring --merged-usr $suite "$rootfs" "$mirror" >&2

# As in the slim images of Debian: documentation (copyright files stay),
# manual pages and translations are neither kept nor unpacked later.
drop=(/usr/share/doc /usr/share/info /usr/share/lintian /usr/share/linda /usr/share/locale /usr/share/man /usr/share/groff)
{
  printf 'path-exclude %s/*\n' "${drop[@]}"
  echo 'path-include /usr/share/doc/*/copyright'
} >"$rootfs/etc/dpkg/dpkg.cfg.d/docker"
echo force-unsafe-io >"$rootfs/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
cat >"$rootfs/etc/apt/apt.conf.d/docker" <<'CONF'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Apt::AutoRemove::SuggestsImportant "false";
CONF
# A package's postinst must not start a service in a build.
printf '#!/bin/sh\nexit 101\n' >"$rootfs/usr/sbin/policy-rc.d"
chmod 0755 "$rootfs/usr/sbin/policy-rc.d"

while read -r site release; do
  echo "deb [signed-by=$keyring] $site $release main"
done <<<"$sources" >"$rootfs/etc/apt/sources.list"

say "security updates"
cp --remove-destination /etc/resolv.conf "$rootfs/etc/resolv.conf"
cp "$rootfs/etc/hosts" "$rootfs/etc/hosts.base" 2>/dev/null || true
cp --remove-destination /etc/hosts "$rootfs/etc/hosts"
in_base() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} chroot "$rootfs" "$@" >&2; }
in_base apt-get -qq update
in_base apt-get -qq -o Dpkg::Use-Pty=0 dist-upgrade -y
in_base apt-get -qq clean
: >"$rootfs/etc/resolv.conf"
rm -f "$rootfs/etc/hosts"
[ ! -e "$rootfs/etc/hosts.base" ] || mv "$rootfs/etc/hosts.base" "$rootfs/etc/hosts"

for d in "${drop[@]}"; do
  [ -d "$rootfs$d" ] || continue
  find "$rootfs$d" -mindepth 1 ! -type d ! -name copyright -delete
  find "$rootfs$d" -mindepth 1 -type d -empty -delete
done
rm -rf "$rootfs"/var/lib/apt/lists/* "$rootfs"/var/cache/apt/*.bin "$rootfs"/var/cache/apt/archives/*.deb \
  "$rootfs"/var/cache/debconf/*-old "$rootfs"/var/lib/dpkg/*-old "$rootfs"/var/cache/ldconfig/aux-cache \
  "$rootfs"/var/log/{apt,bootstrap.log,alternatives.log,dpkg.log} "${rootfs:?}"/{dev,proc,tmp}/* "$rootfs/debootstrap"
find "$rootfs/run" -type f -delete
rm -f "$rootfs/etc/hostname"
: >"$rootfs/etc/machine-id"
