#!/usr/bin/env bash
# ./dev demo: a seat in a distroless, non-root pod of a restricted namespace, and a command over ssh.
# It works in a home of its own with a key of its own, so your ~/.ssh and ~/.podbench stay as they are.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HOME=$(mktemp -d); export HOME
NS=demo
trap 'ssh -F "${stanza:-/dev/null}" -O exit "$(basename "${stanza:-demo}" .conf)" 2>/dev/null; rm -rf "$HOME"' EXIT
mkdir -m 700 "$HOME/.ssh"
ssh-keygen -q -t ed25519 -N '' -C demo -f "$HOME/.ssh/id_ed25519"
show() { printf '\n$ %s\n' "$*"; "$@"; }

kubectl get namespace "$NS" >/dev/null 2>&1 || kubectl create namespace "$NS"
kubectl label --overwrite namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
"$ROOT/tests/cluster/zoo.sh" "$NS" odd-ids >&2
show podbench -n "$NS" attach odd-ids
# ssh takes the home of the user's passwd record for ~, so the stanza is named.
stanza=$(echo "$HOME"/.podbench/config.d/*.conf)
show ssh -F "$stanza" "$(basename "$stanza" .conf)" 'id; tr "\0" " " </proc/1/cmdline; echo; ls /proc/1/root'
