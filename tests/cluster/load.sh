#!/bin/bash
# Brings images into every node of the running cluster: load.sh ARCHIVE...
# The archives are those of `docker save`, or of buildah and skopeo with
# docker-archive:FILE:NAME:TAG. The nodes keep the images over down.sh and the
# next up.sh; what they have already isn't read again.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
# shellcheck source=lib/nodes.sh
. "$LIB/nodes.sh"
# shellcheck source=lib/images.sh
. "$LIB/images.sh"
[ $# -gt 0 ] || { echo "usage: load.sh ARCHIVE..." >&2; exit 2; }
[ -e "$STATE/run/up" ] || { echo "the cluster isn't up: up.sh" >&2; exit 1; }
load_images "$@"
