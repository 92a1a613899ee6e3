#!/usr/bin/env bash
# ./dev demo: a seat in a distroless, non-root pod of a restricted namespace, and a command over ssh.
# It works in a home of its own with a key of its own, so your ~/.ssh and ~/.podbench stay as they are.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HOME=${PODBENCH_CLUSTER_DIR:-$ROOT/.cluster}/demo; export HOME
NS=demo
mkdir -p -m 700 "$HOME/.ssh"
[ -e "$HOME/.ssh/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C demo -f "$HOME/.ssh/id_ed25519"
# The line as it could be pasted, and then what it does.
show() { printf '\n$'; printf ' %q' "$@"; printf '\n'; "$@"; }

kubectl get namespace "$NS" >/dev/null 2>&1 || kubectl create namespace "$NS" >/dev/null
kubectl label --overwrite namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
"$ROOT/tests/cluster/zoo.sh" "$NS" odd-ids >&2
show podbench -n "$NS" attach odd-ids
# ssh takes the home of the user's passwd record for ~, so the stanza is named.
stanza=$(find "$HOME/.podbench/config.d" -name '*.conf' -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d ' ' -f 2-)
alias=$(sed -n 's/^Host //p' "$stanza")
trap 'ssh -F "$stanza" -O exit "$alias" 2>/dev/null || true' EXIT
show ssh -F "$stanza" "$alias" 'id; tr "\0" " " </proc/1/cmdline; echo; ls /proc/1/root'
cat <<H

That was a seat in a pod without a shell, in a namespace that allows no root. Go on with
  eval "\$(./dev env)"                      # KUBECONFIG, PODBENCH_IMAGE and a PATH with podbench
  podbench -n $NS attach odd-ids            # with a key of your own in ~/.ssh
  ./dev down --purge                        # ends the cluster and removes its folder
H
