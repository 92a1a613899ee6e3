# The cgroups of the nodes; sourced after settings.sh.
#
# Every kubelet gets a root of its own, $NAME-nodeN: two kubelets on one root
# delete each other's pods as orphans. Folders are made and removed below what
# the machine has mounted; no controller is mounted, unmounted or moved, and no
# process of the machine changes its cgroup. Tried on a cgroup v1 hybrid; the
# branch for a pure cgroup v2 machine is untested.
# shellcheck shell=bash

cgroup_parents() {
  local dir
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo /sys/fs/cgroup
    return
  fi
  for dir in /sys/fs/cgroup/*/; do # one per v1 controller; "unified" holds none
    [ "$dir" = /sys/fs/cgroup/unified/ ] || echo "${dir%/}"
  done
}

make_cgroups() { # N
  local parent f
  while read -r parent; do
    mkdir -p "$parent/$NAME-node$1"
    if [ -e "$parent/cgroup.subtree_control" ]; then # v2: the pods need these below the root
      for f in +cpu +cpuset +memory +pids +io; do echo "$f" >"$parent/cgroup.subtree_control" || true; done 2>/dev/null
    fi
    for f in cpuset.cpus cpuset.mems; do # v1: a new cpuset is empty and takes no process
      if [ -e "$parent/cgroup.clone_children" ] && [ -e "$parent/$f" ]; then
        cat "$parent/$f" >"$parent/$NAME-node$1/$f"
      fi
    done
  done < <(cgroup_parents)
}

# remove_cgroups: all of this cluster's, "unified" included, where runc makes
# some as well. Empty ones outlive their processes, and a process that is just
# ending keeps its own busy for a moment.
remove_cgroups() {
  local dir
  for dir in /sys/fs/cgroup/"$NAME"-node[0-9]* /sys/fs/cgroup/*/"$NAME"-node[0-9]*; do
    [ ! -d "$dir" ] || wait_for 5 remove_cgroup "$dir" || echo "cgroup $dir stays: it is in use" >&2
  done
}

remove_cgroup() {
  [ ! -d "$1" ] || { find "$1" -depth -type d -exec rmdir {} + && [ ! -d "$1" ]; }
}
