#!/bin/bash
# PID 1 of the VM node: the same daemons with the same flags as on the cluster's other nodes, on a kernel
# of its own. What goes wrong before they run is on the console.
export PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
# shellcheck disable=SC1091 # written by up.sh: NODE, NAME, NODE_NET, POD_NET, SERVICE_NET, NODES, YAMA
. /etc/cluster/settings
for place in proc:proc sysfs:sys tmpfs:run tmpfs:tmp cgroup2:sys/fs/cgroup securityfs:sys/kernel/security bpf:sys/fs/bpf; do
  mount -t "${place%%:*}" "${place%%:*}" "/${place#*:}"
done
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount --make-rshared /

hostname "node$NODE"
modprobe -a virtio_net overlay veth
ip link set lo up
ip addr add "$NODE_NET.$NODE/24" dev eth0
ip link set eth0 up
ip route add default via "$NODE_NET.1"
for n in $(seq "$NODES"); do ip route add "$POD_NET.$n.0/24" via "$NODE_NET.$n"; done
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
# All that an LSM says; by default the kernel keeps ten lines of it in five seconds.
echo 0 >/proc/sys/kernel/printk_ratelimit

# The kubelet's cgroup root, with what the pods need below it.
for f in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$f" >/sys/fs/cgroup/cgroup.subtree_control; done
mkdir -p "/sys/fs/cgroup/$NAME-node$NODE"
for f in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$f" >"/sys/fs/cgroup/$NAME-node$NODE/cgroup.subtree_control"; done
for profile in /etc/cluster/*.apparmor; do apparmor_parser -K -a "$profile"; done
echo "$YAMA" >/proc/sys/kernel/yama/ptrace_scope
echo "LSMs: $(cat /sys/kernel/security/lsm); Yama: $(cat /proc/sys/kernel/yama/ptrace_scope)"

# Their logs leave the machine by its second serial port.
daemon() { # N NAME COMMAND...
  shift 2
  "$@" </dev/null >>/dev/ttyS1 2>&1 &
}
# shellcheck source=../lib/start-daemons.sh
. /opt/cluster/start-daemons.sh
start_containerd "$NODE"
until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done
start_kubelet "$NODE"
start_proxy "$NODE"
echo "daemons started after $(cut -d' ' -f1 /proc/uptime) s"
while :; do
  sleep infinity &
  wait $! || true
done
