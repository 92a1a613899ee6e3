#!/bin/bash
# Builds the cluster's programs and images, once for each state of their
# sources, and prints the folder that holds them. The folder is in the cache,
# is named by a digest and appears whole: any checkout reuses it, and two that
# build at once wait for each other.
#   build.sh                   build if need be
#   build.sh --path            only say where it would be
#   build.sh --kubectl 1.32    that kubectl alone
#   PODBENCH_KUBERNETES=1.34   another minor than go.mod's: one of variants/
# Needs go, and for runc gcc, pkg-config and libseccomp-dev (up.sh installs these).
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
cd "$CLUSTER_HOME"

# digest SOURCE...: of all sources below these, and the compiler.
digest() {
  { go version; find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c-16
}

# -trimpath, -tags, -gcflags and CGO_ENABLED are part of the key of Go's build
# cache: change one and everything compiles anew (about 11 CPU minutes).
export CGO_ENABLED=0 GOCACHE=$CACHE/go-build GOFLAGS=
COMMON=(-v -mod=readonly -trimpath -buildvcs=false)
# shellcheck disable=SC2054 # -tags takes a list with commas
LEAN=("${COMMON[@]}" -tags no_btrfs,no_devmapper,no_zfs -gcflags=all=-dwarf=false)

module_version() { go list -m -f '{{.Version}}' "$1"; }

# stamp VERSION: without these the programs say of themselves v0.0.0-master+$Format.
stamp() {
  local major minor package
  IFS=. read -r major minor _ <<<"${1#v}"
  printf '%s' "-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s' "$package.gitVersion=$1" "$package.gitMajor=$major" "$package.gitMinor=$minor" \
      "$package.gitTreeState=clean" "$package.gitCommit=module" "$package.buildDate=1970-01-01T00:00:00Z"
  done
}

kubernetes() { stamp "$(module_version k8s.io/kubernetes)"; }

# variant NAME PROGRAM FOLDER: builds ./cmd/PROGRAM with another go.mod.
variant() {
  local source
  source=$(mktemp -d)
  cp -r cmd kubectl "variants/$1/." "$source/"
  (
    cd "$source"
    case $2 in
      kubectl) version=$(stamp "v${1#kubectl-}.$(module_version k8s.io/kubectl | cut -d. -f3)") ;;
      *) version=$(kubernetes) ;;
    esac
    go build "${LEAN[@]}" -ldflags "$version" -o "$3/" "./cmd/$2"
  )
  rm -rf "$source"
}

KUBERNETES=${PODBENCH_KUBERNETES:-}
[ -z "$KUBERNETES" ] || [ -d "variants/kubernetes-$KUBERNETES" ] || { echo "build.sh: PODBENCH_KUBERNETES is one of" variants/kubernetes-* >&2; exit 2; }
DIGEST=$(digest go.mod go.sum build.sh lib/debian-rootfs.sh cmd kubectl)
BASE=$CACHE/cluster-bin/$DIGEST
OUT=$BASE
case ${1:-} in
  --kubectl) OUT=$CACHE/cluster-bin/kubectl-$2-$(digest build.sh cmd/kubectl kubectl "variants/kubectl-$2") ;;
  *) [ -z "$KUBERNETES" ] || OUT=$BASE-$(digest "variants/kubernetes-$KUBERNETES") ;;
esac
if [ "${1:-}" = --path ] || [ -d "$OUT" ]; then
  echo "$OUT"
  exit 0
fi
if [ "$OUT" != "$BASE" ] && [ "${1:-}" != --kubectl ]; then PODBENCH_KUBERNETES='' ./build.sh >/dev/null; fi
mkdir -p "$CACHE/cluster-bin"
exec {lock}>"$CACHE/cluster-bin/lock"
flock "$lock"
[ ! -d "$OUT" ] || { echo "$OUT"; exit 0; } # built while we waited

rm -rf "$CACHE"/cluster-bin/.new.* # of a build that was killed
WORK=$(mktemp -d "$CACHE/cluster-bin/.new.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
publish() {
  chmod 755 "$WORK"
  mv -T "$WORK" "$OUT"
  trap - EXIT
  echo "$OUT"
  exit 0
}
if [ "${1:-}" = --kubectl ]; then
  variant "kubectl-$2" kubectl "$WORK" >&2
  publish
fi
KUBERNETES_PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl)
# A variant differs in Kubernetes alone: beside its libraries containerd doesn't start.
if [ "$OUT" != "$BASE" ]; then
  cp -a "$BASE/." "$WORK/"
  variant "kubernetes-$KUBERNETES" kubebox "$WORK/kubernetes"
  for name in "${KUBERNETES_PROGRAMS[@]}"; do ln -sf kubernetes/kubebox "$WORK/$name"; done
  publish
fi

# The previous build is where this one starts: go links only what has changed.
PREVIOUS=$(find "$CACHE/cluster-bin" -mindepth 1 -maxdepth 1 -type d -regextype posix-extended -regex '.*/[0-9a-f]{16}' -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d' ' -f2-)
[ -z "$PREVIOUS" ] || cp -a "$PREVIOUS/." "$WORK/"

STAMP="$(kubernetes) -X github.com/containerd/containerd/v2/version.Version=$(module_version github.com/containerd/containerd/v2)"
go build "${LEAN[@]}" -ldflags "$STAMP" -o "$WORK/" ./cmd/kubebox ./cmd/addons
go build "${LEAN[@]}" -ldflags "$STAMP" -o "$WORK/containerd-shim-runc-v2" ./cmd/shim
go build "${LEAN[@]}" -ldflags "-s -w" -o "$WORK/" ./cmd/nodeimages ./cmd/mkimage ./cmd/pause
CGO_ENABLED=1 go build "${COMMON[@]}" -tags seccomp -ldflags "-s -w" -o "$WORK/runc" github.com/opencontainers/runc
# This one is there to be debugged: symbols, and its own package not optimised.
go build "${COMMON[@]}" -gcflags='podbench.test/cluster/cmd/zooapp=-N -l' -o "$WORK/zooapp" ./cmd/zooapp
for name in etcd containerd ctr "${KUBERNETES_PROGRAMS[@]}"; do
  ln -sf kubebox "$WORK/$name"
done
for name in coredns metrics-server netpol apiproxy; do ln -sf addons "$WORK/$name"; done

[ -e "$WORK/debian-rootfs.tar" ] || lib/debian-rootfs.sh "$WORK/debian-rootfs.tar" >&2
rm -rf "$WORK/images" && mkdir "$WORK/images"
"$WORK/mkimage" -bin "$WORK" -out "$WORK/images"

# Builds that no `up` has used for two weeks.
find "$CACHE/cluster-bin" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
publish
