#!/usr/bin/env bash
# The shortest way through on a real Slurm whose controller is root's, and so is the daemon: held at submission, let go to a node,
# handed back. The whole is `real_slurm.sh`, as the account of the unit.
#   daemon/tests/root_slurm.sh PLEACH_SCHEDULER TREE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=root_slurm program=$1 tree=$(realpath "$2")
export PLEACH_SLURM_USER=root
# shellcheck source=daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm
start_daemon
wait_for 20 'a heartbeat' test -s "$dir/pleach/heartbeat"
filler=$(submit --gres=gpu:v100:8 -t 1 "$dir/job.sh" 5)
wait_for 30 'a job is let go' grep -q "^$filler .* g3 " "$dir/starts"
left=$(submit --gres=gpu:v100:8 -t 2 "$dir/job.sh" 0)
wait_for 20 'a job is held' sh -c "squeue -h -j $left -O PriorityLong:\| | grep -qx '0|'"
kill_daemon
scheduler hand-back | grep -q '1 jobs were given back'
wait_for 60 'both jobs without a daemon' queue_is_empty
grep -qx "$left" "$dir/ends" || fail 'the job that was handed back was lost'
echo "root_slurm: two jobs on $(scontrol --version): all as expected as root"
