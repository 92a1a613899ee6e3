# Images in the nodes' stores; sourced after settings.sh and nodes.sh. The work
# is done by cmd/nodeimages.
# shellcheck shell=bash disable=SC2153

# forget_containers N: of the last run; the images stay. A store that can't be
# read (a power cut) is thrown away: its images are loaded anew.
forget_containers() {
  mkdir -p "$STATE/node$1/containerd"
  "$BIN/nodeimages" forget "$STATE/node$1/containerd" 2>>"$STATE/log/images.log" ||
    find "$STATE/node$1/containerd" -mindepth 1 -delete
}

# load_images ARCHIVE...: into every node; those that are there cost nothing.
load_images() {
  local n nodes=()
  for n in $(seq "$NODES"); do
    nodes+=(-node "$STATE/node$n/containerd=/proc/$(node_pid "$n")/root/run/containerd/containerd.sock")
  done
  "$BIN/nodeimages" load "${nodes[@]}" "$@"
}
