#!/usr/bin/env bash
# usage: hack/e2e-kind.sh [--where-possible]
# Runs the end-to-end tests on kind clusters. If Docker cannot run, it prints the reason and
# fails; with --where-possible (make test) it succeeds. It stops Docker Engine if it has
# started it.
set -euo pipefail
cd "$(dirname "$0")/.."

where_possible=false
[ "${1-}" != --where-possible ] || where_possible=true

if ! docker info >/dev/null 2>&1; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if ! hack/docker/docker.sh start 2>&1 | tee "$log"; then
		{
			echo
			echo 'NOT RUN: the end-to-end tests on kind, because Docker cannot run:'
			tail -n 3 "$log" | sed 's/^/  /'
			echo 'Run them with `make e2e-kind` when `docker info` works.'
		} >&2
		$where_possible && exit 0
		exit 1
	fi
	trap 'rm -f "$log"; hack/docker/docker.sh stop' EXIT
fi

make -s build
E2E_PROVIDER=kind go test -tags e2e -count=1 -timeout 60m -v ${TESTFLAGS-} ./test/e2e/...
