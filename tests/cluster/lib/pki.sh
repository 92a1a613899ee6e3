#!/bin/bash
# Keys, certificates and kubeconfigs, made once for a state folder: pki.sh PORT
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/settings.sh"
PORT=$1
mkdir -p "$STATE/pki" && cd "$STATE/pki"
umask 077
WANTED="nodes=$VM_NODE port=$PORT"
[ "$(cat made 2>/dev/null)" != "$WANTED" ] || exit 0

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

authority() { # NAME
  [ -e "$1.crt" ] && return
  key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 -out "$1.crt" 2>/dev/null
}

certificate() { # AUTHORITY NAME SUBJECT [SUBJECT-ALT-NAMES]
  key "$2"
  openssl req -new -key "$2.key" -subj "$3" 2>/dev/null |
    openssl x509 -req -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days 3650 -out "$2.crt" -extfile <(
      echo "extendedKeyUsage=clientAuth,serverAuth"
      [ -z "${4:-}" ] || echo "subjectAltName=$4"
    ) 2>/dev/null
}

kubeconfig() { # FILE NAME SERVER: with NAME's certificate inside
  cat >"$1" <<K
apiVersion: v1
kind: Config
current-context: $NAME
clusters: [{name: $NAME, cluster: {server: "$3", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $2, user: {client-certificate-data: $(base64 -w0 "$2.crt"), client-key-data: $(base64 -w0 "$2.key")}}]
contexts: [{name: $NAME, context: {cluster: $NAME, user: $2}}]
K
}

authority ca
authority front-proxy-ca
[ -e sa.pub ] || { openssl genrsa -out sa.key 2048 && openssl rsa -in sa.key -pubout -out sa.pub; } 2>/dev/null

API_NAMES=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
API_NAMES+=,DNS:localhost,IP:127.0.0.1,IP:$NODE_NET.1,IP:$SERVICE_NET.0.1
certificate ca apiserver /CN=kube-apiserver "$API_NAMES"
certificate ca apiserver-kubelet-client /O=system:masters/CN=apiserver-kubelet-client
certificate front-proxy-ca front-proxy-client /CN=front-proxy-client
certificate ca admin /O=system:masters/CN=admin
certificate ca controllers /CN=system:kube-controller-manager
certificate ca scheduler /CN=system:kube-scheduler
certificate ca kube-proxy /CN=system:kube-proxy
certificate ca netpol /CN=netpol
for n in $(seq "$VM_NODE"); do
  certificate ca "node$n" "/O=system:nodes/CN=system:node:node$n" "DNS:node$n,IP:$NODE_NET.$n,IP:127.0.0.1"
done

for user in admin controllers scheduler kube-proxy netpol $(seq -f 'node%g' "$VM_NODE"); do
  kubeconfig "$user.conf" "$user" "https://$NODE_NET.1:6443" # for use inside the nodes
done
kubeconfig "$ADMIN" admin "https://127.0.0.1:$PORT"          # for use on the machine
echo "$WANTED" >made
