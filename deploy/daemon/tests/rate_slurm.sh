#!/usr/bin/env bash
# How many changes a second the daemon's own `scontrol` makes, factors and nodes by name, on a real Slurm on loopback. No job runs
# meanwhile: the partition is down.
#   deploy/daemon/tests/rate_slurm.sh WRITE_RATE [NUM_JOBS]
# WRITE_RATE is the built example `write_rate`. NUM_JOBS: 1000. With slurmdbd where PLEACH_SLURM_ACCOUNTING=1. Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") num=${2:-1000}
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16897}
# shellcheck source=deploy/daemon/tests/slurm_accounting.sh
. "$here/slurm_accounting.sh"
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$here/slurm_cluster.sh"
dir=$(mktemp -d /tmp/pleach-rate.XXXXXX)
trap 'slurm_stop "$dir"; rm -rf "$dir"' EXIT
slurm_start "$dir"
if [ "${PLEACH_SLURM_ACCOUNTING:-0}" = 1 ]; then
  sacctmgr -i add account a1 > /dev/null; sacctmgr -i add user root account=a1 > /dev/null; sleep 2
fi
scontrol update partitionname=main state=down
seq "$num" | xargs -P 4 -I{} sbatch -Q -H -D / -o /dev/null -e /dev/null --gres=gpu:1 -t 1 --wrap true
[ "$(squeue -h -t PD | wc -l)" = "$num" ] || { echo "rate_slurm: $(squeue -h | wc -l) of $num jobs wait" >&2; exit 1; }
echo "$(scontrol --version), slurmdbd ${PLEACH_SLURM_ACCOUNTING:-0}, load $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) processors"
"$program" g1
