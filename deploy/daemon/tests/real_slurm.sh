#!/usr/bin/env bash
# Drives a real Slurm on loopback: order, placement, completion, kills, a node that is lost, a controller that restarts,
# hand-back, preemption, a dealer, estimates from ended jobs, shares of GPUs, nodes that will not take a job.
#   deploy/daemon/tests/real_slurm.sh PLEACH_SCHEDULER TREE [NUM_JOBS]
# PLEACH_SCHEDULER is the built program, TREE a policy that takes the shortest job first (example `shortest_first_tree`). Needs root.
# Controller and daemon run as the account of the unit, slurm; PLEACH_SLURM_USER=root makes both root's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=real_slurm program=$1 tree=$(realpath "$2") num_jobs=${3:-60}
[ "$num_jobs" -ge 20 ] || { echo "NUM_JOBS = $num_jobs: allowed is 20 or more" >&2; exit 2; }
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm

echo '1. Shadow: nothing is touched'
job=$(submit -H --gres=gpu:1 "$dir/job.sh" 0)
scheduler run --policy "$tree" --shadow --rounds 2 2>> "$dir/daemon.log"
squeue -h -j "$job" -O admin_comment:\| | grep -q null || fail 'the shadow marked a job'
scancel "$job"

echo '2. Order and placement: eight jobs for a whole node, the shortest first'
start_daemon
wait_for 20 'a heartbeat' test -s "$dir/pleach/heartbeat"
sleep 1
submit --gres=gpu:v100:8 -t 9 "$dir/job.sh" 6 > /dev/null
wait_for 30 'the first job runs' test -s "$dir/starts"
declare -A expected=()
for minutes in 70 20 50 10 80 30 60 40; do
  # The longest is a user's, as all of them are on a real cluster.
  by=(); [ $minutes != 80 ] || by=("${as_user[@]}")
  expected[$minutes]=$("${by[@]}" sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:v100:8 -t $minutes \
    "$dir/job.sh" 0.2)
done
[ "$(squeue -h -t PD -O PriorityLong:\| | sort -u)" = '0|' ] || fail 'a job was not held at submission'
told=$("${as_user[@]}" scontrol release "${expected[80]}" 2>&1) && fail 'a user released what waits for the daemon'
grep -q 'Access/permission denied' <<< "$told" || fail "the user was told: $told"
# A tree that explains: why the longest does not run.
scheduler why-not --policy "$tree" "${expected[80]}" > "$dir/why-not.txt"
wait_for 120 'eight jobs one by one' queue_is_empty
order=$(tail -n +2 "$dir/starts" | awk '{ print $1 }' | tr '\n' ' ')
shortest=$(for minutes in 10 20 30 40 50 60 70 80; do printf '%s ' "${expected[$minutes]}"; done)
[ "$order" = "$shortest" ] || fail "started in the order $order instead of $shortest"
scheduler explain "${expected[10]}" > "$dir/explain.txt"
grep -q 'tier 1' "$dir/explain.txt" || fail 'no explanation by the tree'
cat "$dir/why-not.txt" "$dir/explain.txt"

echo "3. $num_jobs jobs of all kinds; the daemon killed, a node lost, jobs cancelled"
: > "$dir/starts"; : > "$dir/ends"
jobs=() cancelled=()
for number in $(seq "$num_jobs"); do
  case $((number % 10)) in
    0) more=(--gres=shard:2) ;;                 # left to Slurm
    1) more=(-N2 --gres=gpu:1) ;;               # a GPU of each of two nodes
    2) more=(-N2 --gres=gpu:a100:4) ;;
    3) more=(--gres=gpu:a100:3) ;;
    4) more=(--gpus=2) ;;
    5) more=(--gres=gpu:v100:5) ;;
    *) more=(--gres=gpu:$((number % 4 + 1))) ;;
  esac
  jobs+=("$(submit "${more[@]}" -t $((number % 17 + 1)) "$dir/job.sh" 0.$((number % 10)))")
  if [ $((number % 12)) = 7 ]; then scancel "${jobs[-1]}"; cancelled+=("${jobs[-1]}"); fi
  if [ $((number % 15)) = 5 ]; then kill_daemon; start_daemon; fi
  if [ "$number" = 20 ]; then
    long=$(submit --gres=gpu:a100:4 -t 1 "$dir/job.sh" 8); jobs+=("$long")
  fi
done
wait_for 120 'the long job runs' grep -q "^$long " "$dir/starts"
node=$(awk -v job="$long" '$1 == job { print $3; exit }' "$dir/starts")
scontrol update nodename="$node" state=down reason=test
sleep 1
# It may be back already: its daemon still answers.
scontrol update nodename="$node" state=resume 2>/dev/null || true
wait_for 240 'all jobs' queue_is_empty
for job in "${jobs[@]}"; do
  num=$(awk -v job="$job" '$1 == job' "$dir/ends" | sort -u | wc -l)
  if [[ " ${cancelled[*]} " == *" $job "* ]]; then continue; fi
  [ "$num" = 1 ] || fail "job $job ended $num times"
  # Started once, and once more for each time that Slurm requeued it.
  doubled=$(awk -v job="$job" '$1 == job { print $4 }' "$dir/starts" | sort | uniq -d)
  [ -z "$doubled" ] || fail "job $job was started twice"
done
[ "$(awk -v job="$long" '$1 == job' "$dir/starts" | wc -l)" = 2 ] || fail 'the job of the lost node did not run again'
num_placed=0
for job in "${jobs[@]}"; do
  told=$(scheduler explain "$job" 2>/dev/null | grep ": sent" | tail -1) || continue
  nodes=$(sed 's/.*GPU(s) of \(.*\): sent.*/\1/' <<< "$told")
  ran=$(awk -v job="$job" '$1 == job { nodes = $3 } END { print nodes }' "$dir/starts")
  [ -n "$ran" ] || continue
  [ "$(scontrol show hostnames "$ran" | paste -sd,)" = "$nodes" ] || fail "job $job ran on $ran instead of $nodes"
  num_placed=$((num_placed + 1))
done
[ "$num_placed" -ge $((num_jobs / 2)) ] || fail "only $num_placed jobs were placed by the daemon"
scheduler status || true

echo '4. The controller restarts while jobs are held, and the daemon with it'
# With no job running: Slurm 22.05 itself goes on counting the GPUs of jobs that end while its controller is away.
kill_daemon
held=(); for minutes in 3 1 2; do held+=("$(submit --gres=gpu:v100:8 -t $minutes "$dir/job.sh" 0.2)"); done
kill "$(cat "$dir/run/slurmctld.pid")"
wait_for 30 'the controller ends' sh -c '! scontrol ping | grep -q UP'
start_daemon
sleep 1.5; slurmctld
wait_for 60 'three jobs after the restart' queue_is_empty
order=$(tail -n 3 "$dir/starts" | awk '{ print $1 }' | tr '\n' ' ')
[ "$order" = "${held[1]} ${held[2]} ${held[0]} " ] || fail "after the restart the order was $order"

echo '5. The daemon is gone: held jobs are handed back, new ones are not held'
filler=$(submit --gres=gpu:v100:8 -t 1 "$dir/job.sh" 4)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
left=$(submit --gres=gpu:v100:8 -t 2 "$dir/job.sh" 0)
wait_for 20 'the job is held' sh -c "squeue -h -j $left -O PriorityLong:\| | grep -qx '0|'"
kill_daemon
scheduler hand-back
sleep 11
free=$(submit --gres=gpu:1 -t 1 "$dir/job.sh" 0)
wait_for 60 'both jobs without a daemon' queue_is_empty
grep -qx "$left" "$dir/ends" && grep -qx "$free" "$dir/ends" || fail 'a job was lost when the daemon was gone'

echo '6. Preemption: a long job gives way to a short one and runs again'
printf 'preemption = true\nrestart_cost_s = 1.0\n' >> "$dir/pleach.toml"
tree=srtf
start_daemon
sleep 2
long=$(submit --gres=gpu:v100:8 -t 600 "$dir/job.sh" 6)
wait_for 30 'the long job runs' grep -q "^$long " "$dir/starts"
sleep 2
short=$(submit --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.5)
wait_for 90 'both jobs' queue_is_empty
ran=$(tail -n 3 "$dir/starts" | awk '{ print $1 }' | tr '\n' ' ')
[ "$ran" = "$long $short $long " ] || fail "with preemption the order was $ran"
[ "$(grep -cx "$long" "$dir/ends")" = 1 ] || fail 'the long job did not end once'

echo '7. A dealer: wide gangs give way to small jobs and go on where they were stopped; nobody is lost or ends twice'
kill_daemon
tree=index
cat > "$dir/saving.sh" <<'JOB'
#!/bin/bash
# Work is written down ten times a second, as by a job that writes checkpoints.
echo "$SLURM_JOB_ID $(date +%s%N) $SLURM_JOB_NODELIST $SLURM_RESTART_COUNT" >> "$OUT/starts"
did=$(cat "$OUT/did-$SLURM_JOB_ID" 2>/dev/null || echo 0)
while [ "$did" -lt "$1" ]; do sleep 0.1 || exit 1; did=$((did + 1)); echo "$did" > "$OUT/did-$SLURM_JOB_ID"; done
echo "$SLURM_JOB_ID" >> "$OUT/ends"
JOB
start_daemon
sleep 2
wide=()
for kind in a100:4 a100:4 v100:8; do
  # The last may not be requeued, so it cannot be stopped.
  more=(); [ $kind != v100:8 ] || more=(--no-requeue)
  wide+=("$(submit "${more[@]}" --gres=gpu:$kind -t 600 "$dir/saving.sh" 150)")
done
wait_for 30 'the wide gangs run' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
sleep 8
small=()
for number in $(seq 12); do small+=("$(submit --gres=gpu:1 -t 10 "$dir/saving.sh" $((10 + number)))"); done
scheduler why-not "${small[11]}" --policy index | tee "$dir/why-not.txt"
wait_for 240 'all fifteen jobs' queue_is_empty
for job in "${wide[@]}" "${small[@]}"; do
  [ "$(grep -cx "$job" "$dir/ends")" = 1 ] || fail "job $job ended $(grep -cx "$job" "$dir/ends") times"
done
first=$(tail -n 15 "$dir/ends" | head -n 12 | sort -n | tr '\n' ' ')
[ "$first" = "$(printf '%s\n' "${small[@]}" | sort -n | tr '\n' ' ')" ] || fail "the first to end were $first instead of ${small[*]}"
stopped=0
for job in "${wide[@]}"; do [ "$(grep -c "^$job " "$dir/starts")" -lt 2 ] || stopped=$((stopped + 1)); done
[ "$stopped" -ge 1 ] || fail 'no wide gang was stopped'
[ "$(grep -c "^${wide[2]} " "$dir/starts")" = 1 ] || fail 'a job that may not be requeued was started again'
scheduler explain "${small[0]}" | grep 'dealt its GPUs by index\|given free GPUs by index' || fail 'no word of the deal'
scheduler explain "${wide[0]}" > "$dir/explain.txt"

echo '8. Estimates from ended jobs: eight GPUs take a moment and seven take long, though their limits say the opposite'
kill_daemon
printf '[estimates]\nfrom = "history"\n' >> "$dir/pleach.toml"
tree=sjf
start_daemon
sleep 2
submit --gres=gpu:v100:8 -t 8 "$dir/job.sh" 0.2 > /dev/null
submit --gres=gpu:v100:7 -t 5 "$dir/job.sh" 7 > /dev/null
wait_for 60 'two jobs to learn from' queue_is_empty
wait_for 20 'both are learned' grep -q '\[7,\[' "$dir/pleach/history.json"
filler=$(submit --gres=gpu:v100:8 -t 60 "$dir/job.sh" 4)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
never=$(submit --gres=gpu:v100:6 -t 1 "$dir/job.sh" 0)
long=$(submit --gres=gpu:v100:7 -t 5 "$dir/job.sh" 1)
short=$(submit --gres=gpu:v100:8 -t 8 "$dir/job.sh" 0.2)
scancel "$never"
wait_for 60 'both jobs' queue_is_empty
order=$(tail -n 2 "$dir/starts" | awk '{ print $1 }' | tr '\n' ' ')
[ "$order" = "$short $long " ] || fail "with estimates from ended jobs the order was $order instead of $short $long"
scheduler explain "$short" | tee "$dir/explain.txt"
grep -q 'predicted from ended jobs' "$dir/explain.txt" || fail 'no word of where the estimate comes from'
sleep 1.5
! grep -q '\[6,\[' "$dir/pleach/history.json" || fail 'a job that never ran was learned from'
grep -q '"user":"root"' "$dir/pleach/history.json" || fail 'nothing was learned of root'
echo '9. Shares: one node is set apart for them; the shortest first, on the GPUs that the daemon foresaw, and no GPU is both shared and whole'
kill_daemon
printf 'share_nodes = "g1"\n' | cat - "$dir/pleach.toml" > "$dir/pleach.toml.part" && mv "$dir/pleach.toml.part" "$dir/pleach.toml"
install_lua
sed -i '/^\[estimates\]/,$d' "$dir/pleach.toml"
cat > "$dir/part.sh" <<'JOB'
#!/bin/bash
echo "+ $SLURM_JOB_ID $SLURM_JOB_NODELIST ${CUDA_VISIBLE_DEVICES:-none} ${SLURM_SHARDS_ON_NODE:-0}" >> "$OUT/parts"
sleep "$1" || exit 1
echo "- $SLURM_JOB_ID $SLURM_JOB_NODELIST ${CUDA_VISIBLE_DEVICES:-none} ${SLURM_SHARDS_ON_NODE:-0}" >> "$OUT/parts"
JOB
: > "$dir/parts"
start_daemon
sleep 2
# Full: four GPUs of four shards each.
for _ in 1 2 3 4; do submit --gres=shard:4 -t 9 "$dir/part.sh" 12 > /dev/null; done
wait_for 60 'four GPUs are given whole, as shares' sh -c "[ \$(grep -c '^+' $dir/parts) = 4 ]"
order=()
for minutes in 7 3 8 1 6 2 5 4; do order[$minutes]=$(submit --gres=shard:$((minutes % 3 + 2)) -t $minutes "$dir/part.sh" 3); done
[ "$(squeue -h -t PD -O PriorityLong:\| | sort -u)" = '0|' ] || fail 'a share was not held at submission'
never=$(submit --gres=shard:5 -t 1 "$dir/part.sh" 1)
for number in 1 2 3 4; do submit --gres=gpu:a100:$number -t 1 "$dir/part.sh" 2 > /dev/null; done
wait_for 20 'the one that is too large is seen' says_why "$never" 'no GPU has more than 4'
wait_for 120 'all shares but one' sh -c "[ \$(squeue -h -a -o %i | wc -l) = 1 ]"
scancel "$never"
begun=$(awk '$1 == "+" && $3 == "g1" { print $2 }' "$dir/parts" | tail -n +5 | tr '\n' ' ')
# Those that start in one round may begin in any order, and a small one fits where a larger one has to wait: the three shortest all
# begin before the two longest.
place() { tr ' ' '\n' <<< "$begun" | grep -nx "$1" | cut -d: -f1; }
for short in 1 2 3; do
  for long in 7 8; do
    [ "$(place "${order[$short]}")" -lt "$(place "${order[$long]}")" ] || fail "shares started in the order $begun instead of ${order[*]}"
  done
done
awk '{ sign = $1 "1"; if ($3 == "g1") { if ($5 == 0) bad = bad " whole:" $2; used[$4] += sign * $5; if (used[$4] > 4) bad = bad " over:" $2 }
  else if ($5 > 0) bad = bad " elsewhere:" $2 } END { if (bad) { print "real_slurm:" bad; exit 1 } }' "$dir/parts" || fail 'a GPU was given twice'
# Which GPU: as written down before Slurm chose it.
num_foreseen=0
while read -r _ job _ gpu shards; do
  [ "$shards" -gt 0 ] || continue
  mask=$(grep -o "{\"decision\":{\"job\":\"\?$job\"\?,[^}]*\"gpus\":[0-9]*" "$dir/pleach/decisions.jsonl" | tail -1 | sed 's/.*"gpus"://')
  [ "$mask" = $((1 << gpu)) ] || fail "job $job got GPU $gpu and not that of the mask $mask"
  num_foreseen=$((num_foreseen + 1))
done < <(grep '^+' "$dir/parts")
[ "$num_foreseen" = 12 ] || fail "only $num_foreseen shares were looked at"
echo '10. Nodes that will not take a job: its CPUs or its memory are taken, which GPUs do not show'
kill_daemon
sed -i '/^share_nodes/d; /^preemption/d; s/^release_limit_s.*/release_limit_s = 5/' "$dir/pleach.toml"
install_lua
start_daemon
sleep 2
busy=("$(submit -w g1 -n 16 -t 9 "$dir/job.sh" 90)" "$(submit -w g2 -n 1 --mem=63500 -t 9 "$dir/job.sh" 90)")
wait_for 30 'both nodes are busy' sh -c "[ \$(squeue -h -t R | wc -l) = 2 ]"
closed=$(submit --gres=gpu:a100:1 -t 1 "$dir/job.sh" 0.2)
around=("$(submit --gres=gpu:1 -t 3 "$dir/job.sh" 0.2)" "$(submit --gres=gpu:1 -t 4 "$dir/job.sh" 0.2)")
wait_for 60 'both jobs beside the busy nodes' sh -c "[ \$(squeue -h | wc -l) = 3 ]"
for job in "${around[@]}"; do grep -q "^$job .* g3 " "$dir/starts" || fail "job $job ran on $(grep "^$job " "$dir/starts")"; done
says_why "$closed" 'g1 has 0 of 1 CPUs free' && says_why "$closed" 'g2 has 500 of 1000 MiB of memory free' ||
  fail "why it waits: $(scheduler why-not --policy "$tree" "$closed")"
# Nobody was sent there to find out.
! grep -q "job $closed\|job ${around[0]}\|job ${around[1]}" "$dir/daemon.log" || fail "they were let go to and fro"
scancel "${busy[@]}"
wait_for 60 'the busy nodes are free' queue_is_empty
echo '11. Heterogeneous jobs are left to Slurm, and parts that an older script has held are given back'
: > "$dir/ends"
whole=$(sbatch --parsable -D / -o /dev/null -e /dev/null -t 1 --gres=gpu:1 : -t 1 --gres=gpu:2 "$dir/job.sh" 0.2)
wait_for 30 'a heterogeneous job' grep -qx "$whole" "$dir/ends"
lost=$(sbatch --parsable -H -D / -o /dev/null -e /dev/null -t 1 --gres=gpu:1 : -t 1 --gres=gpu:2 "$dir/job.sh" 0.2)
for part in 0 1; do scontrol update "jobid=$lost+$part" admincomment=pleach:held; done
wait_for 30 'one whose parts were held' grep -qx "$lost" "$dir/ends"
wait_for 30 'nobody is left' queue_is_empty
echo '12. The log as a list for the simulator'
scheduler capture "$dir/pleach" --to "$dir/pleach/week.csv" | tee "$dir/captured"
num_captured=$(($(wc -l < "$dir/pleach/week.csv") - 1))
[ "$num_captured" -ge 60 ] && grep -q "^$num_captured jobs that ended" "$dir/captured" || fail "$num_captured jobs were captured"
echo "real_slurm: $((num_jobs + 63)) jobs on $(scontrol --version), as $slurm_user: all as expected \
($num_placed placed by the daemon in step 3)"
