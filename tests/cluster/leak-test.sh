#!/bin/bash
# Proves that a cluster leaves nothing behind on the machine: leak-test.sh
# It takes a picture of the machine, runs a cluster of its own with pods and a
# network policy, ends it, and compares; then once more with a start that is
# killed half way. Prints the difference and exits 1 where there is one.
#
# It runs beside other clusters and a busy machine: what belongs to those (their
# cgroups, sockets with a living owner, an image build's mounts) isn't in the
# picture.
set -euo pipefail
PODBENCH_CLUSTER_DIR=$(mktemp -d "${TMPDIR:-/tmp}/podbench-leak.XXXXXX")
export PODBENCH_CLUSTER_DIR
unset PODBENCH_E2E_CONTEXT # zoo.sh would go there
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
# shellcheck source=lib/nodes.sh
. "$LIB/nodes.sh"
WORK=$(mktemp -d)
cleanup() {
  "$CLUSTER_HOME/down.sh" --purge
  rm -rf "$WORK"
}
trap cleanup EXIT

# picture FOLDER: one file for each thing that a cluster could leave.
picture() {
  mkdir -p "$1"
  ip -o link | sed 's/^[0-9]*: //; s/ state [A-Z]*//' | sort >"$1/links"
  { ip -o addr; ip route show table all; ip rule; } | sed -E 's/^[0-9]+: //; s/(valid|preferred)_lft [^ ]+//g' | sort >"$1/addresses"
  { ip netns list; ls -A /run/netns 2>/dev/null; } >"$1/netns" || true
  nft list ruleset | sed -E 's/packets [0-9]+ bytes [0-9]+//' >"$1/nft"
  { iptables-legacy-save 2>/dev/null | grep -v '^[#:]'; } >"$1/iptables-legacy" || true
  ipset list -name >"$1/ipsets"
  # Where a node mounts something; an image build beside us mounts elsewhere.
  grep -E "$STATE|$CACHE/cluster-bin| /(proc|sys|dev|usr|etc|opt|run|var)[/ ]|containerd|kubelet" /proc/self/mounts |
    grep -v '/var/lib/containers/' | sort >"$1/mounts"
  find /sys/fs/cgroup -type d \( -regex '.*/pb-[0-9a-f]*-node[0-9]*' ! -name "$NAME-node*" -prune -o -print \) 2>/dev/null | sort >"$1/cgroups"
  ss -Hlntup | grep -v 'users:' | awk '{print $1, $5}' | sort >"$1/listeners-without-owner" || true
  ls -d /run/containerd /run/cni-ipam /var/lib/{cni,kubelet,containerd,etcd} /etc/cni /var/log/{pods,containers,cluster} >"$1/folders" 2>/dev/null || true
  sysctl -a 2>/dev/null |
    grep -E '^(net\.(ipv4|ipv6|netfilter|bridge|core)|vm\.(overcommit|panic|swappiness|max_map)|kernel\.(panic|keys|core|pid_max|yama|unprivileged|apparmor)|user)\b' |
    grep -vE 'nf_conntrack_count|^net.ipv4.tcp_mem|random' | sort >"$1/sysctls"
}

# processes: PID and start time of everything that this cluster runs.
processes() {
  { for n in $(seq "$VM_NODE"); do node_pid "$n"; done; cat "$STATE"/run/apiproxy*.pid; } 2>/dev/null >"$WORK/roots" || true
  ps -eo pid=,ppid= | awk -v roots="$(xargs <"$WORK/roots")" '
    BEGIN { split(roots, r, " "); for (i in r) ours[r[i]] = 1 }
    { parent[$1] = $2 }
    END { for (p in parent) for (q = p; q > 1; q = parent[q]) if (q in ours) { print p; break } }' |
    while read -r pid; do echo "$pid $(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null)"; done
}

# survivors FILE: those of them that are still there and aren't zombies.
survivors() {
  local pid start
  while read -r pid start; do
    [ -n "$start" ] && ! process_ended "$pid" && [ "$(cut -d' ' -f22 "/proc/$pid/stat" 2>/dev/null)" = "$start" ] &&
      echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done <"$1" || true
}

# compare WHAT: a moment is given to what the kernel tears down by itself.
compare() {
  for _ in $(seq 20); do
    rm -rf "$WORK/after"
    picture "$WORK/after"
    survivors "$WORK/processes" >"$WORK/after/processes"
    : >"$WORK/before/processes"
    # A module that was loaded brings settings of its own; those were not touched.
    join -t= -j1 -o 2.1,2.2 <(sort -t= -k1,1 "$WORK/before/sysctls") <(sort -t= -k1,1 "$WORK/after/sysctls") | sort >"$WORK/after/sysctls.same"
    mv "$WORK/after/sysctls.same" "$WORK/after/sysctls"
    if diff -r "$WORK/before" "$WORK/after" >"$WORK/difference"; then
      echo "ok: $1: nothing is left of $(wc -l <"$WORK/processes") processes, and the machine is as it was"
      return
    fi
    sleep 0.5
  done
  echo "LEFT BEHIND: $1" >&2
  cat "$WORK/difference" >&2
  exit 1
}

picture "$WORK/before"
"$CLUSTER_HOME/up.sh"
"$CLUSTER_HOME/vm/up.sh" "$BIN"/images/*.tar
"$CLUSTER_HOME/zoo.sh" leak static userns web shared-pid >/dev/null
kube -n leak apply -f - >/dev/null <<'P'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}
P
wait_for 20 kube -n leak exec static -- /zooapp get http://web.leak/ # the policy is in force bit by bit
wait_for 10 sh -c "nsenter -t $(node_pid 1) -n ipset list -name | grep -q KUBE"
"$CLUSTER_HOME/faults.sh" proxy $((FIRST_PORT + 10000)) >/dev/null
processes >"$WORK/processes"
"$CLUSTER_HOME/down.sh"
compare "a cluster with pods and the VM node"

(setsid "$CLUSTER_HOME/up.sh" >/dev/null 2>&1 & echo $! >"$WORK/starter")
starter=$(cat "$WORK/starter")
wait_for 20 test -s "$STATE/run/daemon.1.kube-apiserver"
processes >"$WORK/processes"
kill -9 -- "-$starter" 2>/dev/null || kill -9 "$starter"
wait_for 5 process_ended "$starter"
"$CLUSTER_HOME/down.sh"
compare "a start that was killed"

"$CLUSTER_HOME/down.sh" --purge
[ ! -e "$STATE" ] || { echo "LEFT BEHIND: down.sh --purge leaves $STATE" >&2; exit 1; }
echo "ok: down.sh --purge removes the state folder"
