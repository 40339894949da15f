#!/usr/bin/env bash
# What `make verify` runs. Every check runs, so that one look shows all that is
# to be done; the exit code is 1 when any of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() { # NAME COMMAND...
	local name=$1
	shift
	printf '── %s\n' "$name"
	"$@" || failed+=("$name")
}

# Compared with what was there, not with git: a tree with changes in progress
# passes as long as it is consistent.
generated() {
	local before
	before=$(mktemp -d) || return
	mkdir -p "$before"/{api,deploy,docs}
	cp -r api/. "$before/api" && cp -r deploy/crd "$before/deploy" && cp docs/api.md docs/conditions.md "$before/docs" || return
	make -s generate || return
	local status=0
	diff -ru "$before/api" api || status=1
	diff -ru "$before/deploy/crd" deploy/crd || status=1
	diff -u "$before/docs/api.md" docs/api.md || status=1
	diff -u "$before/docs/conditions.md" docs/conditions.md || status=1
	rm -rf "$before"
	[ "$status" = 0 ] || echo 'generated files were stale; `make generate` has now written them: commit them' >&2
	return "$status"
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard -- '*.go' | while read -r f; do [ -f "$f" ] && echo "$f"; done | xargs -r gofmt -l)
	[ -z "$files" ] || {
		printf 'not formatted, run gofmt -w:\n%s\n' "$files" >&2
		return 1
	}
}

check 'generated files are up to date' generated
check 'gofmt' formatted
check 'go vet' go vet -tags e2e,faults ./...
check 'go.mod is tidy' go mod tidy -diff
check 'golangci-lint' make -s lint

if [ ${#failed[@]} -gt 0 ]; then
	printf 'verify: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo 'verify: all passed'
