#!/bin/bash
# run.sh [-n RUNS] [-c CONNECTS] [--write]: podbench, podbench 0.11.0 from PyPI
# and the floor of kubectl itself, measured in turns on the cluster that is up.
#
#   -n RUNS      rounds, by default 20
#   -c CONNECTS  ssh connections that must not fail, by default 100
#   --write      also writes docs/benchmarks.md
#
# Prints Markdown. Times are told, never judged by the exit code: that is 1 where
# a verb started more kubectl processes than its budget has or it reports, 2 where
# ours doesn't attach. Wants what `./dev bench` has exported.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
say() { printf 'bench: %s\n' "$*" >&2; }
usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; }
number() { [[ $1 =~ ^[1-9][0-9]*$ ]] || { say "not a number: $1"; exit 2; }; }

runs=20 connects=100 write=
while [ $# -gt 0 ]; do
  case $1 in
    -n) runs=${2:-}; number "$runs"; shift 2 ;;
    -c) connects=${2:-}; number "$connects"; shift 2 ;;
    --write) write=1; shift ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
  esac
done
ours=$(command -v podbench) || { say "no podbench on PATH: ./dev bench"; exit 2; }
[ -n "${PODBENCH_IMAGE:-}" ] || { say "PODBENCH_IMAGE isn't set: ./dev bench"; exit 2; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "wants Python 3.11 or newer"; exit 2; }

# The archives are asked for their sizes. They were built already, or soon are.
images=()
if tar=$("$root/image/build.sh" full | tail -n 1); then images+=(--archive "$tar"); fi
if tar=$("$root/image/build.sh" slim | tail -n 1); then images+=(--slim "$tar"); fi

peer=()
if answer=$("$here/peer.sh") && mapfile -t answer <<<"$answer" && "$root/tests/cluster/load.sh" "${answer[1]}" >&2; then
  ref=$(sed -n 's/.*"ref": "\([^"]*\)".*/\1/p' "${answer[1]%.tar}.json")
  peer=(--tool "${answer[0]}" --tool-archive "${answer[1]}" --tool-image "$ref")
else
  say "podbench 0.11.0 couldn't be made ready; measuring the rest"
fi

page=$(mktemp)
trap 'rm -f "$page"' EXIT
code=0
python3 -B "$here/bench.py" --rounds "$runs" --connects "$connects" --ours "$ours" --image "$PODBENCH_IMAGE" \
  "${images[@]}" "${peer[@]}" | tee "$page" || code=$?
if [ -n "$write" ] && [ -s "$page" ]; then
  cp "$page" "$root/docs/benchmarks.md.new"
  mv "$root/docs/benchmarks.md.new" "$root/docs/benchmarks.md"
fi
exit "$code"
