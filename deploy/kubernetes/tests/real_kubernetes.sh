#!/usr/bin/env bash
# Drives a real kube-apiserver, etcd, Job controller and kube-scheduler on loopback, with pleach-kubernetes as webhook and
# controller. Nodes and pods are kwok's: no container runs.
#   deploy/kubernetes/tests/real_kubernetes.sh PLEACH_KUBERNETES FOLDER [POLICY]
# PLEACH_KUBERNETES is the built program. FOLDER holds kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, etcd and
# kwok (or they are in the path): those that deploy/kubernetes/tests/plane/build.sh makes, or a release of Kubernetes 1.27 or later.
# POLICY takes the shortest job first (default: sjf).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") binaries=$(realpath "$2") policy=${3:-sjf}
dir=$(mktemp -d /tmp/pleach-kubernetes.XXXXXX)
steps=
cleanup() {
  local file
  [ -z "$steps" ] || kill "$steps" 2>/dev/null || true
  [ -z "$steps" ] || wait "$steps" 2>/dev/null || true
  for file in "$dir"/run/*.pid; do
    [ -s "$file" ] || continue
    kill -9 "$(cat "$file")" 2>/dev/null || true
  done
  [ "${PLEACH_KEEP:-0}" = 1 ] || rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 143' TERM INT
PYTHONDONTWRITEBYTECODE=1 python3 "$here/real/steps.py" "$program" "$binaries" "$dir" "$policy" &
steps=$!
wait "$steps"
