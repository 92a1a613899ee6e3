#!/bin/bash
# tools.sh: the programs that build.sh wants on this machine. Nothing here
# reaches the image: what is installed there stands in the Dockerfile.
set -euo pipefail

missing=()
command -v buildah >/dev/null || missing+=(buildah)
command -v containers-storage >/dev/null || missing+=(containers-storage)
command -v debootstrap >/dev/null || missing+=(debootstrap)
command -v flock >/dev/null || missing+=(util-linux)
[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
[ ${#missing[@]} -gt 0 ] || exit 0

echo "image: installing ${missing[*]}" >&2
{
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
} >&2
