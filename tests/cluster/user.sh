#!/bin/bash
# Prints a kubeconfig for a certificate user without any rights of its own:
#   user.sh NAME [GROUP...] >FILE
# What the user may do is then granted by RBAC, to User NAME or Group GROUP.
set -euo pipefail
# shellcheck source=lib/settings.sh
. "$(dirname "$0")/lib/settings.sh"
[ $# -gt 0 ] || { echo "usage: user.sh NAME [GROUP...]" >&2; exit 2; }
[ -e "$ADMIN" ] || { echo "the cluster isn't up: up.sh" >&2; exit 1; }
user=$1
shift
subject=/CN=$user
for group; do subject+=/O=$group; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
openssl ecparam -name prime256v1 -genkey -noout -out "$work/key"
# The serial is random: two callers at once share no serial file.
openssl req -new -key "$work/key" -subj "$subject" 2>/dev/null |
  openssl x509 -req -CA "$STATE/pki/ca.crt" -CAkey "$STATE/pki/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days 30 -extfile <(echo extendedKeyUsage=clientAuth) -out "$work/crt" 2>/dev/null
sed -e "s|^users:.*|users: [{name: \"$user\", user: {client-certificate-data: $(base64 -w0 "$work/crt"), client-key-data: $(base64 -w0 "$work/key")}}]|" \
  -e "s|user: admin}|user: \"$user\"}|" "$ADMIN"
