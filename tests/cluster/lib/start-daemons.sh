# Every daemon of the cluster and its flags; sourced by up.sh after nodes.sh.
# shellcheck shell=bash

OPT=/opt/cluster/bin
PKI=/opt/cluster/pki
ETC=/etc/cluster

start_containerd() { # N
  daemon "$1" containerd $OPT/containerd -c $ETC/containerd.toml
}

start_etcd() {
  daemon 1 etcd $OPT/etcd --name node1 --data-dir /var/lib/etcd --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster node1=http://127.0.0.1:2380
}

start_apiserver() {
  local flags=()
  # What another minor has to be told.
  [ -z "${PODBENCH_KUBERNETES:-}" ] || mapfile -t flags <"$CLUSTER_HOME/variants/kubernetes-$PODBENCH_KUBERNETES/apiserver.flags"
  daemon 1 kube-apiserver $OPT/kube-apiserver \
    --etcd-servers http://127.0.0.1:2379 --advertise-address "$NODE_NET.1" --bind-address 0.0.0.0 --secure-port 6443 \
    --tls-cert-file $PKI/apiserver.crt --tls-private-key-file $PKI/apiserver.key --client-ca-file $PKI/ca.crt \
    --kubelet-client-certificate $PKI/apiserver-kubelet-client.crt --kubelet-client-key $PKI/apiserver-kubelet-client.key \
    --kubelet-certificate-authority $PKI/ca.crt --kubelet-preferred-address-types InternalIP \
    --proxy-client-cert-file $PKI/front-proxy-client.crt --proxy-client-key-file $PKI/front-proxy-client.key \
    --requestheader-client-ca-file $PKI/front-proxy-ca.crt --requestheader-allowed-names front-proxy-client \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- --enable-aggregator-routing \
    --service-account-issuer https://kubernetes.default.svc.cluster.local --service-account-key-file $PKI/sa.pub \
    --service-account-signing-key-file $PKI/sa.key --service-cluster-ip-range "$SERVICE_NET.0.0/16" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
    --profiling=false --shutdown-delay-duration 0s "${flags[@]}"
}

# kube-api-qps: a service account for each controller costs 40 token requests
# at the start, which the default of 20 a second makes 5 s of.
start_controllers() {
  daemon 1 kube-controller-manager $OPT/kube-controller-manager --kubeconfig $PKI/controllers.conf \
    --authentication-kubeconfig $PKI/controllers.conf --authorization-kubeconfig $PKI/controllers.conf \
    --service-account-private-key-file $PKI/sa.key --root-ca-file $PKI/ca.crt \
    --cluster-signing-cert-file $PKI/ca.crt --cluster-signing-key-file $PKI/ca.key --use-service-account-credentials \
    --leader-elect=false --node-monitor-grace-period 20s --kube-api-qps 500 --kube-api-burst 1000 --cluster-name "$NAME"
  daemon 1 kube-scheduler $OPT/kube-scheduler --kubeconfig $PKI/scheduler.conf \
    --authentication-kubeconfig $PKI/scheduler.conf --authorization-kubeconfig $PKI/scheduler.conf --leader-elect=false
}

start_kubelet() { # N
  daemon "$1" kubelet $OPT/kubelet --config $ETC/kubelet.yaml --kubeconfig "$PKI/node$1.conf" \
    --root-dir /var/lib/kubelet --cert-dir /var/lib/kubelet/pki --hostname-override "node$1" --node-ip "$NODE_NET.$1"
}

start_proxy() { # N
  daemon "$1" kube-proxy $OPT/kube-proxy --config $ETC/kube-proxy.yaml --hostname-override "node$1"
}

start_netpol() { # N
  daemon "$1" netpol $OPT/netpol --kubeconfig $PKI/netpol.conf --hostname-override "node$1" \
    --service-cluster-ip-range "$SERVICE_NET.0.0/16" --health-port 0 --metrics-port 0
}
