#!/bin/bash
# Prints the exports that a shell needs for this cluster: eval "$(print-env.sh)"
# PATH gets the podbench that was built last ($PODBENCH_BIN_DIR, by default the
# debug build), and a folder that holds kubectl alone.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
[ -e "$STATE/run/up" ] || { echo "the cluster isn't up: ./dev up" >&2; exit 1; }
printf 'export KUBECONFIG=%q\n' "$ADMIN"
printf 'export PODBENCH_IMAGE=%q\n' podbench.test/seat:dev
# shellcheck disable=SC2016 # $PATH is the caller's
printf 'export PATH=%q:%q:"$PATH"\n' "${PODBENCH_BIN_DIR:-$CHECKOUT/target/debug}" "$STATE/path"
