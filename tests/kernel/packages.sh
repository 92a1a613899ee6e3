#!/bin/bash
# packages.sh: what the rig runs, from Debian packages that packages.lock pins by version and digest:
# QEMU, two kernels, the compilers of AppArmor and SELinux policies. Prints the folder they lie in.
#
# Nothing is installed: the packages are unpacked, with the C library that they were built for, into
# $PODBENCH_CACHE/kernel, under a digest of this script, the lock and the policies.
#
#   packages.sh         fetch and unpack what is missing
#   packages.sh --pin   write the lock anew, with the versions that apt offers today
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
lock=$here/packages.lock
cache=${PODBENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podbench}/kernel
keep=2
say() { printf 'kernel: %s\n' "$*" >&2; }

[ "$(uname -m)" = x86_64 ] || { say "the rig's kernels are x86_64's, and this machine is $(uname -m)"; exit 1; }
command -v apt-get >/dev/null || { say "the rig's programs are Debian packages, and there is no apt-get here"; exit 1; }
# shellcheck source=../cluster/lib/debs.sh
. "$here/../cluster/lib/debs.sh"

if [ "${1:-}" = --pin ]; then
  pin "$lock"
  exit
fi

key=$(cd "$here" && sha256sum packages.sh packages.lock policy/* ../cluster/lib/debs.sh | sha256sum | cut -c1-32)
home=$cache/$key
if [ -e "$home/done" ]; then
  touch "$home"
  echo "$home"
  exit
fi

mkdir -p "$cache"
exec 9>"$cache/lock"
flock -n 9 || { say "another fetch runs; waiting for it"; flock 9; }
if [ -e "$home/done" ]; then echo "$home"; exit; fi
rm -rf "$cache"/work.* # of a fetch that was killed
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work"/{debs,root}

say "fetching $(pinned "$lock" | wc -l) packages"
fetch_pinned "$lock" "$work/debs"
for deb in "$work"/debs/*.deb; do
  name=$(dpkg-deb -f "$deb" Package)
  case $name in
    linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" ./boot --wildcards --exclude='./boot/System.map*' ;;
    *) dpkg-deb -x "$deb" "$work/root" ;;
  esac
done
rm -rf "$work/debs" "$work/root/usr/share/doc" "$work/root/usr/share/man" "$work/root/usr/share/locale"

# A program with its own loader and libraries: the machine's C library may be another.
for program in usr/bin/qemu-system-x86_64 sbin/apparmor_parser usr/bin/checkpolicy; do
  name=${program##*/}
  {
    echo '#!/bin/sh'
    echo 'root=$(dirname "$(readlink -f "$0")")/root'
    echo 'export QEMU_MODULE_DIR=$root/usr/lib/x86_64-linux-gnu/qemu'
    echo "exec \"\$root/lib64/ld-linux-x86-64.so.2\" --inhibit-cache --library-path \"\$root/lib/x86_64-linux-gnu:\$root/usr/lib/x86_64-linux-gnu\" \"\$root/$program\" \"\$@\""
  } >"$work/$name"
  chmod 0755 "$work/$name"
done

# The features are the guest kernel's, which ships with Debian's apparmor package: without them the
# parser compiles a policy that mediates no ptrace, and says nothing.
: >"$work/parser.conf"
"$work/apparmor_parser" --config-file "$work/parser.conf" --base "$here/policy" -q -K -Q \
  -M "$work/root/usr/share/apparmor-features/features" -o "$work/apparmor.bin" "$here/policy/rig.apparmor" >&2
"$work/checkpolicy" -U allow -c 33 -o "$work/selinux.bin" "$here/policy/rig.selinux" >/dev/null

chmod 0755 "$work" # mktemp is for its owner alone
touch "$work/done"
rm -rf "$home"
mv -T "$work" "$home" # whole or not at all
find "$cache" -mindepth 1 -maxdepth 1 -type d ! -name 'work.*' -printf '%T@ %p\n' | sort -rn |
  tail -n +$((keep + 1)) | cut -d' ' -f2- | xargs -r -d '\n' rm -rf
echo "$home"
