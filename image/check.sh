#!/bin/bash
# check.sh TAR|ROOTFS [slim|full]: does a built seat image keep its promises?
#
# Reads the files, then lives in them: in a mount namespace of its own, a copy
# of the image gets an ssh round trip as root, as the default seat, as odd ids
# and on a read-only root. Says what is broken and exits 1. Needs root; leaves
# nothing behind and changes nothing in ROOTFS.
set -euo pipefail

if [ -z "${PODBENCH_CHECK_NS:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "check: needs root" >&2; exit 2; }
  PODBENCH_CHECK_NS=1 exec unshare --mount --propagation slave -- "$0" "$@"
fi

image=${1:?usage: check.sh TAR|ROOTFS [slim|full]}
work=$(mktemp -d)
trap 'umount -R "$work"/seat 2>/dev/null; umount "$work/own" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT

kept=0 broken=0
# promise WORDS: COMMAND... holds; what it prints goes with a failure.
promise() {
  local words=$1 said
  shift
  if said=$("$@" 2>&1 </dev/null); then kept=$((kept + 1)); return; fi
  broken=$((broken + 1))
  printf 'broken: %s\n' "$words"
  [ -z "$said" ] || head -n 12 <<<"$said" | sed 's/^/        /'
}
nothing() { # COMMAND... prints nothing
  local said
  if said=$("$@") && [ -z "$said" ]; then return; fi
  echo "$said"
  return 1
}

# --- the files, as a node would unpack them

bytes=0
if [ -d "$image" ]; then
  root=$(cd "$image" && pwd)
  bytes=$(du -sbx "$root" | cut -f1)
  target=${2:-full}
else
  root=$work/root
  mkdir "$root"
  manifest=$(tar -xOf "$image" manifest.json)
  config=$(tar -xOf "$image" "$(grep -o '"Config":"[^"]*"' <<<"$manifest" | cut -d'"' -f4)")
  for layer in $(grep -o '"Layers":\[[^]]*\]' <<<"$manifest" | cut -d'[' -f2 | tr -d '"]' | tr , ' '); do
    tar -xOf "$image" "$layer" | gzip -dcf >"$work/layer"
    bytes=$((bytes + $(stat -c %s "$work/layer")))
    tar -tf "$work/layer" | { grep -E '(^|/)\.wh\.' || true; } | while read -r gone; do
      case ${gone##*/} in
        .wh..wh..opq) find "$root/$(dirname "$gone")" -mindepth 1 -delete ;;
        *) rm -rf "${root:?}/$(dirname "$gone")/${gone##*/.wh.}" ;;
      esac
    done
    tar -xpf "$work/layer" -C "$root" --numeric-owner --xattrs --xattrs-include='*' --exclude='.wh.*'
    rm "$work/layer"
  done
  case $manifest in *seat-slim:*) target=slim ;; *) target=full ;; esac
  target=${2:-$target}
  says() { grep -qF "$1" <<<"$config"; }
  without() { ! says "$1"; }
  promise 'the command is the agent' says '"Cmd":["/usr/local/bin/podbench","agent"]'
  promise 'there is no entry point' without '"Entrypoint"'
  promise 'the user is a number and not root' says '"User":"65532:65532"'
fi
case $target in
  slim) budget=140 ;;
  full) budget=414 ;; # 60 % of the tool it is measured against
  *) echo "check: no target $target" >&2; exit 2 ;;
esac

at_most() { [ "$1" -le "$2" ] || { echo "$1 bytes"; return 1; }; }
mode_is() { # WHAT PATH
  local is
  is=$(stat -c '%F %a %u:%g' "$root/$2")
  [ "$is" = "$1" ] || { echo "$2: $is, not $1"; return 1; }
}
capabilities() { tar -C "$root" --one-file-system --xattrs --xattrs-include=security.capability --ignore-failed-read -cf - . 2>/dev/null | grep -a -o 'SCHILY.xattr.security.capability' || true; }
secrets() { grep -rlI -e '-----BEGIN [A-Z ]*PRIVATE KEY' "$root/etc" "$root/root" "$root/home" "$root/var" "$root/tmp" "$root/run" 2>/dev/null || true; }
leftovers() {
  find "$root"/var/lib/apt/lists "$root"/var/cache/apt "$root"/tmp "$root"/var/tmp "$root"/var/log/apt "$root"/usr/share/man -mindepth 1 -type f ! -name lock 2>/dev/null || true
  find "$root/usr/share/doc" -type f ! -name copyright 2>/dev/null || true
}
wired() { grep -Eq '^passwd:[[:space:]]+files extrausers[[:space:]]*$' "$root/etc/nsswitch.conf"; }

promise "unpacked it is at most $budget MB" at_most "$bytes" $((budget * 1000000))
promise 'nothing is setuid or setgid' nothing find "$root" -xdev -perm /6000 -printf '%m %P\n'
promise 'no file has capabilities' nothing capabilities
promise 'no ssh host key is baked in' nothing find "$root/etc/ssh" -name 'ssh_host_*'
promise 'no private key is baked in' nothing secrets
promise 'no package lists, caches, manual pages or documentation are left' nothing leftovers
promise 'nsswitch asks extrausers for names' wired
promise 'anyone may append an NSS record' mode_is 'regular empty file 666 0:0' var/lib/extrausers/passwd
promise 'nobody may replace the NSS records' mode_is 'directory 755 0:0' var/lib/extrausers
promise 'each seat can make its runtime folder' mode_is 'directory 1777 0:0' run/podbench
promise 'sshd has its folder' mode_is 'directory 755 0:0' run/sshd
promise 'the accounts are root'"'"'s to write' mode_is 'regular file 644 0:0' etc/passwd
promise 'the agent is there' mode_is 'regular file 755 0:0' usr/local/bin/podbench

# --- the files, lived in

# seat rw|ro: a fresh copy, as a runtime would give it to a container.
seat() {
  local d=$work/seat f
  umount -R "$d" 2>/dev/null || true
  umount "$work/own" 2>/dev/null || true
  mkdir -p "$d" "$work/own"
  mount -t tmpfs own "$work/own"
  mkdir "$work/own/upper" "$work/own/work"
  mount -t overlay seat -o "lowerdir=$root,upperdir=$work/own/upper,workdir=$work/own/work" "$d"
  [ "$1" = rw ] || mount -o remount,ro,bind "$d"
  mount -t proc proc "$d/proc"
  mount -t tmpfs -o mode=0755 dev "$d/dev"
  mkdir "$d/dev/pts" "$d/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$d/dev/pts"
  mount -t tmpfs -o mode=1777,nosuid,nodev,noexec,size=64m shm "$d/dev/shm"
  ln -s pts/ptmx "$d/dev/ptmx"
  ln -s /proc/self/fd "$d/dev/fd"
  for f in null zero full random urandom tty; do
    : >"$d/dev/$f"
    mount --bind "/dev/$f" "$d/dev/$f"
  done
}

# inside UID:GID COMMAND...: in that copy, with what a runtime leaves such a process.
default_caps=+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write
inside() {
  local ids=$1 caps=-all
  shift
  [ "${ids%:*}" != 0 ] || caps=-all,$default_caps
  chroot "$work/seat" /usr/bin/setpriv --reuid "${ids%:*}" --regid "${ids#*:}" --clear-groups --no-new-privs \
    --bounding-set $caps --inh-caps -all /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

seat rw
programs=(bash getent id less ps scp sftp sh ssh ssh-keygen sshd setpriv tar gzip /usr/lib/openssh/sftp-server)
[ "$target" = slim ] || programs+=(curl gdb git ip rsync ss strace vi xz)
# shellcheck disable=SC2016 # expanded in the seat
has() { inside 0:0 sh -c 'for p; do command -v "$p" >/dev/null || echo "no $p"; done' - "${programs[@]}"; }
promise 'every program is there' nothing has

# shellcheck disable=SC2016 # expanded in the seat
[ "$target" = slim ] || promise 'git works without the library of Perl' inside 65532:65532 sh -ec '
  cd /tmp && git init -q there && cd there && echo one >x && git add x
  git -c user.name=a -c user.email=a@b.c commit -q -m one && echo two >x
  printf "y\n" | git add -p >/dev/null && git stash -q && git clone -q /tmp/there /tmp/copy && git -C /tmp/copy log -p >/dev/null'
# shellcheck disable=SC2016 # expanded in the seat
[ "$target" = slim ] || promise 'gdb is ours, and finds Debian'"'"'s' nothing inside 65532:65532 sh -c \
  '[ "$(readlink -f "$(command -v gdb)")" = /usr/local/bin/podbench ] && gdb --version | grep -q "^GNU gdb" || echo no'
alone() { mkdir -p "$work/alone" && cp "$root/usr/local/bin/podbench" "$work/alone/" && timeout 10 chroot "$work/alone" /podbench --version; }
promise 'the agent is static' alone

accounts() {
  local uids
  mapfile -t uids < <(seq 1 499; printf '%s\n' 65532 65534)
  for uid in "${uids[@]}"; do echo "$uid:/tmp/podbench-$uid:/bin/bash"; done >"$work/want"
  inside 1:1 getent passwd "${uids[@]}" | cut -d: -f3,6,7 >"$work/is" || true
  diff "$work/want" "$work/is"
}
unique() { cut -d: -f"$1" "$root/etc/passwd" | sort | uniq -d; }
promise 'every uid from 1 to 499, 65532 and 65534 has a login, a home and a shell' accounts
promise 'no two accounts share a uid' nothing unique 3
promise 'no two accounts share a name' nothing unique 1

silent() { inside 4242:4242 HOME=/nowhere bash "$1" true 2>&1; }
promise 'a shell starts silently without a home' nothing silent -c
promise 'a login shell starts silently without a home' nothing silent -lc

# trip RUNTIME_FOLDER: an ssh round trip, sftp included, as the ids one has.
trip() {
  local run=$1 uid user home session=()
  uid=$(id -u)
  mkdir -m 0700 "$run"
  if [ -w /var/lib/extrausers/passwd ]; then
    [ "$uid" = 0 ] || mkdir -m 0700 "/tmp/podbench-$uid"
    getent passwd "$uid" >/dev/null || echo "podbench-$uid:*:$uid:65534::/tmp/podbench-$uid:/bin/bash" >>/var/lib/extrausers/passwd
  elif [ "$uid" != 0 ]; then
    mkdir -m 0700 "$run/home"
    { awk -F: -v uid="$uid" '$3 != uid' /etc/passwd; echo "podbench-$uid:*:$uid:$(id -g)::$run/home:/bin/bash"; } >"$run/passwd"
    cp /etc/group "$run/group"
    session=(LD_PRELOAD=libnss_wrapper.so "NSS_WRAPPER_PASSWD=$run/passwd" "NSS_WRAPPER_GROUP=$run/group")
    export "${session[@]}"
  fi
  [ "$(getent passwd "$uid" | cut -d: -f3)" = "$uid" ] || { echo "uid $uid has no record"; return 1; }
  user=$(id -un)
  home=$(getent passwd "$uid" | cut -d: -f6)
  ssh-keygen -q -t ed25519 -N '' -f "$run/host"
  ssh-keygen -q -t ed25519 -N '' -f "$run/key"
  cp "$run/key.pub" "$run/authorized_keys"
  printf 'seat %s\n' "$(cut -d' ' -f1,2 "$run/host.pub")" >"$run/known_hosts"
  printf '%s\n' "HostKey $run/host" "AuthorizedKeysFile $run/authorized_keys" "AllowUsers $user" 'PidFile none' \
    'UsePAM no' 'PasswordAuthentication no' 'StrictModes no' 'Subsystem sftp /usr/lib/openssh/sftp-server' \
    "SetEnv PATH=/usr/local/bin:/usr/bin:/bin ${session[*]}" >"$run/sshd_config"
  printf '%s\n' 'Host seat' "User $user" 'HostKeyAlias seat' "UserKnownHostsFile $run/known_hosts" 'StrictHostKeyChecking yes' \
    'IdentitiesOnly yes' "IdentityFile $run/key" "ProxyCommand /usr/sbin/sshd -i -e -f $run/sshd_config -o LogLevel=ERROR" >"$run/ssh_config"
  set -- ssh -F "$run/ssh_config"
  # shellcheck disable=SC2016 # expanded at the other end
  "$@" seat 'id -u; id -un; pwd; echo "$HOME"' >"$run/said" 2>&1 || true
  printf '%s\n' "$uid" "$user" "$home" "$home" | diff - "$run/said" || return 1
  [ -z "$("$@" seat true 2>&1)" ] || { echo "ssh seat true isn't silent"; return 1; }
  "$@" -tt seat tty 2>&1 </dev/null | grep -q '^/dev/pts/' || { echo "no terminal for $user"; return 1; }
  printf 'put %s %s\nget %s %s\n' "$run/key.pub" "$run/there" "$run/there" "$run/back" | sftp -q -b - -F "$run/ssh_config" seat >/dev/null
  cmp "$run/key.pub" "$run/back"
}
round() { seat "$1" && inside "$2" bash -euc "$(declare -f trip); trip $3"; }
promise 'ssh works for the root seat' round rw 0:0 /run/podbench/0
promise 'ssh works for the default seat' round rw 65532:65532 /run/podbench/65532
promise 'ssh works as an account of the distribution' round rw 33:33 /run/podbench/33
promise 'ssh works for a uid that the image does not know' round rw 1000680000:4321 /run/podbench/1000680000
promise 'ssh works for the largest uid in group 0' round rw 2147483647:0 /run/podbench/2147483647
promise 'ssh works for root on a read-only root' round ro 0:0 /dev/shm/podbench-0
promise 'ssh works for an unknown uid on a read-only root' round ro 1000680000:4321 /dev/shm/podbench-1000680000
promise 'ssh works for a known uid on a read-only root' round ro 33:0 /dev/shm/podbench-33

# borrow: a record of another uid, put where anyone may put it, with a key that
# sshd accepts for it. No identity but one's own may come of it.
borrow() {
  local run
  run=/run/podbench/$(id -u)
  trip "$run" || return 1
  echo 'other:*:1234:65534::/tmp:/bin/bash' >>/var/lib/extrausers/passwd
  getent passwd other >/dev/null || { echo 'the record is not even served'; return 1; }
  sed -i '/^AllowUsers/d' "$run/sshd_config"
  ! ssh -F "$run/ssh_config" -l other seat id 2>/dev/null || { echo 'sshd lent it'; return 1; }
  ! su other -c id </dev/null 2>/dev/null || { echo 'su lent it'; return 1; }
}
lends() { seat rw && inside 65532:65532 bash -euc "$(declare -f trip borrow); borrow"; }
promise 'the writable NSS record lends nobody another identity' lends

printf '%s: %d kept, %d broken; %d MB unpacked\n' "$target" $kept $broken $((bytes / 1000000))
[ "$broken" = 0 ]
