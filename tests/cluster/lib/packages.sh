# What the cluster needs from Debian; sourced after settings.sh.
# shellcheck shell=bash

# program or file : package that has it
NEEDED=(
  /usr/lib/cni/ptp:containernetworking-plugins
  iptables:iptables nft:nftables ipset:ipset ip:iproute2 nsenter:util-linux
  openssl:openssl gcc:gcc pkg-config:pkg-config /usr/include/seccomp.h:libseccomp-dev
  /usr/include/stdlib.h:libc6-dev python3:python3 ps:procps ssh:openssh-client flock:util-linux mke2fs:e2fsprogs /etc/ssl/certs/ca-certificates.crt:ca-certificates
)

# missing_packages: a line each. It looks at the files, so that a machine that
# got them another way is as good.
missing_packages() {
  local entry file
  for entry in "${NEEDED[@]}"; do
    file=${entry%%:*}
    case $file in
      /*) [ -e "$file" ] ;;
      *) command -v "$file" >/dev/null || [ -x "/usr/sbin/$file" ] ;;
    esac || echo "${entry#*:}"
  done
}

# install_missing: nothing, when nothing is missing.
install_missing() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  local log=$STATE/log/packages.log
  command -v apt-get >/dev/null || { echo "these are missing and there is no apt-get: ${missing[*]}" >&2; return 1; }
  apt_install "${missing[@]}" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
  say "installed ${missing[*]}"
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  local install=(apt-get install -y -q --no-install-recommends "$@")
  "${install[@]}" || { apt-get update -q && "${install[@]}"; } # old lists: fetch them, once more
}
