#!/bin/bash
# Breaks parts of the running cluster on purpose, and mends them:
#   faults.sh stop|kill|pause|resume|start N DAEMON
#       N is the node. DAEMON: kubelet containerd kube-proxy netpol, and on node 1
#       etcd kube-apiserver kube-controller-manager kube-scheduler
#   faults.sh link N up|down         node N's link to the others (not node 1's)
#   faults.sh api refuse|accept      the machine's way to the API server; while it
#       is closed, connections are refused at once. With kube-apiserver itself
#       stopped they are made, and then reset.
#   faults.sh proxy PORT [FLAG...]   one more way to the API server, a faulty one, on
#       127.0.0.1:PORT; prints a kubeconfig that uses it. FLAG: -delay 200ms (each
#       way), -rate 20000 (bytes a second), -refuse (closes at once), -stall
#   faults.sh unproxy PORT           ends it
#   faults.sh mend                   undoes all of these
# Whoever breaks a node breaks it for every test that runs: a lane of its own.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
# shellcheck source=lib/nodes.sh
. "$LIB/nodes.sh"

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//;/^set /!p}' "$0" >&2
  exit 2
}

signal_daemon() { # N DAEMON SIGNAL
  # shellcheck disable=SC2016
  in_node "$1" sh -c 'kill "-$2" "$(cat "/run/daemon/$1")"' sh "$2" "$3"
}

start_again() { # N DAEMON: with the command line it had; nothing, where it runs
  # shellcheck disable=SC2016
  in_node "$1" sh -c 'kill -0 "$(cat "/run/daemon/$1")"' sh "$2" 2>/dev/null && return
  mapfile -d '' -t command <"$STATE/run/daemon.$1.$2"
  daemon "$1" "$2" "${command[@]}"
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

accept_again() {
  [ -e "$STATE/run/apiproxy.pid" ] || api_proxy apiproxy "$(cat "$STATE/port")"
  wait_for 5 listening "$(cat "$STATE/port")"
}

end_proxy() { # PORT
  end_api_proxy "apiproxy-$1"
  rm -f "$STATE/run/apiproxy-$1.conf"
}

mend() {
  local n file
  for file in "$STATE"/run/daemon.*; do
    IFS=. read -r n name <<<"${file##*/daemon.}"
    signal_daemon "$n" "$name" CONT 2>/dev/null || true
    start_again "$n" "$name"
  done
  for n in $(seq 2 "$NODES"); do in_node 1 ip link set "node$n" up; done
  accept_again
  for file in "$STATE"/run/apiproxy-*.pid; do
    [ ! -e "$file" ] || { file=${file##*/apiproxy-}; end_proxy "${file%.pid}"; }
  done
}

[ -d "$STATE/run" ] || { echo "the cluster isn't up: up.sh" >&2; exit 1; }
case "${1:-} $#" in
  'stop 3') stop_daemon "$2" "$3" ;;
  'kill 3') stop_daemon "$2" "$3" KILL ;;
  'pause 3') signal_daemon "$2" "$3" STOP ;;
  'resume 3') signal_daemon "$2" "$3" CONT ;;
  'start 3') start_again "$2" "$3" ;;
  'link 3') in_node 1 ip link set "node$2" "$3" ;;
  'api 2')
    case $2 in refuse) end_api_proxy apiproxy ;; accept) accept_again ;; *) usage ;; esac
    ;;
  'proxy '*)
    [ $# -ge 2 ] || usage
    port=$2
    shift 2
    end_api_proxy "apiproxy-$port"
    api_proxy "apiproxy-$port" "$port" "$@"
    wait_for 5 test -s "$STATE/run/apiproxy-$port.pid"
    wait_for 5 listening "$port" || { tail -n 1 "$STATE/log/apiproxy-$port.log" >&2; exit 1; }
    sed "s|127.0.0.1:$(cat "$STATE/port")|127.0.0.1:$port|" "$ADMIN" >"$STATE/run/apiproxy-$port.conf"
    chmod 600 "$STATE/run/apiproxy-$port.conf"
    echo "$STATE/run/apiproxy-$port.conf"
    ;;
  'unproxy 2') end_proxy "$2" ;;
  'mend 1') mend ;;
  *) usage ;;
esac
