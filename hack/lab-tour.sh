#!/usr/bin/env bash
# usage: hack/lab-tour.sh [MEMBERS]
# The tour of `make lab`: starts a hub and members, applies the example cache, changes one
# member by hand and shows the correction.
set -euo pipefail
cd "$(dirname "$0")/.."
members=${1:-3}

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi

show() { # prints a command, then runs it
	printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"
	"$@"
}

# The correction takes milliseconds. On a busy machine, its report can be later than the next
# command.
wait_for_correction() {
	local deadline=$((SECONDS + 60))
	until ./reconcile-lab observe --once cache-cluster | grep -q '^drift .* member-2 .*spec\.replicas'; do
		[ $SECONDS -lt $deadline ] || { echo 'error: member-2: not corrected within 60 s; see ./reconcile-lab status cache-cluster' >&2; return 1; }
		sleep 0.5
	done
}

show ./reconcile-lab up --members "$members"
# Sets KUBECONFIG to the contexts of the lab, and adds its kubectl to PATH.
eval "$(./reconcile-lab env)"

show ./reconcile-lab apply examples/cache-cluster.yaml
show ./reconcile-lab get
show kubectl --context member-2 get statefulset,service,pod -l app.kubernetes.io/instance=cache-cluster

printf '\nA user changes a member by hand:'
show kubectl --context member-2 scale statefulset cache-cluster --replicas=7
wait_for_correction
show ./reconcile-lab observe --once cache-cluster
show kubectl --context member-2 get statefulset cache-cluster

cat <<'END'

The lab keeps running. Next commands:
  eval "$(./reconcile-lab env)"              # sets KUBECONFIG: contexts hub, member-1, …
  ./reconcile-lab observe                    # then change something in another terminal
  ./reconcile-lab apply --create-namespace examples/mimir-caches.yaml
  ./reconcile-lab down                       # removes the lab
END
