# Commands and daemons inside the nodes; sourced after settings.sh.
# shellcheck shell=bash

# node_pid N: PID 1 of node N, as the machine sees it.
node_pid() { cat "$STATE/run/node$1.pid"; }

# is_node_init PID N: is that process (still) node N of this cluster? A PID
# alone could have been given to somebody else since.
is_node_init() {
  [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] &&
    tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -qxF -- "$STATE/node$2"
}

# first_child PID: the process it forked first.
first_child() {
  local child
  child=$(cat "/proc/$1/task/$1/children")
  [ -n "$child" ] && echo "${child%% *}"
}

# in_node N COMMAND...: in all of node N's namespaces, and in nobody else's: a
# PID file may be older than the machine's last start. PATH begins with our own
# programs: the distribution's shim or runc must not be found first.
in_node() {
  local pid
  pid=$(node_pid "$1" 2>/dev/null) || pid=''
  is_node_init "$pid" "$1" || { echo "node$1 isn't running" >&2; return 1; }
  shift
  PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin nsenter -t "$pid" -m -u -i -n -p -- "$@" 9>&- # 9: the lock of up.sh
}

# daemon N NAME COMMAND...: a child of node N's PID 1. Its log is
# $STATE/log/nodeN/NAME.log, its PID as the node sees it is in the node's
# /run/daemon/NAME, its command line is kept for `faults.sh start`.
daemon() {
  local node=$1 name=$2
  shift 2
  printf '%s\0' "$@" >"$STATE/run/daemon.$node.$name"
  # shellcheck disable=SC2016 # expanded by the inner shell
  in_node "$node" setsid -f sh -c '
    name=$1; shift
    echo $$ >"/run/daemon/$name"
    exec "$@" </dev/null >>"/var/log/cluster/$name.log" 2>&1' sh "$name" "$@"
}

# stop_daemon N NAME [SIGNAL]: and wait until it has ended, 10 s at most.
stop_daemon() {
  # shellcheck disable=SC2016
  in_node "$1" sh -c '
    pid=$(cat "/run/daemon/$1") || exit 0
    kill "-$2" "$pid" 2>/dev/null
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || exit 0; sleep 0.1; done
    kill -9 "$pid"' sh "$2" "${3:-TERM}"
}

# daemons_alive N: does every daemon that was started in node N still run?
daemons_alive() {
  # shellcheck disable=SC2016
  in_node "$1" sh -c '
    for f in /run/daemon/*; do kill -0 "$(cat "$f")" 2>/dev/null || { echo "${f##*/}"; exit 1; }; done'
}

# api_proxy FILE PORT [FLAG...]: a way from the machine to the API server,
# listening on 127.0.0.1:PORT; its PID goes into $STATE/run/FILE.pid.
api_proxy() {
  local file=$1 port=$2
  shift 2
  # shellcheck disable=SC2016
  setsid -f sh -c 'echo $$ >"$0"; exec "$@"' "$STATE/run/$file.pid" \
    "$BIN/apiproxy" -netns "/proc/$(node_pid 1)/ns/net" -listen "127.0.0.1:$port" "$@" \
    </dev/null >>"$STATE/log/$file.log" 2>&1 9>&-
}

# end_api_proxy FILE: ends that one, if it is (still) one of ours.
end_api_proxy() {
  local pid
  pid=$(cat "$STATE/run/$1.pid" 2>/dev/null) || return 0
  rm -f "$STATE/run/$1.pid"
  if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "$BIN/apiproxy"; then
    kill "$pid" 2>/dev/null || return 0
    wait_for 5 process_ended "$pid"
  fi
}

# process_ended PID: a zombie has ended too; its reaper may be slow.
process_ended() {
  case $(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) in '' | Z* | X*) ;; *) return 1 ;; esac
}
