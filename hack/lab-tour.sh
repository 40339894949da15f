#!/usr/bin/env bash
# The tour that `make lab` gives: a hub and members, the example cache in each of
# them, one change by hand, and its repair.
# usage: hack/lab-tour.sh [MEMBERS]
set -euo pipefail
cd "$(dirname "$0")/.."
members=${1:-3}

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi

show() { # prints a command as one would type it, then runs it
	printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"
	"$@"
}

# The repair takes milliseconds; on a machine under load its report may take longer
# than the start of the next command.
until_repaired() {
	local deadline=$((SECONDS + 60))
	until ./reconcile-lab observe --once cache-cluster | grep -q '^drift .* member-2 .*spec\.replicas'; do
		[ $SECONDS -lt $deadline ] || { echo 'member-2 was not put right within a minute: see ./reconcile-lab status cache-cluster' >&2; return 1; }
		sleep 0.5
	done
}

show ./reconcile-lab up --members "$members"
# KUBECONFIG and PATH of the lab: the kubectl of its version, every context.
eval "$(./reconcile-lab env)"

show ./reconcile-lab apply examples/cache-cluster.yaml
show ./reconcile-lab get
show kubectl --context member-2 get statefulset,service,pod -l app.kubernetes.io/instance=cache-cluster

printf '\nSomebody changes a member by hand:'
show kubectl --context member-2 scale statefulset cache-cluster --replicas=7
until_repaired
show ./reconcile-lab observe --once cache-cluster
show kubectl --context member-2 get statefulset cache-cluster

cat <<'END'

The lab keeps running. Go on with
  eval "$(./reconcile-lab env)"              # KUBECONFIG with the contexts hub, member-1, …
  ./reconcile-lab observe                    # and change something in another terminal
  ./reconcile-lab apply --create-namespace examples/mimir-caches.yaml
  ./reconcile-lab down                       # removes everything
END
