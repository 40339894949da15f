#!/usr/bin/env bash
# usage: deploy.sh [--name LAB] [undeploy]
# Deploys the hub manager to the hub of a kind lab, or removes it: see hack/deploy.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./hack/deploy "$@"
