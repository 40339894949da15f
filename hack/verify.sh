#!/usr/bin/env bash
# The checks of `make verify`. A failed check does not stop the later ones. The exit code is
# 1 if any check fails.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() { # NAME COMMAND...
	local name=$1
	shift
	printf '── %s\n' "$name"
	"$@" || failed+=("$name")
}

# Compares with the files before the run, not with git, so that uncommitted changes pass if
# they are consistent.
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
	[ "$status" = 0 ] || echo 'error: generated files were stale and are now up to date; commit them' >&2
	return "$status"
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard -- '*.go' | while read -r f; do [ -f "$f" ] && echo "$f"; done | xargs -r gofmt -l)
	[ -z "$files" ] || {
		printf 'error: not formatted; run gofmt -w on:\n%s\n' "$files" >&2
		return 1
	}
}

check 'generated files are up to date' generated
check 'gofmt' formatted
check 'go vet' go vet -tags e2e,faults ./...
check 'go.mod is tidy' go mod tidy -diff
check 'golangci-lint' make -s lint
check 'prose' make -s prose

if [ ${#failed[@]} -gt 0 ]; then
	printf 'verify: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo 'verify: all passed'
