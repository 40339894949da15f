#!/usr/bin/env bash
# Starts and stops Docker Engine on this machine. On Debian it installs a missing engine.
#
#   docker.sh start   returns when a daemon answers; changes nothing if one answers already
#   docker.sh stop    stops the daemon that `start` has started, and no other
#   docker.sh status  prints whether a daemon answers, and whether this script started it
#
# With systemd, the daemon is a service. Without (containers, CI machines), this script runs
# dockerd in the background. $RECONCILE_LAB_DOCKER_RUN contains its pid file and log.
set -euo pipefail

run_dir=${RECONCILE_LAB_DOCKER_RUN:-/run/reconcile-lab-docker}
pid_file=$run_dir/dockerd.pid
log_file=$run_dir/dockerd.log
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# The disk space in GiB that a node image and four clusters need.
need_gib=5
# dockerd usually starts in two seconds, on an overloaded machine much later.
start_seconds=60

say() { printf 'docker: %s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# our_pid prints the pid of the daemon that this script has started, if it still runs. The
# kernel may have reused the pid for another program.
our_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || return 1
  echo "$pid"
}

need_root() { [ "$(id -u)" = 0 ] || die "installing and starting Docker needs root; run 'sudo make docker', or start Docker yourself and run this again"; }

need_disk() {
  local dir=/var/lib/docker free
  [ -d "$dir" ] || dir=/var/lib
  free=$(df --output=avail --block-size=1G "$dir" | tail -n1 | tr -d ' ')
  [ "$free" -ge "$need_gib" ] || die "$dir has $free GiB of free space, $need_gib GiB are needed; free some, for example with 'docker system prune'"
}

# install_packages PACKAGE... installs from the archives that apt is configured for.
install_packages() {
  command -v apt-get >/dev/null && [ -e /etc/debian_version ] ||
    die "this script installs Docker on Debian only; install Docker Engine from your distribution, then run this again"
  say "installing $* with apt-get"
  local log=$run_dir/apt.log
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 ||
    die "apt-get failed (log: $log): $(tail -n3 "$log" | tr '\n' ' ')"
}

# Debian's iptables uses nf_tables. On a kernel without it, dockerd (and no other program)
# uses the legacy tables.
prefer_working_iptables() {
  iptables -t nat -S >/dev/null 2>&1 && return
  iptables-legacy -t nat -S >/dev/null 2>&1 ||
    die "neither iptables nor iptables-legacy can read the nat table; load the kernel module iptable_nat or nf_tables, and run this with CAP_NET_ADMIN"
  say "this kernel has no nf_tables: dockerd uses iptables-legacy"
  mkdir -p "$run_dir/bin"
  ln -sf "$(command -v iptables-legacy)" "$run_dir/bin/iptables"
  ln -sf "$(command -v ip6tables-legacy)" "$run_dir/bin/ip6tables"
  PATH=$run_dir/bin:$PATH
}

# lacks_sys_resource succeeds if CAP_SYS_RESOURCE (bit 24) is not available. runc then
# refuses every privileged container.
lacks_sys_resource() {
  local bounding
  bounding=$(awk '/^CapBnd/ {print $2}' /proc/self/status)
  ((((16#$bounding >> 24) & 1) == 0))
}

start_without_systemd() {
  local flags=()
  prefer_working_iptables
  if lacks_sys_resource; then
    command -v jq >/dev/null || install_packages jq
    say "CAP_SYS_RESOURCE is not available: containers run without it"
    install -m 755 "$here/runc-no-sys-resource" "$run_dir/"
    flags+=(--add-runtime "no-sys-resource=$run_dir/runc-no-sys-resource" --default-runtime no-sys-resource)
  fi
  # dockerd does not start if a killed daemon has left its pid file.
  rm -f /var/run/docker.pid
  setsid dockerd "${flags[@]}" </dev/null >"$log_file" 2>&1 9>&- &
  echo $! >"$pid_file"
}

# explain prints the probable cause of a failed start.
explain() {
  case $(tail -n 40 "$log_file" 2>/dev/null) in
  *"no space left on device"*) echo "the disk is full; free some space in /var/lib/docker" ;;
  *iptables*) echo "dockerd cannot set up iptables; run this with CAP_NET_ADMIN" ;;
  *"Devices cgroup isn't mounted"* | *"cgroup mountpoint"*) echo "no cgroups are mounted; mount /sys/fs/cgroup" ;;
  *"permission denied"* | *"operation not permitted"*) echo "root cannot start containers on this machine; use a virtual machine or a privileged container" ;;
  *) echo "last lines of its log: $(tail -n3 "$log_file" 2>/dev/null | tr '\n' ' ')" ;;
  esac
}

wait_for_daemon() {
  local deadline=$((SECONDS + start_seconds))
  until answers; do
    [ ! -e "$pid_file" ] || our_pid >/dev/null || die "dockerd ended: $(explain) (log: $log_file)"
    [ $SECONDS -lt $deadline ] || die "no Docker daemon answers after $start_seconds s: $(explain)"
    sleep 0.5
  done
}

# Four nodes with systemd, kubelet and kube-proxy exhaust the kernel's default of 128 inotify
# instances per user. Without an instance, kube-proxy writes no rules, and traffic to the
# address of a Service leaves the node.
raise_inotify() {
  local file=/proc/sys/fs/inotify/max_user_instances
  if [ "$(cat "$file" 2>/dev/null || echo 512)" -ge 512 ]; then return; fi
  if ! { echo 512 >"$file"; } 2>/dev/null; then
    say "only $(cat "$file") inotify instances per user, pods may fail to start; run as root: sysctl -w fs.inotify.max_user_instances=512"
  fi
}

start() {
  raise_inotify
  if answers; then
    say "$(docker version --format '{{.Server.Version}}') answers"
    return
  fi
  need_root
  mkdir -p "$run_dir"
  exec 9>"$run_dir/lock"
  flock 9 # of two starts at once, the second finds the daemon of the first
  if answers; then return; fi
  need_disk
  if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null || ! command -v iptables >/dev/null; then
    install_packages docker.io iptables
  fi
  if [ -d /run/systemd/system ]; then
    systemctl start docker || die "systemctl cannot start docker; see 'journalctl -u docker'"
  elif ! our_pid >/dev/null; then
    start_without_systemd
  fi
  say "waiting for the daemon"
  wait_for_daemon
  say "$(docker version --format '{{.Server.Version}}') answers"
}

stop() {
  local pid
  if ! pid=$(our_pid); then
    say "nothing to stop: this script has not started a daemon"
  else
    kill "$pid"
    local deadline=$((SECONDS + start_seconds))
    while our_pid >/dev/null; do
      [ $SECONDS -lt $deadline ] || die "dockerd (pid $pid) does not end; see $log_file"
      sleep 0.2
    done
    say "stopped"
  fi
  rm -rf "$run_dir"
}

status() {
  local pid
  if ! answers; then
    say "no daemon answers; run 'make docker'"
    return 1
  fi
  if pid=$(our_pid); then say "running, started by this script (pid $pid)"; else say "running, not started by this script"; fi
}

case ${1-} in
start | stop | status) "$1" ;;
*)
  echo "usage: docker.sh start|stop|status" >&2
  exit 2
  ;;
esac
