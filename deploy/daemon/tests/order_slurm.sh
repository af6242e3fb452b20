#!/usr/bin/env bash
# Tells a real Slurm on loopback an order, and nothing else: twelve jobs start in exactly that order, jobs of every other kind start
# too, nobody is ever held; kills, a controller that restarts, jobs that were held before, hand-back.
#   deploy/daemon/tests/order_slurm.sh PLEACH_SCHEDULER TREE
# PLEACH_SCHEDULER is the built program, TREE a policy that takes the shortest job first (example `shortest_first_tree`). Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=order_slurm program=$1 tree=$(realpath "$2")
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_MORE='Licenses=matlab:1
PartitionName=debug Nodes=g[1-3] MaxTime=UNLIMITED State=UP' PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16837}
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm
began=$SECONDS
factor_of() { sprio -h -o '%i|%S' | awk -F'|' -v job="$1" '$1 == job { print $2 + 0; exit }'; } # JOB
is_ranked() { [ "$(factor_of "$1")" -gt 0 ] 2>/dev/null; }                                       # JOB
all_ranked() { local job; for job in "$@"; do is_ranked "$job" || return 1; done; }              # JOBS
nobody_is_held() { ! squeue -h -t PD -O PriorityLong:\| | grep -qx '0|' || fail "somebody is held $*"; }
order_of() { awk '{ print $1 }' "$dir/starts" | tail -n "$1" | tr '\n' ' '; }                    # NUM

echo '1. Twelve jobs for a whole node, submitted in any order, start the shortest first'
start_daemon
filler=$(submit --gres=gpu:v100:8 -t 9 "$dir/until.sh" 1)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
declare -A of_minutes=()
for minutes in 70 20 110 50 10 90 120 80 30 100 60 40; do
  of_minutes[$minutes]=$(submit --gres=gpu:v100:8 -t $minutes "$dir/job.sh" 0.2)
  nobody_is_held "after job ${of_minutes[$minutes]}"
done
shortest=$(for minutes in $(seq 10 10 120); do printf '%s ' "${of_minutes[$minutes]}"; done)
is_told() { [ "$(sprio -h -o '%i|%S' | sort -t'|' -k2,2nr | awk -F'|' '$2 > 0 { printf "%d ", $1 }')" = "$shortest" ]; }
wait_for 30 'the order of all twelve is told' is_told
squeue -h -t PD -O 'JobID:|,PriorityLong:|' > "$dir/queue.txt"
scheduler why-not --policy "$tree" "${of_minutes[20]}" | tee "$dir/why-not.txt"
grep -q 'number 2 of 12 in the order' "$dir/why-not.txt" && grep -q 'Slurm: .*site factor' "$dir/why-not.txt" || fail 'no word of the order'
scheduler status | grep -q "live, order" || fail 'status does not say that an order is told'
go 1
wait_for 120 'the twelve' queue_is_empty
order=$(order_of 12)
[ "$order" = "$shortest" ] || fail "started in the order $order instead of $shortest"

echo '2. Jobs of every other kind start, though shorter ones keep coming'
scontrol update nodename=g1,g2 availablefeatures=nvme activefeatures=nvme
full=(); for kind in a100:4 a100:4 v100:8; do full+=("$(submit --gres=gpu:$kind -t 9 "$dir/until.sh" 2)"); done
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
others=(
  "$(submit -n 2 -t 30 "$dir/job.sh" 0.1)"
  "$(submit -C nvme --gres=gpu:4 -t 50 "$dir/job.sh" 0.1)"
  "$(submit --exclude=g3 --gres=gpu:4 -t 50 "$dir/job.sh" 0.1)"
  "$(submit --gpus-per-task=1 -n 2 -t 50 "$dir/job.sh" 0.1)"
  "$(submit --gres=shard:1 -t 50 "$dir/job.sh" 0.1)"
  "$(submit --exclusive --gres=gpu:1 -t 50 "$dir/job.sh" 0.1)"
  # Accounts are any text here: one that looks like another job.
  "$(submit -A $'x|\n9|PENDING|0|gres:gpu:1|' --gres=gpu:1 -t 50 "$dir/job.sh" 0.1)"
)
parts=$(sbatch --parsable -D / -o /dev/null -e /dev/null -t 50 --gres=gpu:1 : -t 50 --gres=gpu:2 "$dir/job.sh" 0.1)
array=$(submit --array=0-19%4 --gres=gpu:2 -t 5 "$dir/job.sh" 0.1)
ranked=(); for number in 1 2 3 4; do ranked+=("$(submit --gres=gpu:$number -t $number "$dir/job.sh" 0.1)"); done
nobody_is_held 'among jobs of all kinds'
wait_for 30 'they and the array are ranked' all_ranked "${ranked[@]}" "$array"
[ "$(squeue -h -a -t PD -O JobArrayID:\| | grep -c "^${array}_")" = 1 ] || fail 'the array was taken apart'
go 2
for number in 1 2 3 4 5 6; do ranked+=("$(submit --gres=gpu:4 -t 1 "$dir/job.sh" 0.3)"); sleep 0.3; done
wait_for 180 'jobs of all kinds' queue_is_empty
for job in "${full[@]}" "${others[@]}" "$parts" "${ranked[@]}"; do
  [ "$(grep -cx "$job" "$dir/ends")" = 1 ] || fail "job $job ended $(grep -cx "$job" "$dir/ends") times"
done
[ "$(grep -c . "$dir/ends")" -ge 48 ] || fail "of the array's tasks some are missing"
scheduler status | grep -q ' rounds, 0 failed' || fail "rounds failed: $(scheduler status)"

echo '3. The daemon killed: the order stays and jobs start; the controller restarts: factors are kept, and the next daemon goes on'
filler=$(submit --gres=gpu:v100:8 -t 9 "$dir/until.sh" 3)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
waiting=(); for minutes in 30 10 20; do waiting+=("$(submit --gres=gpu:v100:8 -t $minutes "$dir/job.sh" 0.2)"); done
wait_for 30 'all three are ranked' all_ranked "${waiting[@]}"
kill_daemon
kill "$(cat "$dir/run/slurmctld.pid")"
wait_for 30 'the controller ends' sh -c '! scontrol ping | grep -q UP'
slurmctld
wait_for 30 'the controller is back' sh -c 'scontrol ping | grep -q UP'
all_ranked "${waiting[@]}" || fail 'factors were lost with the controller'
start_daemon
later=$(submit --gres=gpu:v100:8 -t 15 "$dir/job.sh" 0.2)
wait_for 30 'the one that came later is ranked' is_ranked "$later"
kill_daemon
go 3
wait_for 120 'all four without a daemon' queue_is_empty
[ "$(order_of 4)" = "${waiting[1]} $later ${waiting[2]} ${waiting[0]} " ] || fail "after two deaths the order was $(order_of 4)"

echo '4. A job that a daemon held before is given back; what is handed back has no factor'
start_daemon
filler=$(submit --gres=gpu:v100:8 -t 9 "$dir/until.sh" 4)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
left=$(submit -H --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.1)
own=$(submit -H --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.1)
scontrol update jobid="$left" admincomment=pleach:held
wait_for 30 'the held one is given back and ranked' is_ranked "$left"
[ "$(squeue -h -j "$own" -O PriorityLong:\|)" = '0|' ] || fail "what its user holds was released"
kill_daemon
scheduler hand-back
[ "$(factor_of "$left")" = 0 ] || fail "after hand-back its factor is $(factor_of "$left")"
scancel "$own"
go 4
wait_for 60 'both' queue_is_empty

echo '5. Short jobs leave the queue in every way, ask for two days there and come back at once: they start behind all honest ones'
start_daemon
submit_as_user() { "${as_user[@]}" sbatch --parsable -D / -o /dev/null -e /dev/null "$@"; }
by_user() { "${as_user[@]}" scontrol "$@"; }
priority_of() { squeue -h -r -j "$1" -O PriorityLong:\| | tr -d '|\n'; } # JOB
is_low() { [ "$(priority_of "$1")" -le 1 ]; }                             # JOB
filler=$(submit_as_user --gres=gpu:v100:8 -t 9 "$dir/until.sh" 5)
wait_for 30 'the filler runs' grep -q "^$filler " "$dir/starts"
behind=$(submit_as_user --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.2)
held=$(submit_as_user --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.2)
later=$(submit_as_user --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.2)
array=$(submit_as_user --array=0-1 --gres=gpu:v100:8 -t 1 "$dir/job.sh" 0.2)
wait_for 30 'all four are ranked' all_ranked "$behind" "$held" "$later" "$array"
by_user update jobid="$behind" dependency=afterany:"$filler"
by_user hold "$held,${array}_1"
by_user update jobid="$later" starttime=now+3600
for job in "$behind" "$held" "$later" "${array}_1"; do by_user update jobid="$job" timelimit=2-00:00:00; done
honest=(); for minutes in 30 10 20; do honest+=("$(submit --gres=gpu:v100:8 -t $minutes "$dir/job.sh" 0.2)"); done
wait_for 30 'the honest ones are ranked' all_ranked "${honest[@]}"
wait_for 30 'the one behind another job has no factor' is_low "$behind"
wait_for 30 'the one that begins later has no factor' is_low "$later"
# A look at the held ones, of which Slurm tells no priority, and their factors are written in the same round.
sleep 3
by_user release "$held,${array}_1"
by_user update jobid="$later" starttime=now
is_low "$held" || fail "the job that was held has priority $(priority_of "$held")"
is_low "${array}_1" || fail "the task that was held has priority $(priority_of "${array}_1")"
# What the others wait for ends in the same moment.
go 5
wait_for 120 'honest jobs and the others' queue_is_empty
order=$(order_of 8 | cut -d' ' -f 1-4)
# The array's other task is as short as it says, and comes first.
[ "${order#* }" = "${honest[1]} ${honest[2]} ${honest[0]}" ] || fail "started in the order $(order_of 8), honest are ${honest[*]}"
kill_daemon

echo '6. Whatever a long job asks for it comes behind the short ones: exclusive, with features, licences, in another partition, in parts'
start_daemon
scontrol update nodename=g1,g2,g3 availablefeatures=nvme activefeatures=nvme
full=(); for kind in a100:4 a100:4 v100:8; do full+=("$(submit --gres=gpu:$kind -t 9 "$dir/until.sh" 6)"); done
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
long=(
  "$(submit_as_user --exclusive -w g3 -t 2-0 "$dir/job.sh" 0.1)"
  "$(submit_as_user --exclusive=user --gres=gpu:v100:8 -t 2-0 "$dir/job.sh" 0.1)"
  "$(submit_as_user -C nvme --gres=gpu:v100:8 -t 2-0 "$dir/job.sh" 0.1)"
  "$(submit_as_user -L matlab --gres=gpu:v100:8 -t 2-0 "$dir/job.sh" 0.1)"
  "$(submit_as_user -p debug --gres=gpu:v100:8 -t 2-0 "$dir/job.sh" 0.1)"
  "$(submit_as_user --gpus-per-task=1 -n 8 -w g3 -t 2-0 "$dir/job.sh" 0.1)"
)
parts=$("${as_user[@]}" sbatch --parsable -D / -o /dev/null -e /dev/null -t 2-0 --gres=gpu:v100:8 : -n 1 "$dir/job.sh" 0.1)
short=(); for minutes in 3 1 2; do short+=("$(submit --gres=gpu:v100:8 -t $minutes "$dir/job.sh" 0.2)"); done
wait_for 30 'the short ones are ranked' all_ranked "${short[@]}"
wait_for 30 'the long ones are ranked' all_ranked "${long[@]}"
least=$(for job in "${short[@]}"; do factor_of "$job"; done | sort -n | head -1)
for job in "${long[@]}" "$parts"; do
  [ "$(factor_of "$job")" -lt "$least" ] || fail "job $job of two days has factor $(factor_of "$job"), short ones have $least and more"
done
go 6
wait_for 180 'all of them' queue_is_empty
kill_daemon
scheduler hand-back

echo '7. Chains of singletons are as fast as without a daemon'
start_daemon
began_chain=$SECONDS
for _ in 1 2 3; do submit -d singleton -J chain --gres=gpu:1 -t 1 "$dir/job.sh" 2 > /dev/null; done
wait_for 60 'the chain' queue_is_empty
chain_s=$((SECONDS - began_chain))
kill_daemon
echo "order_slurm: $(wc -l < "$dir/starts") starts on $(scontrol --version), as $slurm_user, within $((SECONDS - began)) s, three singletons of 2 s in $chain_s s: all as expected"
