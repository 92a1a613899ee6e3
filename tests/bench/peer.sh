#!/bin/bash
# peer.sh: podbench 0.11.0, the tool that ours is measured beside, from PyPI: its
# launcher in a venv, its seat image on our base. On stdout the launcher's path
# and the image's archive, a line each.
#
# Everything is kept in $PODBENCH_CACHE/peer and nothing in the checkout. The
# base is the one in image/build.sh's storage, so a seat image was built before.
set -euo pipefail

version=0.11.0 uv=0.12.5 debugpy=1.8.21
python=3.11 # of Debian bookworm

here=$(cd "$(dirname "$0")" && pwd)
image=$here/../../image
cache=${PODBENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podbench}
peer=$cache/peer
ref=podbench.test/peer:$version
say() { printf 'peer: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

mkdir -p "$peer"
exec 8>"$peer/lock"
flock 8

venv=$peer/venv-$version
if [ ! -e "$venv/ready" ]; then
  say "podbench $version from PyPI"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "python3 on PATH is older than 3.11"
  rm -rf "$venv"
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install -q "podbench==$version" >&2
  touch "$venv/ready"
fi

storage=$cache/image/storage.conf
[ -e "$storage" ] || die "no base yet: image/build.sh makes it"
key=$({ cat "$here/peer.dockerfile" "$0" "$cache"/image/storage/base.*; uname -m; } | sha256sum | cut -c1-32)
archive=$peer/image-$key/peer.tar
if [ ! -e "$archive" ]; then
  [ "$(id -u)" = 0 ] || die "a build needs root"
  work=$(mktemp -d "$peer/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM

  say "wheels for the image"
  # wheels FOLDER REQUIREMENT...: as the image's Python would have them.
  wheels() {
    local platforms=() tag into=$1
    shift
    for tag in manylinux_2_34 manylinux_2_28 manylinux_2_17 manylinux2014; do platforms+=(--platform "${tag}_$(uname -m)"); done
    "$venv/bin/pip" install -q --no-compile --only-binary=:all: --python-version "$python" --implementation cp \
      "${platforms[@]}" --target "$into" "$@" >&2
  }
  root=$work/context
  wheels "$root/app/lib" "podbench==$version"
  wheels "$root/opt/podbench/debugpy" "debugpy==$debugpy"
  wheels "$work/uv" "uv==$uv"
  mkdir -p "$root/usr/local/bin"
  cp "$work/uv/bin/uv" "$root/usr/local/bin/"
  cat >"$root/usr/local/bin/podbench" <<'PY'
#!/usr/bin/python3 -I
import sys
sys.path.insert(0, "/app/lib")
from podbench.__main__ import main
sys.exit(main())
PY
  chmod 0755 "$root/usr/local/bin/podbench"

  export CONTAINERS_STORAGE_CONF=$storage CONTAINERS_REGISTRIES_CONF=$cache/image/registries.conf TMPDIR=$work
  exec 9>"$cache/image/lock" # image/build.sh clears the storage of half-made containers
  flock 9
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "${proxy:-}" ] || export http_proxy=$proxy
  log=$peer/build.log
  say "its image, $ref (a minute or two; $log)"
  buildah bud --pull-never --layers --isolation chroot --network host \
    --file "$here/peer.dockerfile" --tag "$ref" "$root" >"$log" 2>&1 8>&- 9>&- || { tail -n 20 "$log" >&2; die "no image"; }
  mkdir "$work/out" "$work/layers"
  "$image/export.sh" "$ref" "$work/out/peer.tar" "$work/layers" >"$work/out/peer.json"
  say "$(cat "$work/out/peer.json")"
  find "$peer" -maxdepth 1 -name 'image-*' -exec rm -rf {} +
  mv -T "$work/out" "${archive%/*}"
fi

printf '%s\n' "$venv/bin/podbench" "$archive"
