#!/bin/bash
# Puts pods of the zoo into a namespace and waits until each is in the state it
# is there for:
#   zoo.sh NAMESPACE [NAME...]    without a name: all of them
#   zoo.sh -h                     the names, a line each
# The namespace is made if it isn't there. The cluster is this checkout's, also
# where KUBECONFIG names another; only with PODBENCH_E2E_CONTEXT set it is that
# context of it (its nodes need the images: see the README). In zoo/NAME.yaml the
# first line says what it is, and `# wait:` what `kubectl wait` has to see.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
ZOO=$CLUSTER_HOME/zoo
PATIENCE=${PODBENCH_ZOO_TIMEOUT:-60s}

names() { basename -s .yaml -a "$ZOO"/*.yaml; }

if [ $# = 0 ] || [ "$1" = -h ] || [ "$1" = --help ]; then
  echo "usage: zoo.sh NAMESPACE [NAME...]"
  echo
  for name in $(names); do printf '  %-11s %s\n' "$name" "$(sed -n '1s/^# //p' "$ZOO/$name.yaml")"; done
  exit 0
fi
namespace=$1
shift
if [ $# = 0 ]; then
  mapfile -t all < <(names)
  set -- "${all[@]}"
fi
for name; do
  [ -e "$ZOO/$name.yaml" ] || { echo "zoo.sh: there is no $name in the zoo; it has: $(names | xargs)" >&2; exit 2; }
done

if [ -n "${PODBENCH_E2E_CONTEXT:-}" ]; then
  k() { kubectl --context "$PODBENCH_E2E_CONTEXT" --namespace "$namespace" "$@"; }
else
  [ -e "$STATE/run/up" ] || { echo "the cluster isn't up: up.sh" >&2; exit 1; }
  k() { kube --namespace "$namespace" "$@"; }
fi

k get namespace "$namespace" >/dev/null 2>&1 || k create namespace "$namespace" >/dev/null
k wait --for=create serviceaccount/default --timeout="$PATIENCE" >/dev/null # pods are refused without it
files=()
for name; do files+=(-f "$ZOO/$name.yaml"); done
k apply "${files[@]}" >/dev/null

failed=0
for name; do
  # shellcheck disable=SC2046 # words on purpose
  if ! said=$(k wait --timeout="$PATIENCE" $(sed -n 's/^# wait: //p' "$ZOO/$name.yaml") 2>&1); then
    failed=1
    {
      echo "zoo.sh: $name isn't in its state after $PATIENCE: $said"
      k get pods -l "app=$name" -o wide
      k get events --sort-by=.lastTimestamp | grep -F "$name" | tail -n 5
    } >&2
  fi
done
[ "$failed" = 0 ] || exit 1
echo "in $namespace: $*"
