#!/usr/bin/env bash
# Counts faults on a real Slurm on loopback: jobs of 0.2 s to 1 s all the while, and a fault every few of them, by turns of twelve
# kinds. Afterwards no job is lost and none was started twice. Needs root, and libfaketime (Debian: faketime) for the daemon's clock.
#   deploy/daemon/tests/fault_slurm.sh PLEACH_SCHEDULER POLICY [NUM_JOBS] [NUM_FAULTS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") policy=$2 num_jobs=${3:-1000} num_faults=${4:-100}
[ ! -e "$policy" ] || policy=$(realpath "$policy")
faketime=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -1)
[ -n "$faketime" ] || { echo 'fault_slurm: libfaketimeMT.so.1 is not here (Debian: apt-get install faketime)' >&2; exit 2; }
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$here/slurm_cluster.sh"
export PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16860}
dir=$(mktemp -d /tmp/pleach-faults.XXXXXX)
daemon=
fail() {
  printf 'fault_slurm: %s\n' "$*" >&2
  tail -20 "$dir/daemon.log" >&2 || true
  squeue -a >&2 || true
  exit 1
}
cleanup() {
  [ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || true
  scancel -u "$(id -un)" 2>/dev/null || true
  for _ in $(seq 50); do [ -n "$(squeue -h -a 2>/dev/null)" ] || break; sleep 0.2; done
  slurm_stop "$dir"
  ! mountpoint -q "$dir/pleach" || umount -l "$dir/pleach"
  [ "${PLEACH_KEEP:-0}" = 1 ] || rm -rf "$dir"
}
trap cleanup EXIT

# The daemon's folder is a small disk of its own, and so is what it takes for the time: an offset in a file.
mkdir -p "$dir/pleach"
mount -t tmpfs -o size=8m tmpfs "$dir/pleach"
echo +0 > "$dir/clock"
# The daemon's own Slurm commands, in front of the real ones: a file named after the fault makes them fail.
mkdir -p "$dir/bin"
for name in squeue sinfo scontrol sprio; do
  cat > "$dir/bin/$name" <<WRAP
#!/bin/bash
[ ! -e "$dir/hang" ] || sleep 30
if [ -e "$dir/garbage" ]; then echo 'slurm_load_jobs: Zero Bytes were transmitted'; exit 0; fi
if [ -e "$dir/refuse-$name" ]; then echo 'Unable to contact slurm controller' >&2; exit 1; fi
exec env -u LD_PRELOAD "$(command -v "$name")" "\$@"
WRAP
  chmod +x "$dir/bin/$name"
done
cat > "$dir/pleach.toml" <<CONF
partition = "main"
state_dir = "$dir/pleach"
slurm_bin = "$dir/bin"
tick_s = 0.25
command_limit_s = 2.0
log_bytes_max = 1000000
[estimates]
from = "history"
CONF
cat > "$dir/job.sh" <<'JOB'
#!/bin/bash
echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $SLURM_JOB_NODELIST" >> "$OUT/starts"
sleep "$1"
echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}" >> "$OUT/ends"
JOB
export OUT=$dir
: > "$dir/starts"; : > "$dir/ends"; : > "$dir/cancelled"; : > "$dir/jobs"; : > "$dir/daemon.log"; : > "$dir/ahead"; : > "$dir/behind"
start_daemon() {
  LD_PRELOAD=$faketime FAKETIME_TIMESTAMP_FILE=$dir/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 \
    "$program" --config "$dir/pleach.toml" run --policy "$policy" --live >> "$dir/daemon.log" 2>&1 &
  daemon=$!
}
kill_daemon() { kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true; daemon=; }
submit() {
  local id
  until id=$(sbatch --parsable -p main -o /dev/null -e /dev/null "$@" 2>/dev/null); do sleep 0.2; done
  echo "$id" | tee -a "$dir/jobs"
}
PLEACH_SLURM_PRIORITY=multifactor slurm_start "$dir"
start_daemon
# When the daemon's last round was, by its clock.
round_s() { grep -o '"at_s":[0-9]*' "$dir/pleach/status.json" 2>/dev/null | cut -d: -f2; }
for _ in $(seq 100); do [ -z "$(round_s)" ] || break; sleep 0.2; done
[ -n "$(round_s)" ] || fail 'no round within 20 s'

declare -A counts=()
pending() { squeue -h -t PD -o %i | shuf -n 1; }
# Until the daemon's status says that a round has seen it.
move_clock() { # NAME OFFSET
  local end=$((SECONDS + 30)) now at
  echo "$2" > "$dir/clock"
  until now=$(date +%s) at=$(round_s); [ -n "$at" ] && { [ $((at - now)) -gt 3600 ] || [ $((now - at)) -gt 3600 ]; }; do
    [ $SECONDS -lt $end ] || fail "the daemon does not see a clock at $2"
    sleep 0.1
  done
  echo "$2" >> "$dir/$1"
  sleep 1
  echo +0 > "$dir/clock"
}
fault() {
  local kind=$1 node job
  counts[$kind]=$((${counts[$kind]:-0} + 1))
  case $kind in
    'daemon killed') kill_daemon; sleep "0.$((RANDOM % 5))"; start_daemon ;;
    'daemon killed while it carries out')
      # Right behind a submission, when a factor is due.
      submit --gres=gpu:1 -t 1 "$dir/job.sh" 0.2 > /dev/null
      sleep "0.$((RANDOM % 4))$((RANDOM % 10))"; kill_daemon; start_daemon ;;
    'job cancelled while it waits') job=$(pending); if [ -n "$job" ]; then scancel "$job"; echo "$job" >> "$dir/cancelled"; fi ;;
    'job cancelled while it is started')
      job=$(submit --gres=gpu:1 -t 1 "$dir/job.sh" 0.5)
      sleep "0.$((RANDOM % 6))"; scancel "$job"; echo "$job" >> "$dir/cancelled" ;;
    'commands hang') : > "$dir/hang"; sleep 2.5; rm "$dir/hang" ;;
    'disk full')
      # To the last byte: a file that is replaced, and a line that is appended, find no room.
      cat /dev/zero > "$dir/pleach/filler" 2>/dev/null || true
      sleep 2; rm "$dir/pleach/filler" ;;
    'clock hours ahead') move_clock ahead +5h ;;
    'clock hours behind') move_clock behind -3h ;;
    'commands print garbage') : > "$dir/garbage"; sleep 1; rm "$dir/garbage" ;;
    'scontrol refuses') : > "$dir/refuse-scontrol"; sleep 1; rm "$dir/refuse-scontrol" ;;
    'node down and back')
      node=g$((RANDOM % 3 + 1))
      scontrol update nodename=$node state=down reason=test
      sleep 0.5; scontrol update nodename=$node state=resume 2>/dev/null || true ;;
    'controller restarted')
      # With the jobs of the moment drained: Slurm 22.05 itself goes on counting GPUs of jobs that end in the meantime.
      scontrol update partitionname=main state=inactive
      for _ in $(seq 50); do [ -n "$(squeue -h -t R,CG)" ] || break; sleep 0.2; done
      kill "$(cat "$dir/run/slurmctld.pid")"
      for _ in $(seq 100); do pgrep -F "$dir/run/slurmctld.pid" > /dev/null 2>&1 || break; sleep 0.1; done
      slurmctld
      until scontrol update partitionname=main state=up 2>/dev/null; do sleep 0.2; done ;;
  esac
}
kinds=('daemon killed' 'daemon killed while it carries out' 'job cancelled while it waits' 'job cancelled while it is started'
  'commands hang' 'commands print garbage' 'scontrol refuses' 'node down and back' 'controller restarted'
  'disk full' 'clock hours ahead' 'clock hours behind')
every=$((num_jobs / num_faults)) done_faults=0
began=$SECONDS
for number in $(seq "$num_jobs"); do
  case $((number % 8)) in
    0) more=(--gres=shard:2) ;;
    1) more=(-N2 --gres=gpu:a100:4) ;;
    2) more=(--gres=gpu:v100:5) ;;
    3) more=(--gpus=2) ;;
    *) more=(--gres=gpu:$((number % 4 + 1))) ;;
  esac
  submit "${more[@]}" -t $((number % 17 + 1)) "$dir/job.sh" "0.$((number % 8 + 2))" > /dev/null
  # No more than fifty wait, or every round is one of a long queue.
  while [ $((number % 10)) = 0 ] && [ "$(squeue -h -t PD -o %i 2>/dev/null | wc -l)" -gt 50 ]; do sleep 0.5; done
  if [ $((number % every)) = 0 ] && [ "$done_faults" -lt "$num_faults" ]; then
    fault "${kinds[$((done_faults % ${#kinds[@]}))]}"
    done_faults=$((done_faults + 1))
    [ $((done_faults % 10)) != 0 ] || echo "$number jobs, $done_faults faults, $((SECONDS - began)) s"
  fi
done
end=$((SECONDS + 300))
until [ -z "$(squeue -h -a)" ]; do [ $SECONDS -lt $end ] || fail 'jobs are left over'; sleep 0.5; done
ended() { awk '{ print $1 }' "$dir/ends" | sort -u; }
lost=$(sort -u "$dir/jobs" | comm -23 - <(ended | sort -u - "$dir/cancelled") | wc -l)
# Once, and once more for each time that Slurm requeued it.
ended_twice=$(sort "$dir/ends" | uniq -d | wc -l)
started_twice=$(awk '{ print $1, $2 }' "$dir/starts" | sort | uniq -d | wc -l)
requeued=$(awk '$2 > 0 { print $1 }' "$dir/starts" | sort -u | wc -l)
printf '| fault | times |\n|---|---|\n'
for kind in "${kinds[@]}"; do printf '| %s | %d |\n' "$kind" "${counts[$kind]:-0}"; done
printf '%d jobs, %d faults in %d s: %d ended, %d cancelled, %d requeued by Slurm; %d lost, %d started twice, %d ended twice\n' \
  "$(sort -u "$dir/jobs" | wc -l)" "$done_faults" $((SECONDS - began)) "$(ended | wc -l)" \
  "$(sort -u "$dir/cancelled" | wc -l)" "$requeued" "$lost" "$started_twice" "$ended_twice"
"$program" --config "$dir/pleach.toml" status || true
printf 'messages of a full disk: %d; clocks that the daemon saw hours ahead: %d, behind: %d\n' \
  "$(grep -c 'No space left' "$dir/daemon.log" || true)" "$(wc -l < "$dir/ahead")" "$(wc -l < "$dir/behind")"
[ "$num_faults" -lt ${#kinds[@]} ] || grep -q 'No space left' "$dir/daemon.log" || fail 'the disk was never full'
[ "$lost$started_twice$ended_twice" = 000 ] || fail 'jobs were lost or doubled'
