#!/bin/bash
# Writes the configuration of node N's daemons: node-config.sh N
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/settings.sh"
N=$1
ETC=$STATE/node$N/etc
mkdir -p "$ETC/cni"

# Debian's containerd package puts an old shim into /usr/bin, so ours is named
# by path. restrict_oom_score_adj: lowering it takes CAP_SYS_RESOURCE, which a
# machine that is itself a container or a small VM may lack. no_sync: a store
# that is lost in a power cut is made anew from its archives.
cat >"$ETC/containerd.toml" <<K
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.differ.v1.erofs", "io.containerd.tracing.processor.v1.otlp"]
[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "podbench.test/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "/etc/cluster/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  runtime_path = "/opt/cluster/bin/containerd-shim-runc-v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "/opt/cluster/bin/runc"
  SystemdCgroup = false
K

# ptp, not bridge: pods are routed, so that policies and a pod's way to its own
# Service need no br_netfilter.
cat >"$ETC/cni/10-ptp.conflist" <<K
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "mtu": 1500,
   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam",
            "ranges": [[{"subnet": "$POD_NET.$N.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
K

# Evictions and image collection are off but for memory: the disk is shared
# with everything else on the machine.
cat >"$ETC/kubelet.yaml" <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /$NAME-node$N
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /opt/cluster/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: /opt/cluster/pki/node$N.crt
tlsPrivateKeyFile: /opt/cluster/pki/node$N.key
clusterDNS: [$SERVICE_NET.0.10]
clusterDomain: cluster.local
resolvConf: /etc/resolv.conf
oomScoreAdj: 0
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 4s
syncFrequency: 10s
fileCheckFrequency: 1h
shutdownGracePeriod: 0s
K
[ "$N" != "$VM_NODE" ] || echo 'registerWithTaints: [{key: podbench.test/vm, value: "true", effect: NoSchedule}]' >>"$ETC/kubelet.yaml"

cat >"$ETC/kube-proxy.yaml" <<K
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: /opt/cluster/pki/kube-proxy.conf}
clusterCIDR: $POD_NET.0.0/16
detectLocalMode: ClusterCIDR
conntrack: {maxPerCore: 0, min: 0}
nodePortAddresses: [primary]
nftables: {minSyncPeriod: 0s, syncPeriod: 30s}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
oomScoreAdj: 0
K
