#!/usr/bin/env bash
# The field test: lists of Jobs on fresh control planes under kube-scheduler, Kueue and pleach-kubernetes
# (lab/notes/kubernetes-measured.md).
#   deploy/kubernetes/tests/field_test.sh PLEACH_KUBERNETES RESULTS [FLAG ...]
# PLEACH_KUBERNETES is the built program. RESULTS gets a JSON line a cell; cells that it has are not run again. FLAGs are those of
# `deploy/kubernetes/tests/field/field.py run`, for example --runs 1 --parallel 3 (a cell takes six minutes, mostly of waiting). Builds
# the control plane with Kueue if need be: about twenty minutes of processor time, once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1 results=$2
shift 2
binaries=$("$here/plane/build.sh" --field)
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/field/field.py" run "$results" --program "$program" --binaries "$binaries" "$@"
python3 "$here/field/field.py" summary "$results"
