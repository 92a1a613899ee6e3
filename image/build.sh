#!/bin/bash
# build.sh [slim|full|all]: the seat image on a machine without a registry.
#
# Executes the Dockerfile and owns none of its steps: the base comes from
# base.sh, kept as debian:bookworm-slim in a buildah storage of our own, and
# buildah does the rest. Result: an OCI archive, its path alone on stdout.
#
# PODBENCH_AGENT_BIN  the static agent to put in
# PODBENCH_CACHE      where base, layers and archives are kept
# --refresh           makes the base anew, with today's security updates
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$here")
cache=${PODBENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podbench}
agent=${PODBENCH_AGENT_BIN:-$checkout/target/agent/$(uname -m)-unknown-linux-gnu/release/podbench-seat}
keep=6 # archives

say() { printf 'image: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
digest() { sha256sum | cut -c1-32; }

refresh=
[ "${1:-}" != --refresh ] || { refresh=1; shift; }
case ${1:-full} in
  slim | full) targets=("${1:-full}") ;;
  all) targets=(slim full) ;;
  *) die "usage: build.sh [--refresh] [slim|full|all]" ;;
esac
[ -r "$agent" ] || die "no agent at $agent (PODBENCH_AGENT_BIN names another)"

# What an archive is made of. Words about the image don't make a new one.
base_key() { { cat "$here/base.sh"; uname -m; cat "$cache/image/refreshed" 2>/dev/null || true; } | digest; }
inputs() {
  base_key
  cd "$checkout"
  find Dockerfile .dockerignore image -type f ! -path 'image/out/*' ! -name '*.md' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  sha256sum <"$agent"
}
key=$(inputs | digest)

name() { case $1 in slim) echo seat-slim ;; full) echo seat ;; esac; }
archive() { echo "$cache/images/$(digest <<<"$key $1")/$(name "$1").tar"; }

missing() {
  local t
  for t in "${targets[@]}"; do [ -e "$(archive "$t")" ] || return 0; done
  return 1
}
answer() {
  local t tar
  for t in "${targets[@]}"; do
    tar=$(archive "$t")
    touch -c "${tar%/*}" # the newest are kept
    echo "$tar"
  done
}

if [ -z "$refresh" ] && ! missing; then answer; exit; fi

[ "$(id -u)" = 0 ] || die "a build here needs root (chroot and overlay mounts)"
# In a mount namespace of its own a build leaves no mount behind, however it ends.
[ -n "${PODBENCH_IMAGE_NS:-}" ] || PODBENCH_IMAGE_NS=1 exec unshare --mount --propagation slave -- "$0" ${refresh:+--refresh} "${1:-full}"
"$here/tools.sh"
mkdir -p "$cache/image" "$cache/images"
exec 9>"$cache/image/lock"
flock -n 9 || { say "another build runs; waiting for it"; flock 9; }
if [ -n "$refresh" ]; then
  date +%s >"$cache/image/refreshed"
  key=$(inputs | digest)
fi
if ! missing; then answer; exit; fi # the other build made it

rm -rf "$cache"/image/work.* # of a build that was killed
work=$(mktemp -d "$cache/image/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# A storage apart from the machine's own: its folders, its driver, no registry.
store=$cache/image/storage
run=/run/podbench-image/$(printf %s "$cache" | digest)
mkdir -p "$store" "$run" "$work"/{lower,upper,inner,merged}
driver=vfs
if mount -t overlay overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/inner" "$work/merged" 2>/dev/null; then
  umount "$work/merged"
  driver=overlay
fi
printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' $driver "$store/$driver" "$run" >"$cache/image/storage.conf"
printf 'unqualified-search-registries = []\n' >"$cache/image/registries.conf"
export CONTAINERS_STORAGE_CONF=$cache/image/storage.conf CONTAINERS_REGISTRIES_CONF=$cache/image/registries.conf
export TMPDIR=$work
unset STORAGE_DRIVER STORAGE_OPTS BUILDAH_ISOLATION BUILDAH_LAYERS

buildah rm --all >/dev/null 2>&1 || true

base=localhost/debian:bookworm-slim
stamp=$store/base.$driver
want=$(base_key)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || ! buildah images -q $base >/dev/null 2>&1; then
  "$here/base.sh" "$work/base"
  container=$(buildah from scratch)
  buildah add -q "$container" "$work/base" / >/dev/null
  buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit -q --rm "$container" $base >/dev/null
  echo "$want" >"$stamp"
  rm -rf "$work/base"
fi

# The context is what .dockerignore leaves of the checkout.
mkdir -p "$work/context/image/out"
cp "$checkout/Dockerfile" "$checkout/.dockerignore" "$work/context/"
install -m 0755 "$agent" "$work/context/image/out/podbench"
# Somebody may have edited or compiled meanwhile: an archive's name must not lie.
[ "$(inputs | digest)" = "$key" ] || { say "the inputs changed; again"; exec "$0" "${1:-full}"; }

# The apt of a build step asks the machine's proxy, where there is one.
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "${proxy:-}" ] || export http_proxy=$proxy

for target in "${targets[@]}"; do
  tar=$(archive "$target")
  [ ! -e "$tar" ] || continue
  ref=podbench.test/$(name "$target"):dev
  say "$target: $ref"
  buildah bud --pull-never --layers --isolation chroot --network host \
    --target "$target" --tag "$ref" "$work/context" >&2 9>&-
  mkdir -p "$work/$target"
  out=$work/$target/$(name "$target")
  "$here/export.sh" "$ref" "$out.tar" "$cache/image/layers" >"$out.json"
  say "$target: $(cat "$out.json")"
  rm -rf "${tar%/*}"
  mv -T "$work/$target" "${tar%/*}" # whole or not at all
done
answer

# Layers that no image has any more, and all but the newest of what is kept.
buildah rmi --prune >/dev/null 2>&1 || true
newest() { find "$1" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | tail -n +$(($2 + 1)) | cut -d' ' -f2- | xargs -r -d '\n' rm -rf; }
newest "$cache/images" $keep
newest "$cache/image/layers" $((4 * keep))
