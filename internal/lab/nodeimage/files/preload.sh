#!/usr/bin/env bash
# Runs in a container of the base image. Imports /in/images.tar into the image store of the
# node's containerd, so that pods start without pulling an image.
set -euo pipefail

containerd >/tmp/containerd.log 2>&1 &
daemon=$!
for _ in $(seq 100); do
  ctr version >/dev/null 2>&1 && break
  kill -0 "$daemon" || {
    tail -n 5 /tmp/containerd.log >&2
    exit 1
  }
  sleep 0.2
done
ctr -n k8s.io images import --local --snapshotter overlayfs /in/images.tar
# The layers are unpacked. Keeping the packed copies would double the size of the image.
ctr -n k8s.io content prune references
kill "$daemon"
wait "$daemon" || true
rm -rf /tmp/containerd.log /run/containerd
