#!/bin/bash
# Builds the cluster's programs and images, once for each state of their
# sources, and prints the folder that holds them. The folder is in the cache,
# is named by a digest and appears whole: any checkout reuses it, and two that
# build at once wait for each other.
#   build.sh           build if need be
#   build.sh --path    only say where it would be
# Needs go, and for runc gcc, pkg-config and libseccomp-dev (up.sh installs these).
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
cd "$CLUSTER_HOME"

sources_digest() {
  { go version; find go.mod go.sum build.sh lib/debian-rootfs.sh cmd -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum
}
DIGEST=$(sources_digest)
OUT=$CACHE/cluster-bin/${DIGEST:0:16}
if [ "${1:-}" = --path ] || [ -d "$OUT" ]; then
  echo "$OUT"
  exit 0
fi
mkdir -p "$CACHE/cluster-bin"
exec {lock}>"$CACHE/cluster-bin/lock"
flock "$lock"
[ ! -d "$OUT" ] || { echo "$OUT"; exit 0; } # built while we waited

# The previous build is where this one starts: go links only what has changed.
rm -rf "$CACHE"/cluster-bin/.new.* # of a build that was killed
WORK=$(mktemp -d "$CACHE/cluster-bin/.new.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
PREVIOUS=$(find "$CACHE/cluster-bin" -mindepth 1 -maxdepth 1 -type d ! -name '.*' -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d' ' -f2-)
[ -z "$PREVIOUS" ] || cp -a "$PREVIOUS/." "$WORK/"

# Without these the programs say of themselves v0.0.0-master+$Format.
module_version() { go list -m -f '{{.Version}}' "$1"; }
K8S=$(module_version k8s.io/kubernetes)
IFS=. read -r MAJOR MINOR _ <<<"${K8S#v}"
STAMP="-s -w -X github.com/containerd/containerd/v2/version.Version=$(module_version github.com/containerd/containerd/v2)"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  STAMP+=" -X $package.gitVersion=$K8S -X $package.gitMajor=$MAJOR -X $package.gitMinor=$MINOR"
  STAMP+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
done

# -trimpath, -tags, -gcflags and CGO_ENABLED are part of the key of Go's build
# cache: change one and everything compiles anew (about 11 CPU minutes).
export CGO_ENABLED=0 GOCACHE=$CACHE/go-build GOFLAGS=
COMMON=(-v -mod=readonly -trimpath -buildvcs=false)
# shellcheck disable=SC2054 # -tags takes a list with commas
LEAN=("${COMMON[@]}" -tags no_btrfs,no_devmapper,no_zfs -gcflags=all=-dwarf=false)
go build "${LEAN[@]}" -ldflags "$STAMP" -o "$WORK/" ./cmd/kubebox ./cmd/addons
go build "${LEAN[@]}" -ldflags "$STAMP" -o "$WORK/containerd-shim-runc-v2" ./cmd/shim
go build "${LEAN[@]}" -ldflags "-s -w" -o "$WORK/" ./cmd/nodeimages ./cmd/mkimage ./cmd/pause
CGO_ENABLED=1 go build "${COMMON[@]}" -tags seccomp -ldflags "-s -w" -o "$WORK/runc" github.com/opencontainers/runc
# This one is there to be debugged: symbols, and its own package not optimised.
go build "${COMMON[@]}" -gcflags='podbench.test/cluster/cmd/zooapp=-N -l' -o "$WORK/zooapp" ./cmd/zooapp
for name in etcd containerd ctr kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
  ln -sf kubebox "$WORK/$name"
done
for name in coredns metrics-server netpol apiproxy; do ln -sf addons "$WORK/$name"; done

[ -e "$WORK/debian-rootfs.tar" ] || lib/debian-rootfs.sh "$WORK/debian-rootfs.tar" >&2
rm -rf "$WORK/images" && mkdir "$WORK/images"
"$WORK/mkimage" -bin "$WORK" -out "$WORK/images"

chmod 755 "$WORK"
mv -T "$WORK" "$OUT"
trap - EXIT
# Builds that no `up` has used for two weeks.
find "$CACHE/cluster-bin" -mindepth 1 -maxdepth 1 -type d -mtime +14 ! -path "$OUT" -exec rm -rf {} +
echo "$OUT"
