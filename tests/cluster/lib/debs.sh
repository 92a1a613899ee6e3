# Debian packages that a lock pins, fetched and never installed; sourced.
#
# A lock has a line for each package: its name, version and SHA-256. Which archive they come from is
# the machine's own business: apt asks where it always asks.
# shellcheck shell=bash

pinned() { grep -v '^#' "$1"; } # LOCK

apt_download() { apt-get download -qq -o APT::Sandbox::User=root "$@" >/dev/null; }

# pin LOCK: writes it anew, with the versions that apt offers today.
pin() {
  local lock work
  lock=$(realpath "$1")
  work=$(mktemp -d)
  (
    cd "$work"
    pinned "$lock" | cut -d' ' -f1 | xargs apt-get download -qq -o APT::Sandbox::User=root >&2
    {
      sed -n '/^#/p' "$lock"
      for deb in *.deb; do
        echo "$(dpkg-deb -W --showformat='${Package} ${Version}' "$deb") $(sha256sum <"$deb" | cut -d' ' -f1)"
      done | LC_ALL=C sort
    } >"$lock.new"
  )
  rm -rf "$work"
  mv "$lock.new" "$lock"
}

# fetch_pinned LOCK FOLDER: the packages into an empty folder, each checked.
fetch_pinned() {
  local lock name version digest deb
  lock=$(realpath "$1")
  (cd "$2" && {
    pinned "$lock" | awk '{ print $1 "=" $2 }' | xargs apt-get download -qq -o APT::Sandbox::User=root >/dev/null 2>&1 ||
      {
        apt-get update -qq >&2
        # An archive drops what it has replaced. What apt vouches for is taken then, and said.
        while read -r name version _; do
          [ -n "$(find . -name "${name}_*" -print -quit)" ] || apt_download "$name=$version" 2>/dev/null || {
            echo "$name $version is no longer offered: taking what is (--pin writes a new lock)" >&2
            apt_download "$name"
          }
        done
      } < <(pinned "$lock")
  })
  while read -r name version digest; do
    deb=$(find "$2" -name "${name}_*" -print -quit)
    [ "$(dpkg-deb -f "$deb" Version)" != "$version" ] || sha256sum --quiet -c <<<"$digest  $deb" >&2 ||
      { echo "$name $version isn't the package that was pinned" >&2; return 1; }
  done < <(pinned "$lock")
}
