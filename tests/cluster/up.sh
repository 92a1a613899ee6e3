#!/bin/bash
# Starts the cluster, or says that it is up: up.sh
# It installs and builds what is missing, ends what is left of a broken
# cluster, and keeps nothing of the caller: no terminal, session or open file.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
for part in nodes cgroups packages images start-nodes start-daemons; do
  # shellcheck source=/dev/null
  . "$LIB/$part.sh"
done

[ "$(id -u)" = 0 ] || { echo "up.sh makes namespaces, mounts and cgroups: run it as root" >&2; exit 1; }
command -v go >/dev/null || { echo "up.sh builds the cluster from its sources: install Go first (the version in go.mod)" >&2; exit 1; }
[ -e "$MARK" ] || [ -z "$(ls -A "$STATE" 2>/dev/null)" ] || { echo "$STATE holds something else: set PODBENCH_CLUSTER_DIR to a new folder" >&2; exit 1; }

# Whatever else the caller has open isn't for the daemons: `up.sh | cat` has to
# return. 255 is this script.
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  case $fd in 0 | 1 | 2 | 255) ;; *) eval "exec $fd>&-" 2>/dev/null || true ;; esac
done
# One at a time for each state folder. What is to live on gets `9>&-`.
mkdir -p "$STATE"
echo "$NAME" >"$MARK"
exec 9>"$STATE/lock"
flock 9
mkdir -p "$STATE"/{run,log}

BEGAN=${EPOCHREALTIME/./}
say() { printf '%6.1f s  %s\n' "$(((${EPOCHREALTIME/./} - BEGAN) / 1000))e-3" "$*"; }

# healthy: every process that was started still runs, and the nodes are Ready.
healthy() {
  local n
  [ -e "$STATE/run/up" ] || return 1
  for n in $(seq "$NODES"); do
    is_node_init "$(node_pid "$n")" "$n" && daemons_alive "$n" || return 1
  done >/dev/null 2>&1
  nodes_ready
}

nodes_ready() {
  local ready
  ready=$(kube get nodes $(seq -f 'node%g' "$NODES") --request-timeout=5s -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}' 2>/dev/null) || return 1
  [ "$(grep -ow True <<<"$ready" | wc -l)" = "$NODES" ]
}

# pick_port: the one of the last time, or the first free one. It is remembered
# because kubeconfigs and ssh stanzas that were written from it live on.
pick_port() {
  local port
  port=$(cat "$STATE/port" 2>/dev/null || echo "$FIRST_PORT")
  while ! port_free "$port"; do port=$((port + 1)); done
  echo "$port" >"$STATE/port"
}
port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# build: the folder of programs and images, into $STATE/run/built. From an empty
# cache it takes minutes, so it says now and then that it is getting on.
build() {
  local log=$STATE/log/build.log waited=0
  setsid "$CLUSTER_HOME/build.sh" >"$STATE/run/built" 2>"$log" 9>&- & # a group of its own, to be ended as one
  BUILDER=$!
  while kill -0 "$BUILDER" 2>/dev/null; do
    sleep 0.05
    waited=$((waited + 1))
    [ $((waited % 400)) != 40 ] || say "building from sources: $(grep -vc '^go: ' "$log" || true) packages compiled so far (about 3400 from an empty cache)"
  done
  wait "$BUILDER" || { tail -n 20 "$log" >&2; return 1; }
  BUILDER=''
}

# stay_up: the cluster that runs is kept; images that were changed since it was
# started get into it.
stay_up() {
  local built
  build
  built=$(cat "$STATE/run/built")
  load_images "$built"/images/*.tar >>"$STATE/log/images.log" 2>&1
  [ "$built" = "$(readlink "$BIN")" ] || say "its programs are of an earlier build; down.sh and up.sh change that"
  say "$1: export KUBECONFIG=$ADMIN"
  exit 0
}

BUILDER=''
STARTING=''
finish() {
  local code=$?
  [ "$code" != 0 ] || return 0
  [ -z "$BUILDER" ] || kill -- "-$BUILDER" 2>/dev/null || true
  echo "up.sh: not done; the logs are in $STATE/log" >&2
  [ -z "$STARTING" ] || "$CLUSTER_HOME/down.sh" --locked
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

if healthy; then stay_up "already up"; fi
# With its nodes alive it may only be a fault that somebody left in it, or a
# machine so busy that a node was late.
if [ -e "$STATE/run/up" ] && "$CLUSTER_HOME/faults.sh" mend 2>/dev/null && wait_for 60 healthy; then
  stay_up "mended"
fi
if [ -n "$(ls -A "$STATE/run")" ]; then
  say "a part of an earlier cluster is left: ending it"
  "$CLUSTER_HOME/down.sh" --locked
  mkdir -p "$STATE/run"
fi

STARTING=1

# 1. What it is made of.
install_missing
build
built=$(cat "$STATE/run/built")
touch "$built" # in use: not to be cleared away
ln -sfn "$built" "$BIN"
mkdir -p "$STATE/path" && ln -sfn "$BIN/kubectl" "$STATE/path/kubectl"
pick_port
"$LIB/pki.sh" "$(cat "$STATE/port")"
say "programs, certificates"

# 2. Empty nodes.
for n in $(seq "$NODES"); do
  forget_containers "$n"
  start_node "$n"
done
connect_nodes
say "$NODES nodes and their network"

# 3. The API server; meanwhile the images.
start_etcd
start_apiserver
for n in $(seq "$NODES"); do start_containerd "$n"; done
api_proxy apiproxy "$(cat "$STATE/port")"
load_images "$BIN"/images/*.tar >>"$STATE/log/images.log" 2>&1 || { tail -n 5 "$STATE/log/images.log" >&2; exit 1; }
say "containerd, images"
wait_for 60 kube get --raw /readyz --request-timeout=5s || { echo "the API server doesn't get ready" >&2; exit 1; }
say "API server"

# 4. Everything else.
start_controllers
for n in $(seq "$NODES"); do start_kubelet "$n"; done
kube apply --server-side -f "$CLUSTER_HOME/manifests/base.yaml" >>"$STATE/log/apply.log"
for n in $(seq "$NODES"); do { start_proxy "$n" && start_netpol "$n"; }; done
wait_for 30 nodes_ready || { echo "the nodes don't get ready" >&2; exit 1; }
say "nodes Ready"
kube wait -n default --for=create sa/default --timeout=20s >/dev/null
kube -n kube-system rollout status deploy/coredns --timeout=60s >/dev/null
# Last: while its APIService has no endpoint, discovery is slow for everybody.
kube apply --server-side -f "$CLUSTER_HOME/manifests/metrics-server.yaml" >>"$STATE/log/apply.log"
: >"$STATE/run/up"
say "up: export KUBECONFIG=$ADMIN"
