#!/usr/bin/env bash
# The same jobs at the same times on four real Slurms side by side on loopback, under Slurm's own schedulers and under a policy
# of pleach-scheduler. Needs root, python3 and Slurm as for order_slurm.sh.
#   deploy/daemon/tests/compare_slurm.sh PLEACH_SCHEDULER POLICY LIST OUT [ARM...]
# LIST: a canonical CSV as `compare_slurm.py scale` writes it. OUT: the folder of rows.csv, explain.txt and why-not.txt.
# Arms: fifo (sched/builtin), backfill (sched/backfill, a limit of n seconds asked for as n minutes, as the policy gets it),
# backfill-rounded (the same, n seconds rounded up to minutes), policy.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1") policy=$2 list=$(realpath "$3") out=$(realpath -m "$4")
[ ! -e "$policy" ] || policy=$(realpath "$policy")
shift 4
arms=("$@")
[ "${#arms[@]}" -gt 0 ] || arms=(fifo backfill backfill-rounded policy)
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$here/slurm_cluster.sh"
export PLEACH_SLURM_NODES="g1:a100:8 g2:a100:8 g3:a100:8 g4:a100:8"
top=$(mktemp -d /tmp/pleach-compare.XXXXXX)
chmod 755 "$top"
mkdir -p "$out"
helpers=()
cleanup() {
  local arm
  [ "${#helpers[@]}" = 0 ] || kill "${helpers[@]}" 2>/dev/null || true
  for arm in "${arms[@]}"; do
    [ -e "$top/$arm/etc/slurm.conf" ] || continue
    # Jobs end before the daemons that watch them, or their step daemons are left behind.
    SLURM_CONF=$top/$arm/etc/slurm.conf scancel -u "$(id -un)" 2>/dev/null || true
  done
  sleep 2
  for arm in "${arms[@]}"; do slurm_stop "$top/$arm"; done
  [ "${PLEACH_KEEP:-0}" = 1 ] || rm -rf "$top"
}
trap cleanup EXIT

# Over the whole queue, with room for all limits. How often Slurm looks is in slurm_cluster.sh: every two seconds.
deep=,default_queue_depth=1000,bf_window=20160,bf_max_job_test=1000,bf_continue
port=${PLEACH_SLURM_PORT:-16900}
for arm in "${arms[@]}"; do
  dir=$top/$arm
  mkdir -p "$dir"
  case $arm in
    fifo) scheduler=builtin$deep priority=basic ;;
    backfill*) scheduler=backfill$deep priority=basic ;;
    policy)
      scheduler=backfill$deep priority=multifactor
      printf 'partition = "main"\nstate_dir = "%s/pleach"\ntick_s = 0.25\n' "$dir" > "$dir/pleach.toml"
      ;;
    *) echo "ARM = $arm: allowed are fifo, backfill, backfill-rounded, policy" >&2; exit 2 ;;
  esac
  cat > "$dir/job.sh" <<JOB
#!/bin/bash
echo "\$1 \$EPOCHREALTIME \$SLURM_JOB_NODELIST" >> $dir/starts
sleep "\$2"
echo "\$1 \$EPOCHREALTIME" >> $dir/ends
JOB
  (PLEACH_SLURM_PORT=$port PLEACH_SLURM_SCHEDULER=$scheduler PLEACH_SLURM_PRIORITY=$priority; slurm_start "$dir")
  if [ "$arm" = policy ]; then
    SLURM_CONF=$dir/etc/slurm.conf "$program" --config "$dir/pleach.toml" run --policy "$policy" --live 2> "$out/daemon.log" &
    helpers+=($!)
  fi
  port=$((port + 10))
done
sleep 3
start_s=$(($(date +%s) + 5))
submitters=()
for arm in "${arms[@]}"; do
  limits=minutes
  [ "$arm" != backfill-rounded ] || limits=rounded
  SLURM_CONF=$top/$arm/etc/slurm.conf python3 "$here/compare_slurm.py" submit "$list" "$top/$arm" "$limits" "$start_s" \
    > "$out/submit-$arm.log" &
  submitters+=($!)
done
num=$(($(wc -l < "$list") - 1))
# Once, in the middle: why a job waits that waits for long.
if [[ " ${arms[*]} " == *" policy "* ]]; then
  export SLURM_CONF=$top/policy/etc/slurm.conf
  until [ "$(cat "$top/policy/submitted" 2>/dev/null | wc -l )" -ge $((num / 2)) ]; do sleep 1; done
  for _ in $(seq 120); do
    waiting=$(squeue -h -t PD -S V -O 'JobID:|,tres-per-node:|,PendingTime:|' | awk -F '|' '/gpu:8/ && $3 >= 8 { print $1; exit }')
    [ -z "$waiting" ] || break
    sleep 1
  done
  [ -z "$waiting" ] || "$program" --config "$top/policy/pleach.toml" why-not --policy "$policy" "$waiting" > "$out/why-not.txt"
fi
wait "${submitters[@]}"
for arm in "${arms[@]}"; do
  end=$((SECONDS + 1200))
  until [ "$(wc -l < "$top/$arm/ends")" -ge "$num" ]; do
    [ $SECONDS -lt $end ] || { echo "$arm: only $(wc -l < "$top/$arm/ends") of $num jobs ended" >&2; exit 1; }
    sleep 1
  done
done
echo list,arm,job,slurm_job,num_gpus,run_time_s,estimate_s,submit_s,start_s,end_s,nodes > "$out/rows.csv"
for arm in "${arms[@]}"; do python3 "$here/compare_slurm.py" rows "$list" "$arm" "$top/$arm" >> "$out/rows.csv"; done
if [ -n "${waiting:-}" ]; then
  "$program" --config "$top/policy/pleach.toml" explain "$waiting" > "$out/explain.txt"
  "$program" --config "$top/policy/pleach.toml" status > "$out/status.txt" || true
  cp "$top/policy/pleach/decisions.jsonl" "$out"
fi
cat "$out"/submit-*.log
python3 "$here/compare_slurm.py" table "$out/rows.csv" "$([[ " ${arms[*]} " == *" backfill "* ]] && echo backfill || echo "${arms[0]}")"
