#!/usr/bin/env bash
# Starts Docker Engine on this machine, installing it from Debian's archive where it
# is missing, and stops what it started.
#
#   docker.sh start   returns when a daemon answers; does nothing if one does already
#   docker.sh stop    stops the daemon that `start` started, and no other
#   docker.sh status  says which of the two it is
#
# Where systemd runs, the daemon is its service. Elsewhere (containers, CI machines)
# dockerd is started by hand, detached, with pid and log in $RECONCILE_LAB_DOCKER_RUN.
set -euo pipefail

run_dir=${RECONCILE_LAB_DOCKER_RUN:-/run/reconcile-lab-docker}
pid_file=$run_dir/dockerd.pid
log_file=$run_dir/dockerd.log
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Below this a node image and four clusters do not fit.
need_gib=5
# An overloaded machine needs long to start dockerd, a healthy one two seconds.
start_seconds=60

say() { printf 'docker: %s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# our_pid prints the pid of the daemon that we started, if it still runs. A pid that
# the kernel has since given to another program does not count.
our_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || return 1
  echo "$pid"
}

need_root() { [ "$(id -u)" = 0 ] || die "installing and starting Docker needs root: run 'sudo make docker', or start Docker yourself and run this again"; }

need_disk() {
  local dir=/var/lib/docker free
  [ -d "$dir" ] || dir=/var/lib
  free=$(df --output=avail --block-size=1G "$dir" | tail -n1 | tr -d ' ')
  [ "$free" -ge "$need_gib" ] || die "$dir has $free GiB free, $need_gib are needed: make room there (with a running Docker: 'docker system prune')"
}

# install_packages PACKAGE... installs from the archives that apt is configured for.
install_packages() {
  command -v apt-get >/dev/null && [ -e /etc/debian_version ] ||
    die "this script installs Docker on Debian only: install Docker Engine as your distribution says, then run this again"
  say "installing $* with apt-get"
  local log=$run_dir/apt.log
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 ||
    die "apt-get failed (all of it is in $log): $(tail -n3 "$log" | tr '\n' ' ')"
}

# A kernel may lack nf_tables, which Debian's iptables uses; dockerd, and only it,
# then gets the legacy tables.
prefer_working_iptables() {
  iptables -t nat -S >/dev/null 2>&1 && return
  iptables-legacy -t nat -S >/dev/null 2>&1 ||
    die "neither iptables nor iptables-legacy can read the nat table: load the kernel's iptable_nat or nf_tables module, and run this with CAP_NET_ADMIN"
  say "this kernel has no nf_tables: dockerd uses iptables-legacy"
  mkdir -p "$run_dir/bin"
  ln -sf "$(command -v iptables-legacy)" "$run_dir/bin/iptables"
  ln -sf "$(command -v ip6tables-legacy)" "$run_dir/bin/ip6tables"
  PATH=$run_dir/bin:$PATH
}

# lacks_sys_resource says whether CAP_SYS_RESOURCE (bit 24) is out of reach, so that
# runc would refuse every privileged container.
lacks_sys_resource() {
  local bounding
  bounding=$(awk '/^CapBnd/ {print $2}' /proc/self/status)
  ((((16#$bounding >> 24) & 1) == 0))
}

start_by_hand() {
  local flags=()
  prefer_working_iptables
  if lacks_sys_resource; then
    command -v jq >/dev/null || install_packages jq
    say "no CAP_SYS_RESOURCE here: containers run without it"
    install -m 755 "$here/runc-no-sys-resource" "$run_dir/"
    flags+=(--add-runtime "no-sys-resource=$run_dir/runc-no-sys-resource" --default-runtime no-sys-resource)
  fi
  # A daemon that was killed leaves a pid file, which makes the next one refuse.
  rm -f /var/run/docker.pid
  setsid dockerd "${flags[@]}" </dev/null >"$log_file" 2>&1 9>&- &
  echo $! >"$pid_file"
}

# explain prints what a failed start most likely is about.
explain() {
  case $(tail -n 40 "$log_file" 2>/dev/null) in
  *"no space left on device"*) echo "the disk is full: make room in /var/lib/docker" ;;
  *iptables*) echo "dockerd cannot set up iptables: run this with CAP_NET_ADMIN" ;;
  *"Devices cgroup isn't mounted"* | *"cgroup mountpoint"*) echo "no cgroups are mounted: mount /sys/fs/cgroup" ;;
  *"permission denied"* | *"operation not permitted"*) echo "this machine does not let root start containers: use a virtual machine, or a privileged container" ;;
  *) echo "its log says: $(tail -n3 "$log_file" 2>/dev/null | tr '\n' ' ')" ;;
  esac
}

wait_for_daemon() {
  local deadline=$((SECONDS + start_seconds))
  until answers; do
    [ ! -e "$pid_file" ] || our_pid >/dev/null || die "dockerd ended at once: $(explain) (log: $log_file)"
    [ $SECONDS -lt $deadline ] || die "no Docker daemon answers after $start_seconds s: $(explain)"
    sleep 0.5
  done
}

# Four nodes with systemd, kubelet and kube-proxy use up the kernel's default of 128
# inotify instances a user; then kube-proxy has no rules and a pod reaches whatever
# listens at the Service's address instead.
raise_inotify() {
  local file=/proc/sys/fs/inotify/max_user_instances
  if [ "$(cat "$file" 2>/dev/null || echo 512)" -ge 512 ]; then return; fi
  if ! { echo 512 >"$file"; } 2>/dev/null; then
    say "only $(cat "$file") inotify instances a user; pods may fail to start: as root, sysctl -w fs.inotify.max_user_instances=512"
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
  flock 9 # two starts at once: the second finds the first one's daemon
  if answers; then return; fi
  need_disk
  if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null || ! command -v iptables >/dev/null; then
    install_packages docker.io iptables
  fi
  if [ -d /run/systemd/system ]; then
    systemctl start docker || die "systemctl could not start docker: see 'journalctl -u docker'"
  elif ! our_pid >/dev/null; then
    start_by_hand
  fi
  say "waiting for the daemon"
  wait_for_daemon
  say "$(docker version --format '{{.Server.Version}}') answers"
}

stop() {
  local pid
  if ! pid=$(our_pid); then
    say "nothing to stop: no daemon that this script started"
  else
    kill "$pid"
    local deadline=$((SECONDS + start_seconds))
    while our_pid >/dev/null; do
      [ $SECONDS -lt $deadline ] || die "dockerd (pid $pid) does not end: see $log_file"
      sleep 0.2
    done
    say "stopped"
  fi
  rm -rf "$run_dir"
}

status() {
  local pid
  if ! answers; then
    say "no daemon answers: run 'make docker'"
    return 1
  fi
  if pid=$(our_pid); then say "runs, started by this script (pid $pid)"; else say "runs, not ours"; fi
}

case ${1-} in
start | stop | status) "$1" ;;
*)
  echo "usage: docker.sh start|stop|status" >&2
  exit 2
  ;;
esac
