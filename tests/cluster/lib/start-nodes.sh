# Nodes without anything running in them yet: namespaces, file trees and the
# network between them; sourced by up.sh after settings.sh, nodes.sh, cgroups.sh.
# shellcheck shell=bash

start_node() { # N
  local node=${STATE:?}/node$1 init child
  rm -rf "${node:?}"/{etcd,kubelet,etc} "$STATE/log/node$1"
  "$LIB/node-config.sh" "$1"
  make_cgroups "$1"
  setsid unshare --fork --pid --mount --net --uts --ipc "$LIB/node-init.sh" "$1" "$node" \
    </dev/null >"$STATE/log/node$1-init.log" 2>&1 9>&- &
  init=$!
  wait_for 5 first_child "$init"
  child=$(first_child "$init")
  echo "$child" >"$STATE/run/node$1.pid"
  wait_for 10 test -e "/proc/$child/root/run/node-ready" ||
    { cat "$STATE/log/node$1-init.log" >&2; return 1; }
}

# Node 1 holds a bridge, every other node a veth into it. The default routes
# lead nowhere, but without one a process of the node has no route to a
# ClusterIP and is refused before the address is translated.
connect_nodes() {
  local n m
  in_node 1 sh -ec "ip link add br0 type bridge; ip addr add $NODE_NET.1/24 dev br0; ip link set br0 up; ip route add default dev br0"
  for n in $(seq 2 "$NODES"); do
    # From the machine's PID namespace, which alone knows both nodes' processes;
    # both ends are made inside the nodes.
    nsenter -t "$(node_pid 1)" -n ip link add "node$n" type veth peer name eth0 netns "$(node_pid "$n")"
    in_node 1 ip link set "node$n" master br0 up
    in_node "$n" sh -ec "ip addr add $NODE_NET.$n/24 dev eth0; ip link set eth0 up; ip route add default via $NODE_NET.1"
  done
  for n in $(seq "$NODES"); do
    for m in $(seq "$NODES"); do
      [ "$n" = "$m" ] || in_node "$n" ip route add "$POD_NET.$m.0/24" via "$NODE_NET.$m"
    done
  done
}
