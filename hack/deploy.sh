#!/usr/bin/env bash
# usage: deploy.sh [--name LAB] [undeploy]
# Puts the hub manager into the hub of a kind lab, or takes it away: see hack/deploy.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./hack/deploy "$@"
