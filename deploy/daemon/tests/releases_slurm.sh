#!/usr/bin/env bash
# The tests on a real Slurm over three releases of it, each in a copy of its root (slurm_roots.sh): the same scripts, unchanged. A
# release whose root is not there is left out, and that is said.
#   deploy/daemon/tests/releases_slurm.sh PLEACH_SCHEDULER SHORTEST_FIRST_TREE [SCRIPT...]
# SHORTEST_FIRST_TREE: the built example. SCRIPT: order, limits, fault; the first two by default. PLEACH_RELEASES:
# which ones, 22.05 24.11 26.05 by default. PLEACH_RELEASES_OUT: a folder that keeps what each wrote.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") maker=$(realpath "$2"); shift 2
scripts=("$@")
[ "${#scripts[@]}" -gt 0 ] || scripts=(order limits)
out=${PLEACH_RELEASES_OUT:-$(mktemp -d /tmp/pleach-releases.XXXXXX)}
bad=0
for release in ${PLEACH_RELEASES:-22.05 24.11 26.05}; do
  if ! told=$("$here/slurm_roots.sh" where "$release" 2>&1); then echo "releases_slurm: skipped: $told"; continue; fi
  folder=$out/$release; mkdir -p "$folder"
  cp "$program" "$folder/pleach-scheduler"
  "$maker" "$folder/tree.json"
  for script in "${scripts[@]}"; do
    words=(/out/pleach-scheduler /out/tree.json)
    [ "$script" != fault ] || words=(/out/pleach-scheduler sjf "${PLEACH_FAULT_JOBS:-240}" "${PLEACH_FAULTS:-24}")
    if PLEACH_ROOT_OUT=$folder timeout 1500 "$here/slurm_roots.sh" run "$release" bash "/repo/deploy/daemon/tests/${script}_slurm.sh" "${words[@]}" \
      > "$folder/$script.log" 2>&1; then
      tail -n 1 "$folder/$script.log"
    elif grep -q '_check_mysql_concat_is_sane: null result' "$folder/$script.log"; then
      # slurm_roots.sh gives slurmdbd an older library where there is one.
      echo "releases_slurm: $script on $release: skipped, slurmdbd does not start with its libmariadb3 (error 5027) and there is no root of 22.05"
    else
      echo "releases_slurm: $script on $release:"; tail -n 40 "$folder/$script.log"; bad=1
    fi
  done
done
[ -n "${PLEACH_RELEASES_OUT:-}" ] || rm -rf "$out"
exit "$bad"
