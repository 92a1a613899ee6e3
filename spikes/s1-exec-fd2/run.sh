#!/usr/bin/env bash
# Does an exec'd process that closes fd 2 lose the rest of its stdout?  run.sh NAMESPACE (with a zoo pod `debian`)
set -u
for how in '' 'exec 2>/dev/null;'; do
  echo "--- $how"
  (echo one; sleep 3; echo two) | kubectl -n "$1" exec -i debian -- sh -c "$how exec cat"
  echo "rc=$?"
done
