#!/bin/bash
# Records what a live cluster says when it says no: one file of kubectl's stderr per situation.
#   KUBECONFIG=… KUBECONFIG_ORIGINAL=$KUBECONFIG IN_NODE="nsenter …" record.sh
# IN_NODE runs a program where 127.0.0.1 is the API server's own (for the webhook that denies).
# Needs cluster-admin. Everything happens in namespaces named core-samples-*, which it deletes.
set -uo pipefail
cd "$(dirname "$0")"
A=core-samples-open B=core-samples-restricted
image=podbench.test/nonroot:1
trap 'kubectl delete ns $A $B --wait=false >/dev/null 2>&1
  kubectl delete mutatingadmissionpolicy,mutatingadmissionpolicybinding,validatingadmissionpolicy,validatingadmissionpolicybinding,validatingwebhookconfiguration -l core-samples=1 >/dev/null 2>&1
  rm -rf /tmp/core-samples.*' EXIT

kubectl create ns $A >/dev/null; kubectl create ns $B >/dev/null
kubectl label ns $A core-samples=open >/dev/null
pod() { # namespace name
  kubectl -n "$1" apply -f - >/dev/null <<EOF
apiVersion: v1
kind: Pod
metadata: {name: $2}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: app, image: $image, imagePullPolicy: Never, securityContext: {runAsUser: 1234, runAsGroup: 1234, runAsNonRoot: true, allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}}}
EOF
  kubectl -n "$1" wait --for=condition=Ready "pod/$2" --timeout=60s >/dev/null
}
with() { # namespace pod container-json [jq filter]
  kubectl -n "$1" get pod "$2" -o json | python3 -c '
import json, sys
pod = json.load(sys.stdin)
pod["spec"].setdefault("ephemeralContainers", []).append(json.loads(sys.argv[1]))
json.dump(pod, sys.stdout)' "$3"
}
put() { # sample namespace pod container-json [query] [kubectl flags]
  local sample=$1 ns=$2 name=$3 body=$4 query=${5-?dryRun=All}; shift 5 || shift $#
  with "$ns" "$name" "$body" | kubectl "$@" -n "$ns" replace --raw "/api/v1/namespaces/$ns/pods/$name/ephemeralcontainers$query" -f - 2>"$sample.txt" >/dev/null
}
keep() { local sample=$1; shift; "$@" 2>"$sample.txt" >/dev/null; }
full='{"name":"podbench-1","image":"'$image'","targetContainerName":"app","securityContext":{"runAsUser":0,"runAsGroup":0,"runAsNonRoot":false,"privileged":false,"allowPrivilegeEscalation":false,"capabilities":{"add":["SYS_PTRACE"]}}}'
degraded='{"name":"podbench-2","image":"'$image'","targetContainerName":"app","securityContext":{"runAsUser":1234,"runAsGroup":1234,"runAsNonRoot":true,"privileged":false,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}'
pod $A api; pod $B api

# Pod Security: the new seat; an older one; both
kubectl label ns $B pod-security.kubernetes.io/enforce=restricted >/dev/null
put pod-security $B api "$full"
kubectl label ns $B pod-security.kubernetes.io/enforce- >/dev/null
put /tmp/core-samples.x $B api "$full" '' 
kubectl label ns $B pod-security.kubernetes.io/enforce=restricted >/dev/null
put pod-security-older-seat $B api "$degraded"
put pod-security-both $B api "${full/podbench-1/podbench-3}"

# RBAC, as a service account without rights, and with some
kubectl -n $A create sa nobody >/dev/null
kubectl -n $A create role reader --verb=get --resource=pods >/dev/null
kubectl -n $A create rolebinding reader --role=reader --serviceaccount=$A:nobody >/dev/null
as="--as=system:serviceaccount:$A:nobody"
keep rbac-get kubectl "$as" -n $B get pod api -o json
keep rbac-list kubectl "$as" -n $A get pods -o json
keep rbac-exec kubectl "$as" -n $A exec api -c app -- /none
put rbac-update $A api "$full" '?dryRun=All' "$as"
keep rbac-impersonate kubectl "$as" --as-group=system:masters --as-uid=1 -n $A get pod api
KUBECONFIG=/tmp/core-samples.kc; cp "${KUBECONFIG_ORIGINAL:?}" $KUBECONFIG
export KUBECONFIG
kubectl config set-credentials nobody --token="$(kubectl -n $A create token nobody)" >/dev/null
timeout 3 kubectl --user=nobody -n $A get pod api -w -o json --output-watch-events 2>rbac-watch.txt >/dev/null
keep rbac-impersonate kubectl --user=nobody --as=admin -n $A get pod api
kubectl config set-credentials bad --token=nonsense >/dev/null
kubectl config set-credentials plugin --exec-command=/no/such/plugin --exec-api-version=client.authentication.k8s.io/v1 --exec-interactive-mode=IfAvailable >/dev/null
mkdir -p /tmp/core-samples.d
printf '#!/bin/sh\necho "session expired: run corp login" >&2; exit 1\n' >/tmp/core-samples.d/plugin; chmod +x /tmp/core-samples.d/plugin
kubectl config set-credentials failing --exec-command=/tmp/core-samples.d/plugin --exec-api-version=client.authentication.k8s.io/v1 --exec-interactive-mode=IfAvailable >/dev/null
keep unauthorized kubectl --user=bad get pod api
keep plugin-missing kubectl --user=plugin get pod api
keep plugin-failed kubectl --user=failing get pod api </dev/null

# not found, of several kinds
keep not-found kubectl -n $A get pod nonesuch -o json
keep not-found-deployment kubectl -n $A get deployment nonesuch -o json
keep not-found-namespace kubectl -n core-samples-none get pod api
kubectl -n $A get pod api -o json | kubectl -n $A replace --raw "/api/v1/namespaces/$A/pods/api/nosuchthing" -f - 2>no-subresource.txt >/dev/null

# conflict, invalid
with $A api "$full" | python3 -c 'import json,sys; p=json.load(sys.stdin); p["metadata"]["resourceVersion"]="1"; json.dump(p,sys.stdout)' |
  kubectl -n $A replace --raw "/api/v1/namespaces/$A/pods/api/ephemeralcontainers?dryRun=All" -f - 2>conflict.txt >/dev/null
put invalid $A api "${full/\"targetContainerName\":\"app\"/\"targetContainerName\":\"api\"}"
put invalid-mount $A api '{"name":"podbench-1","image":"x","targetContainerName":"app","volumeMounts":[{"name":"none","mountPath":"/x"}]}'
put invalid-resources $A api '{"name":"podbench-1","image":"x","resources":{"limits":{"cpu":"1"}}}'

# policies
cat >/tmp/core-samples.policy <<EOF
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: core-samples-no-root, labels: {core-samples: "1"}}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {core-samples: open}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}]
  validations: [{expression: "object.spec.ephemeralContainers.all(c, c.image.startsWith('registry.corp/'))", message: "images come from registry.corp only"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: core-samples-no-root, labels: {core-samples: "1"}}
spec: {policyName: core-samples-no-root, validationActions: [Deny]}
EOF
kubectl apply -f /tmp/core-samples.policy >/dev/null; sleep 4
put policy $A api "$full"
sed 's/images come/x/; s/validations: \[{/validations: [{reason: Forbidden, /' /tmp/core-samples.policy | kubectl apply -f - >/dev/null; sleep 3
put policy-forbidden $A api "$full"
kubectl delete -f /tmp/core-samples.policy >/dev/null

# a webhook that nobody answers, and one that denies
cat >/tmp/core-samples.hook <<EOF
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: core-samples, labels: {core-samples: "1"}}
webhooks:
- name: deny.core-samples.test
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 2
  failurePolicy: Fail
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {core-samples: open}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}]
EOF
kubectl apply -f /tmp/core-samples.hook >/dev/null; sleep 3
put webhook-failed $A api "$full"
kubectl delete -f /tmp/core-samples.hook >/dev/null; sleep 2

if [ -n "${IN_NODE:-}" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hook -addext subjectAltName=IP:127.0.0.1 \
    -keyout /tmp/core-samples.key -out /tmp/core-samples.crt 2>/dev/null
  cat >/tmp/core-samples.py <<'EOF'
import http.server, json, ssl
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        uid = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]["uid"]
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": uid, "allowed": False,
            "status": {"code": 403, "message": "\n\nresource Pod/x was blocked due to the following policies\n\nno-root:\n  no-root: 'validation error: root is not allowed. rule no-root failed at path /spec/ephemeralContainers/0/'\n"}}}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", 18998), Hook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("/tmp/core-samples.crt", "/tmp/core-samples.key")
server.socket = context.wrap_socket(server.socket, server_side=True); server.serve_forever()
EOF
  $IN_NODE python3 /tmp/core-samples.py & hook=$!
  sed "s|https://127.0.0.1:1/\"|https://127.0.0.1:18998/\", caBundle: $(base64 -w0 /tmp/core-samples.crt)|" /tmp/core-samples.hook | kubectl apply -f - >/dev/null; sleep 4
  put webhook-denied $A api "$full"
  kubectl delete -f /tmp/core-samples.hook >/dev/null; kill $hook; sleep 2
fi

# quota on the pod's own objects doesn't reach a seat; the wording is the same for any object
kubectl -n $A create quota none --hard=pods=1 >/dev/null; sleep 2
keep quota kubectl -n $A run second --image=$image
kubectl -n $A delete quota none >/dev/null

# a mutating policy that is newer than a seat
put /tmp/core-samples.x $A api "$full" ''
cat >/tmp/core-samples.map <<EOF
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: core-samples-strip, labels: {core-samples: "1"}}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {core-samples: open}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: "lists.range(size(object.spec.ephemeralContainers)).map(i, JSONPatch{op: 'remove', path: '/spec/ephemeralContainers/' + string(i) + '/securityContext/capabilities'})"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: core-samples-strip, labels: {core-samples: "1"}}
spec: {policyName: core-samples-strip}
EOF
kubectl apply -f /tmp/core-samples.map >/dev/null; sleep 4
put frozen $A api "$degraded"
kubectl delete -f /tmp/core-samples.map >/dev/null

# servers that can't be reached
keep unreachable-refused kubectl --server=http://127.0.0.1:1 -n $A get pod api
keep unreachable-name kubectl --server=https://no.such.host.invalid -n $A get pod api
keep proxy-dead env HTTPS_PROXY=http://127.0.0.1:1 kubectl --server=https://10.1.2.3:6443 -n $A get pod api
keep unreachable-tls kubectl --certificate-authority=/etc/ssl/certs/ca-certificates.crt -n $A get pod api
keep no-kubeconfig env -u KUBECONFIG HOME=/nonexistent kubectl get pod api
keep no-context kubectl --context=nonesuch get pod api
keep no-context-view kubectl --context=nonesuch config view --minify
python3 -c '
import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 18999)); s.listen(50); time.sleep(40)' & silent=$!
sleep 0.5
keep unreachable-silent kubectl --server=http://127.0.0.1:18999 --request-timeout=2s -n $A get pod api
kill $silent

# exec
keep exec-no-container kubectl -n $A exec api -c nonesuch -- /none
keep exec-no-program kubectl -n $A exec api -c app -- /none
keep exec-exit kubectl -n $A exec api -c app -- /zooapp -nonesuch
# a node that the API server doesn't reach
kubectl create -f - >/dev/null <<Y
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "core-samples-ghost"}}
Y
ghost() { kubectl patch node core-samples-ghost --subresource=status --type=merge -p "{\"status\":{\"addresses\":$1,\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":1}}}}" >/dev/null; }
ghost '[{"type":"InternalIP","address":"127.0.0.1"}]'
kubectl -n $A create -f - >/dev/null <<Y
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ghost"}, "spec": {"nodeName": "core-samples-ghost",
 "automountServiceAccountToken": false, "containers": [{"name": "app", "image": "podbench.test/static:1"}]}}
Y
keep exec-node kubectl -n $A exec ghost -c app -- true
keep exec-node-spdy env KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false kubectl -n $A exec ghost -c app -- true
ghost null
keep exec-node-address kubectl -n $A exec ghost -c app -- true
kubectl -n $A delete pod ghost --force --grace-period=0 >/dev/null 2>&1
kubectl delete node core-samples-ghost >/dev/null
wc -c *.txt
