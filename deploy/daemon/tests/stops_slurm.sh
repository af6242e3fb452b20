#!/usr/bin/env bash
# Lets a dealer stop running jobs on a real Slurm on loopback: without the key it stops none; with it the one batch job that may be
# requeued makes room, the job that waited starts at once, and the stopped one runs again to its end. Jobs of other kinds stay.
#   deploy/daemon/tests/stops_slurm.sh PLEACH_SCHEDULER
# Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=stops_slurm program=$(realpath "$1") tree=$here/compare/tree.json
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-17037}
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm
began=$SECONDS
tree=srtf-deal
# What a job costs that is stopped, four times which it has to have run.
echo 'restart_cost_s = 0.5' >> "$dir/pleach.toml"
num_starts() { grep -c "^$1 " "$dir/starts" || true; } # JOB
has_started() { [ "$(num_starts "$1")" -ge "${2:-1}" ]; } # JOB TIMES
has_ended() { grep -qx "$1" "$dir/ends"; }               # JOB

stopped=$(submit --gres=gpu:a100:4 -t 60 "$dir/until.sh" 1)
stays=$(submit --gres=gpu:a100:4 --no-requeue -t 60 "$dir/until.sh" 1)
salloc --gres=gpu:v100:8 -t 60 bash "$dir/until.sh" 1 > /dev/null 2>&1 &
session=$!
wait_for 30 'three jobs fill the nodes' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
wait_for 30 'all three have begun' sh -c "[ \$(wc -l < $dir/starts) = 3 ]"
sleep 4
comes=$(submit -t 1 --gres=gpu:4 "$dir/job.sh" 1)

echo '1. Without the key the job waits'
start_daemon
wait_for 30 'it is ranked' sh -c "sprio -h -o '%i|%S' | awk -F'|' '\$1 == $comes && \$2 > 0' | grep -q ."
sleep 3
[ "$(squeue -h -j "$comes" -o %T)" = PENDING ] || fail 'it started without the key'
kill_daemon

echo '2. With it one job is requeued, and the one that waited starts'
echo 'preemption = true' >> "$dir/pleach.toml"
start_daemon
wait_for 30 'the job that waited starts' has_started "$comes"
wait_for 30 'it ends' has_ended "$comes"
wait_for 60 'the stopped one runs again' has_started "$stopped" 2
[ "$(num_starts "$stays")" = 1 ] || fail 'a job was stopped that is not to be requeued'
kill -0 "$session" 2> /dev/null || fail 'an interactive job was stopped'
scheduler explain "$stopped" | tee "$dir/explained"
grep -q 'preempt job' "$dir/explained" || fail 'explain does not tell of the stop'
scheduler status | grep -q ' rounds, 0 failed' || fail "rounds failed: $(scheduler status)"
go 1
wait_for 60 'all of them' queue_is_empty
for job in "$stopped" "$stays" "$comes"; do
  [ "$(grep -cx "$job" "$dir/ends")" = 1 ] || fail "job $job ended $(grep -cx "$job" "$dir/ends") times"
done
[ "$(num_starts "$stopped")" = 2 ] || fail "the stopped job began $(num_starts "$stopped") times"
kill_daemon
echo "stops_slurm: on $(scontrol --version), as $slurm_user, within $((SECONDS - began)) s: all as expected"
