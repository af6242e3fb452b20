#!/usr/bin/env bash
# Measures the delays of a real Slurm on loopback, which the simulator's batch system `slurm` has as constants: from a release to
# the start of a job, from its end until it is gone and its GPUs are free, from a preemption until the job can be let go again, and
# from the death of a node's daemon until the node is down. One line for each: median, 10th and 90th percentile, s. Needs root.
#   deploy/daemon/tests/delays_slurm.sh [NUM]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
num=${1:-30}
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$here/slurm_cluster.sh"
export PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16880}
dir=$(mktemp -d /tmp/pleach-delays.XXXXXX)
cleanup() {
  scancel -u "$(id -un)" 2>/dev/null || true
  sleep 2
  slurm_stop "$dir" || true
  rm -rf "$dir"
}
trap cleanup EXIT
slurm_start "$dir"
cat > "$dir/job.sh" <<'JOB'
#!/bin/bash
echo "$EPOCHREALTIME" >> "$OUT/start-$SLURM_JOB_ID"
sleep "$1" || exit 1
echo "$EPOCHREALTIME" > "$OUT/end-$SLURM_JOB_ID"
JOB
export OUT=$dir
submit() { sbatch --parsable -H -o /dev/null -e /dev/null -t 5 --gres=gpu:v100:8 "$dir/job.sh" "$1"; }
# As the daemon does it.
release() { scontrol update "jobid=$1" reqnodelist=g3 admincomment=pleach:decided "${@:2}"; scontrol release "$1"; }
wait_until() { # WHAT COMMAND...
  local what=$1 end=$((SECONDS + 180)); shift
  until "$@"; do [ $SECONDS -lt $end ] || { echo "delays_slurm: not within 180 s: $what" >&2; exit 1; }; sleep 0.02; done
}
is_free() { [ "$(sinfo -h -N -n g3 -O GresUsed:64 | grep -o 'gpu:v100:[0-9]*')" = gpu:v100:0 ]; }
is_gone() { ! squeue -h -j "$1" -t PD,R,CG -o %i 2>/dev/null | grep -q .; }
is_waiting() { [ "$(squeue -h -j "$1" -o %T)" = PENDING ]; }
is_down() { [[ "$(sinfo -h -N -n "$1" -O StateLong | head -1)" == down* ]]; }
since() { awk -v from="$1" -v to="$2" 'BEGIN { printf "%.3f\n", to - from }'; }
show() { # WHAT FILE
  sort -n "$2" | awk -v what="$1" '{ v[NR] = $1 } END {
    printf "%-40s median %.2f  p10 %.2f  p90 %.2f  (%d times)\n", what, v[int((NR + 1) / 2)], v[int(NR / 10) + 1], v[int(NR * 9 / 10 + 0.5)], NR }'
}
for _ in $(seq "$num"); do
  job=$(submit 0.3)
  sleep "0.$((RANDOM % 9))"
  from=$EPOCHREALTIME
  release "$job"
  wait_until "the end of job $job" test -s "$dir/end-$job"
  since "$from" "$(cat "$dir/start-$job")" >> "$dir/starts"
  wait_until "job $job is gone" is_gone "$job"
  wait_until 'the GPUs are free' is_free
  since "$(cat "$dir/end-$job")" "$EPOCHREALTIME" >> "$dir/ends"
done
for _ in $(seq "$((num / 3))"); do
  job=$(submit 60)
  release "$job"
  wait_until "job $job runs" test -s "$dir/start-$job"
  from=$EPOCHREALTIME
  scontrol requeuehold incomplete "$job"
  wait_until "job $job waits again" is_waiting "$job"
  wait_until 'the GPUs are free' is_free
  since "$from" "$EPOCHREALTIME" >> "$dir/requeues"
  from=$EPOCHREALTIME
  rm "$dir/start-$job"
  release "$job" starttime=now+2
  wait_until "job $job runs again" test -s "$dir/start-$job"
  since "$from" "$(cat "$dir/start-$job")" >> "$dir/restarts"
  scancel "$job"
  wait_until 'the GPUs are free' is_free
done
from=$EPOCHREALTIME
for node in g1 g2 g3; do
  kill -9 "$(cat "$dir/run/slurmd.$node.pid")"
  rm "$dir/run/slurmd.$node.pid"
done
for node in g1 g2 g3; do
  wait_until "$node is down" is_down "$node"
  since "$from" "$EPOCHREALTIME" >> "$dir/downs"
done
echo "$(scontrol --version), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
show 'release to start' "$dir/starts"
show 'end to gone, GPUs free' "$dir/ends"
show 'preemption to waiting, GPUs free' "$dir/requeues"
show 'release to second start' "$dir/restarts"
show 'slurmd killed to node down' "$dir/downs"
scontrol show config | grep -E 'SlurmdTimeout|SlurmctldTimeout|KillWait'
