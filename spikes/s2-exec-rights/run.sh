#!/usr/bin/env bash
# Which right on pods/exec does a kubectl exec need: create, get, or both?  run.sh NAMESPACE (with a zoo pod `debian`)
set -u
ns=$1
kubectl -n "$ns" create sa probe >/dev/null
server=$(kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster.server}')
ca=$(mktemp); kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$ca"
for verbs in create get; do
  kubectl -n "$ns" delete role,rolebinding probe --ignore-not-found >/dev/null
  kubectl -n "$ns" create role probe --verb=get --resource=pods >/dev/null
  kubectl -n "$ns" patch role probe --type=json -p "[{\"op\":\"add\",\"path\":\"/rules/-\",\"value\":{\"apiGroups\":[\"\"],\"resources\":[\"pods/exec\"],\"verbs\":[\"$verbs\"]}}]" >/dev/null
  kubectl -n "$ns" create rolebinding probe --role=probe --serviceaccount="$ns:probe" >/dev/null
  token=$(kubectl -n "$ns" create token probe)
  for ws in true false; do
    echo "--- pods/exec: $verbs, websockets: $ws"
    KUBECTL_REMOTE_COMMAND_WEBSOCKETS=$ws kubectl --kubeconfig=/dev/null --server="$server" --certificate-authority="$ca" --token="$token" -n "$ns" exec debian -- echo arrived 2>&1 | sed 's/User "[^"]*"/User "…"/'
  done
done
rm -f "$ca"
