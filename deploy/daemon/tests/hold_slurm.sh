#!/usr/bin/env bash
# Holds the jobs of a busy site on a real Slurm with slurmdbd: features, reservations to come, licences, CPUs and memory are known
# before anybody is let go; limits of an account cost nobody else anything; users do not jump the queue; arrays of thousands and what
# came in an outage are held in a few commands; what the tables cannot say goes last or to nodes set aside; a sleeping node is woken.
# Prints what it measured.
#   deploy/daemon/tests/hold_slurm.sh PLEACH_SCHEDULER TREE [NUM_TASKS] [NUM_SINGLE]
# PLEACH_SCHEDULER is the built program, TREE a policy that takes the shortest job first (example `shortest_first_tree`). Needs root,
# slurmdbd and mariadbd; without them it says that it is skipped. NUM_TASKS (20000): tasks of the largest array. NUM_SINGLE (300):
# jobs that are held and given back one by one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=hold_slurm program=$1 tree=$(realpath "$2") num_tasks=${3:-20000} num_single=${4:-300}
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_ACCOUNTING=1 PLEACH_SLURM_NODES='g1:a100:4:nvme,old g2:a100:4:nvme g3:a100:8 g4:a100:8'
# The last node sleeps when it is told to; it is not of the partition before step 7. Its programs run as slurm, and write down what root
# then does to the node's daemon.
power=$(mktemp -d /tmp/pleach-power.XXXXXX); chmod 777 "$power"
for word in suspend resume; do printf '#!/bin/bash\necho %s "$1" >> %s/asked\n' $word "$power" > "$power/$word"; done
: > "$power/asked"; chmod 755 "$power"/*; chmod 666 "$power/asked"
export PLEACH_SLURM_MORE="MaxArraySize=50001
MaxJobCount=60000
Licenses=matlab:1
PartitionName=side Nodes=g1 MaxTime=UNLIMITED State=UP
PartitionName=debug Nodes=g1 MaxTime=UNLIMITED State=UP
SuspendProgram=$power/suspend
ResumeProgram=$power/resume
SuspendTime=36000
SuspendTimeout=5
ResumeTimeout=60"
export PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16877}
# shellcheck source=deploy/daemon/tests/slurm_accounting.sh
. "$here/slurm_accounting.sh"
accounting_is_here || { echo 'hold_slurm: skipped, slurmdbd and mariadbd are not here'; exit 0; }
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
echo 'left_partitions = ["debug"]' | cat - "$dir/pleach.toml" > "$dir/pleach.toml.part" && mv "$dir/pleach.toml.part" "$dir/pleach.toml"
watcher=
trap 'cleanup; [ -z "$watcher" ] || kill "$watcher" 2> /dev/null || true; rm -rf "$power"' EXIT
began=$SECONDS
limited=bin free=games
as() { local who=$1; shift; setpriv "--reuid=$who" "--regid=$(id -g "$who")" --clear-groups "$@"; } # USER COMMAND...
by() { local who=$1; shift; as "$who" sbatch --parsable -D / -o /dev/null -e /dev/null "$@"; }       # USER ARGS...
ran_on() { awk -v job="$1" '$1 == job { print $3; exit }' "$dir/starts"; }                           # JOB
is_held() { squeue -h -j "$1" -O PriorityLong:\| | sort -u | grep -qx '0|'; }                        # JOB
has_run() { grep -qx "$1" "$dir/ends"; }                                                             # JOB
num_held() { squeue -h -r -t PD -O PriorityLong:\| | grep -cx '0|' || true; }
seconds() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b - a) }'; }

start_slurm
scontrol update partitionname=main nodes='g[1-3]'
sacctmgr -i add account a1,a2 > "$dir/sacctmgr.txt"
sacctmgr -i modify account a1 set GrpTRES=gres/gpu=2 >> "$dir/sacctmgr.txt"
sacctmgr -i add user $limited account=a1 >> "$dir/sacctmgr.txt"
sacctmgr -i add user $free account=a2 >> "$dir/sacctmgr.txt"
until by $free -t 1 "$dir/job.sh" 0 > /dev/null 2> "$dir/err"; do
  [ $((SECONDS - began)) -lt 90 ] || fail "the controller does not know its users: $(cat "$dir/err")"; sleep 0.2
done
start_daemon
wait_for 20 'a heartbeat' test -s "$dir/pleach/heartbeat"
sleep 1

echo '1. What a site knows: each job goes where it may, and none is let go to find out'
scontrol create reservation reservationname=maint starttime=now+1800 duration=60 nodes=g3 flags=maint users=root > /dev/null
scontrol create reservation reservationname=lic starttime=now+3600 duration=60 licenses=matlab:1 users=root > /dev/null 2>&1 || true
busy=$(submit -w g1 --mem=60000 -t 9 "$dir/job.sh" 12)
wait_for 20 'memory of g1 is taken' sh -c "squeue -h -j $busy -t R | grep -q ."
old=$(by $free -C 'nvme&old' --gres=gpu:1 --mem=100 -t 10 "$dir/job.sh" 0.2)
nvme=$(by $free -C nvme --gres=gpu:1 --mem=10000 -t 11 "$dir/job.sh" 0.2)
long=$(by $free --gres=gpu:1 --mem=10000 -t 120 "$dir/job.sh" 0.2)
short=$(by $free --gres=gpu:8 --mem=100 -t 12 "$dir/job.sh" 0.2)
shuns=$(by $free -x g1,g3 --gres=gpu:1 --mem=100 -t 13 "$dir/job.sh" 0.2)
named=$(by $free -w g3 --gres=gpu:1 --mem=100 -t 14 "$dir/job.sh" 0.2)
by_task=$(by $free -n 2 -N 1 --gpus-per-task=2 --mem=100 -t 15 "$dir/job.sh" 0.2)
alone=$(by $free --exclusive --gres=gpu:1 --mem=100 -t 16 "$dir/job.sh" 0.2)
all=("$old" "$nvme" "$long" "$short" "$shuns" "$named" "$by_task" "$alone")
wait_for 60 'all jobs but the busy one' sh -c "[ \"\$(squeue -h -a -o %i | grep -vx $busy | wc -l)\" = 0 ]"
for job in "${all[@]}"; do has_run "$job" || fail "job $job did not end well"; done
for pair in "$old:g1" "$nvme:g2" "$long:g2" "$short:g3" "$shuns:g2" "$named:g3"; do
  [ "$(ran_on "${pair%:*}")" = "${pair#*:}" ] || fail "job ${pair%:*} ran on $(ran_on "${pair%:*}") instead of ${pair#*:}"
done
! grep -q 'was let go' "$dir/daemon.log" || fail 'somebody was let go and did not start'
scontrol delete reservationname=maint > /dev/null; scontrol delete reservationname=lic > /dev/null 2>&1 || true
wait_for 60 'the busy one' queue_is_empty

echo '2. An account at its limit with 40 jobs beside another one with 24: nobody else waits, nobody is let go for nothing'
: > "$dir/starts"; : > "$dir/ends"
filler=$(submit -A root --gres=gpu:8 -w g3 -t 60 "$dir/job.sh" 3)
of_limited=() of_free=()
for _ in $(seq 40); do of_limited+=("$(by $limited --gres=gpu:1 --mem=100 -t 1 "$dir/job.sh" 1)"); done
for _ in $(seq 24); do of_free+=("$(by $free --gres=gpu:1 --mem=100 -t 2 "$dir/job.sh" 1)"); done
from=$(date +%s.%N)
in_queue() { local job; for job in "$@"; do ! has_run "$job" || continue; return 0; done; return 1; }
while in_queue "${of_free[@]}"; do
  [ $((SECONDS - began)) -lt 400 ] || fail 'the jobs of the free account do not end'; sleep 0.2
done
free_s=$(seconds "$from" "$(date +%s.%N)")
left=$(for job in "${of_limited[@]}"; do has_run "$job" || echo "$job"; done | wc -l)
[ "$left" -ge 10 ] || fail "only $left of the limited are left: this says nothing of the limit"
says_why "$(for job in "${of_limited[@]}"; do has_run "$job" || echo "$job"; done | tail -1)" 'GrpTRES=gres/gpu of account a1' ||
  fail 'why-not does not name the limit'
! grep -q 'was let go' "$dir/daemon.log" || fail "somebody was let go in vain: $(grep 'was let go' "$dir/daemon.log" | head -2)"
scancel "${of_limited[@]}" "$filler" 2> /dev/null || true
wait_for 60 'the rest' queue_is_empty

echo '3. Users do not jump the queue: whatever they ask for they are held, a nice lifts no hold, nothing changes after the decision'
filler=(); for node in g1 g2; do filler+=("$(submit -A root --gres=gpu:4 -w $node -t 60 "$dir/job.sh" 7)"); done
filler+=("$(submit -A root --gres=gpu:8 -w g3 -t 60 "$dir/job.sh" 7)")
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
for more in '--gres=gpu:1 -C nvme' '--gres=gpu:1 -L matlab:1' '--gpus-per-task=1 -n 1' '--gres=gpu:1 --exclusive' '--gres=gpu:1 -x g1' \
  '--gres=gpu:1 -w g2' '--gres=gpu:1 --begin=now+7' '-p main,side --gres=gpu:1' '-p side --gres=gpu:1' '--gres=shard:1' '--gpus=1'; do
  # shellcheck disable=SC2086
  job=$(by $free $more --mem=100 -t 3 "$dir/job.sh" 0.2)
  is_held "$job" || fail "$more was not held"
done
as $free scontrol update "jobid=$job" nice=1 2> /dev/null || true
is_held "$job" || fail 'a nice lifted the hold'
told=$(as $free scontrol update "jobid=$job" admincomment=pleach:off 2>&1) && fail 'a user wrote a mark'
grep -q 'Access/permission denied' <<< "$told" || fail "who writes a mark is told: $told"
is_held "$job" || fail 'a mark that a user wrote lifted the hold'
wait_for 90 'all of them' queue_is_empty
# A partition that the site leaves to Slurm, which the daemon says; and who releases what he held himself begins when it was seen.
grep -q 'left_partitions`): debug' "$dir/daemon.log" || fail 'nobody said which partition is left to Slurm'
job=$(by $free -p debug --gres=gpu:1 --mem=100 -t 3 "$dir/job.sh" 0.2)
! is_held "$job" || fail 'a job of a partition that is left to Slurm was held'
own=$(by $free -H --gres=gpu:1 --mem=100 -t 3 "$dir/job.sh" 0.2)
as $free scontrol release "$own"
sleep 0.2
! grep -q "^$own " "$dir/starts" || fail 'who releases what he held himself starts before the daemon has seen it'
may_start=$(scontrol show job "$own" | sed -n 's/.*EligibleTime=\([^ ]*\).*/\1/p')
[ "$(date -d "$may_start" +%s)" -gt "$(date +%s)" ] || fail "it may start at $may_start"
wait_for 60 'both' queue_is_empty
whole=$(by $free -t 1 --gres=gpu:1 --mem=100 : -t 1 --gres=gpu:1 --mem=100 "$dir/job.sh" 0.2)
wait_for 30 'a heterogeneous job is nobody else'\''s than Slurm'\''s' has_run "$whole"

echo '4. Shares that are not given, and a partition beside: last of all, or on a node that is set aside'
: > "$dir/starts"; : > "$dir/ends"
filler=(); for node in g1 g2; do filler+=("$(submit -A root --gres=gpu:4 -w $node -t 60 "$dir/until.sh" $node)"); done
filler+=("$(submit -A root --gres=gpu:8 -w g3 -t 60 "$dir/until.sh" g3)")
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
first=$(by $free --gres=gpu:4 --mem=100 -t 30 "$dir/job.sh" 0.2)
share=$(by $free --gres=shard:1 --mem=100 -t 1 "$dir/job.sh" 0.2)
beside=$(by $free -p side --gres=gpu:4 --mem=100 -t 20 "$dir/job.sh" 0.2)
wait_for 20 'what the share waits for is told' says_why "$share" 'nobody who came before it'
waits_to_be_last() { scheduler status | grep -q '1 job(s) wait to be last'; }
wait_for 20 'the status tells of it' waits_to_be_last
is_held "$share" && is_held "$beside" || fail 'somebody is free'
go g2
wait_for 30 'the first job and the share' sh -c "grep -qx $first '$dir/ends' && grep -qx $share '$dir/ends'"
place_of() { awk -v job="$1" '$1 == job { print NR; exit }' "$dir/starts"; } # JOB
[ "$(place_of "$first")" -lt "$(place_of "$share")" ] || fail 'the share started first'
! grep -q "^$beside " "$dir/starts" || fail 'a job of another partition ran on a node that is not of it'
go g1
wait_for 30 'the job of the partition beside' has_run "$beside"
[ "$(ran_on "$beside")" = g1 ] || fail "it ran on $(ran_on "$beside")"
kill_daemon
sed -i '1i spare_nodes = "g2"' "$dir/pleach.toml"
start_daemon
rm -f "$dir"/go-*
filler+=("$(submit -A root --gres=gpu:4 -w g1 -t 60 "$dir/until.sh" g1)")
wait_for 30 'g1 is taken' sh -c "[ \$(squeue -h -t R -w g1 | wc -l) = 1 ]"
waits=$(by $free --gres=gpu:4 --mem=100 -t 30 "$dir/job.sh" 0.2)
share=$(by $free --gres=shard:1 --mem=100 -t 1 "$dir/until.sh" g2)
wait_for 30 'the share runs on the node that is set aside' grep -q "^$share .* g2 " "$dir/starts"
is_held "$waits" || fail 'a job of the policy was let go to a node that is set aside'
# Who names a node that is set aside gets it; another share that shuns a node of its user's waits for a whole GPU of shards there.
named=$(by $free -w g2 --gres=gpu:3 --mem=100 -t 9 "$dir/until.sh" g2)
wait_for 30 'a job that names the node runs there' grep -q "^$named .* g2 " "$dir/starts"
shuns() { squeue -h -j "$1" -o %x; } # JOB
second=$(by $free --gres=shard:4 -x g3 --mem=100 -t 1 "$dir/job.sh" 0.2)
wait_for 30 'another share is let go there' sh -c "squeue -h -j $second -O admin_comment:40 | grep -q 'pleach:apart;exc=g3'"
[ "$(shuns "$second")" = 'g[1,3]' ] || fail "it shuns $(shuns "$second")"
told=$(as $free scontrol update "jobid=$second" excnodelist= 2>&1) && fail 'a user took the nodes away that his job is kept off'
grep -q 'Access/permission denied' <<< "$told" || fail "who tries is told: $told"
kill_daemon
scheduler hand-back > /dev/null
[ "$(shuns "$second")" = g3 ] || fail "after hand-back it shuns $(shuns "$second")"
go g1; go g2; go g3
wait_for 60 'everybody of step 4' queue_is_empty
sed -i '/^spare_nodes/d' "$dir/pleach.toml"
start_daemon
wait_for 20 'a heartbeat' test -s "$dir/pleach/heartbeat"

echo "5. An outage: an array of $num_tasks and one of 3,000 tasks came unheld, and $num_single single jobs; the daemon comes back"
kill_daemon
mv "$dir/etc/job_submit.lua" "$dir/etc/job_submit.lua.aside"; cp "$dir/first.lua" "$dir/etc/job_submit.lua"; sleep 2
filler=(); for node in g1 g2; do filler+=("$(submit -A root --gres=gpu:4 -w $node -t 60 "$dir/job.sh" 1500)"); done
filler+=("$(submit -A root --gres=gpu:8 -w g3 -t 60 "$dir/job.sh" 1500)")
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
by $free --gres=gpu:1 --mem=100 -t 1 --array=0-$((num_tasks - 1)) "$dir/job.sh" 0 > /dev/null
by $free --gres=gpu:1 --mem=100 -t 1 -x g3 --array=0-2999 "$dir/job.sh" 0 > /dev/null
seq "$num_single" | as $free xargs -P 8 -I{} sbatch -Q -D / -o /dev/null -e /dev/null --gres=gpu:1 --mem=100 -t 1 "$dir/job.sh" 0
mv "$dir/etc/job_submit.lua.aside" "$dir/etc/job_submit.lua"; touch "$dir/etc/job_submit.lua"; sleep 2
num_all=$((num_tasks + 3000 + num_single))
[ "$(squeue -h -r -t PD | wc -l)" = "$num_all" ] || fail "$(squeue -h -r -t PD | wc -l) of $num_all wait"
# That of the daemon that was is old.
rm -f "$dir/pleach/heartbeat"
from=$(date +%s.%N)
start_daemon
oldest_s=0 num_rounds=0
until [ "$(num_held)" = "$num_all" ]; do
  [ "$(seconds "$from" "$(date +%s.%N)" | cut -d. -f1)" -lt 120 ] || fail "$(num_held) of $num_all are held after two minutes"
  [ ! -s "$dir/pleach/heartbeat" ] || age=$(($(date +%s) - $(cat "$dir/pleach/heartbeat")))
  [ "${age:-0}" -le "$oldest_s" ] || oldest_s=$age
  sleep 0.3
done
held_s=$(seconds "$from" "$(date +%s.%N)")
new=$(by $free --gres=gpu:1 --mem=100 -t 3 "$dir/job.sh" 0.2)
is_held "$new" || fail 'a new job was not held meanwhile'
# The script would hold nobody any more.
[ "$oldest_s" -lt 10 ] || fail "the heartbeat was $oldest_s s old"
wait_for 60 'three whole rounds' sh -c "sleep 15; test -s $dir/pleach/status.json"
times=$(tr ',' '\n' < "$dir/pleach/status.json" | grep -E 'observe_s|decide_s|apply_s' | tr '\n' ' ')
num_rounds=$(tr ',' '\n' < "$dir/pleach/status.json" | sed -n 's/.*"num_rounds"://p')

echo '6. They are given back'
kill_daemon
from=$(date +%s.%N)
scheduler hand-back | tail -1
back_s=$(seconds "$from" "$(date +%s.%N)")
[ "$(num_held)" = 0 ] || fail "$(num_held) are still held"
scancel -u $free; scancel -u root
wait_for 120 'nobody is left' queue_is_empty

echo '7. A node that sleeps is woken by a job that is let go to it'
tail -n 0 -f "$power/asked" | while read -r word node; do
  if [ "$word" = suspend ]; then pkill -F "$dir/run/slurmd.$node.pid" || true; else slurmd -b -N "$node"; fi
done &
watcher=$!
sleep 0.5
scontrol update partitionname=main nodes='g[1-4]'
scontrol update nodename=g4 state=power_down
is_asleep() { [ "$(sinfo -h -N -n g4 -o %T)" = 'idle~' ]; }
wait_for 60 'g4 sleeps' is_asleep
start_daemon
rm -f "$dir"/go-*; : > "$dir/starts"; : > "$dir/ends"
for node in g1 g2; do submit -A root --gres=gpu:4 -w $node -t 60 "$dir/until.sh" 7 > /dev/null; done
submit -A root --gres=gpu:8 -w g3 -t 60 "$dir/until.sh" 7 > /dev/null
wait_for 30 'all others are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
is_asleep || fail "g4 is $(sinfo -h -N -n g4 -o %T)"
from=$(date +%s.%N)
sleeper=$(by $free --gres=gpu:8 --mem=100 -t 1 "$dir/job.sh" 0.2)
wait_for 90 'a job on the node that slept' has_run "$sleeper"
woken_s=$(seconds "$from" "$(date +%s.%N)")
[ "$(ran_on "$sleeper")" = g4 ] && grep -q 'resume g4' "$power/asked" || fail "it ran on $(ran_on "$sleeper")"
! grep -q "job $sleeper was let go" "$dir/daemon.log" || fail "it was taken back: $(grep "job $sleeper" "$dir/daemon.log")"
go 7
wait_for 60 'nobody is left' queue_is_empty
echo "hold_slurm: on $(scontrol --version) with slurmdbd, within $((SECONDS - began)) s: the free account ended after $free_s s with $left of 40 \
limited jobs left; $num_all unheld jobs were held after $held_s s (oldest heartbeat $oldest_s s; $num_rounds rounds; last: $times); $((num_single + 1)) \
jobs and two arrays were given back in $back_s s; a sleeping node ran a job $woken_s s after it came"
