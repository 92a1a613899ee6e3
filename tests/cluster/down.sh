#!/bin/bash
# Ends the cluster and everything it made outside its state folder:
#   down.sh           keeps keys, images and logs, so that the next start is quick
#   down.sh --purge   removes the state folder too
# One SIGKILL to each node's PID 1 ends all processes of the node, pods
# included, and with the last process go the namespaces: mounts, interfaces,
# rules and sets are all in there. leak-test.sh shows that nothing stays.
set -uo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
# shellcheck source=lib/nodes.sh
. "$LIB/nodes.sh"
# shellcheck source=lib/cgroups.sh
. "$LIB/cgroups.sh"

[ -e "$MARK" ] || exit 0
case ${1:-} in
  '' | --purge)
    exec 9>"$STATE/lock"
    flock 9
    ;;
  --locked) ;; # by up.sh
  *) echo "usage: down.sh [--purge]" >&2; exit 2 ;;
esac

for file in "$STATE"/run/apiproxy*.pid; do
  [ ! -e "$file" ] || end_api_proxy "$(basename "$file" .pid)"
done

ended=()
for n in $(seq "$NODES"); do
  pid=$(node_pid "$n" 2>/dev/null) || continue
  is_node_init "$pid" "$n" || continue
  parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
  kill -9 "$pid" && ended+=("$pid" "$parent")
done
for pid in "${ended[@]}"; do
  wait_for 15 process_ended "$pid" || echo "process $pid doesn't end" >&2
done
# A node that was under construction when its starter was killed has no PID file.
for init in $(pgrep -f -- "$LIB/node-init.sh [0-9]+ $STATE/node[0-9]+\$" || true); do kill -9 "$init" 2>/dev/null; done

remove_cgroups
rm -rf "$STATE/run"
for node in "$STATE"/node*/; do rm -rf "$node"{etcd,kubelet,etc,pv,root}; done
[ "${1:-}" != --purge ] || rm -rf "$STATE"
