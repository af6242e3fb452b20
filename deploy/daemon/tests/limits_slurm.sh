#!/usr/bin/env bash
# Tells a real Slurm with slurmdbd an order, as a system user that is an operator there and nothing else: jobs of an account at its
# limit are passed over, those of another start, and no limit is broken; a QOS prevails over the order; who is no operator writes
# nothing and says so.
#   deploy/daemon/tests/limits_slurm.sh PLEACH_SCHEDULER TREE
# PLEACH_SCHEDULER is the built program, TREE a policy that takes the shortest job first (example `shortest_first_tree`). Needs root,
# slurmdbd and mariadbd (Debian: slurmdbd, slurm-wlm-mysql-plugin, mariadb-server); without them it says that it is skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=limits_slurm program=$1 tree=$(realpath "$2")
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_ACCOUNTING=1 PLEACH_SLURM_NODES='g1:a100:4 g2:a100:4'
export PLEACH_SLURM_MORE='PriorityWeightQOS=100000000'
export PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16857}
# shellcheck source=deploy/daemon/tests/slurm_accounting.sh
. "$here/slurm_accounting.sh"
accounting_is_here || { echo 'limits_slurm: skipped, slurmdbd and mariadbd are not here'; exit 0; }
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
began=$SECONDS
# Accounts that every Debian has: the daemon's and two users'.
operator=daemon limited=bin free=games
as() { local who=$1; shift; setpriv "--reuid=$who" "--regid=$(id -g "$who")" --clear-groups "$@"; } # USER COMMAND...
as_daemon=(setpriv "--reuid=$operator" "--regid=$(id -g $operator)" --clear-groups)
chown -R $operator "$dir/pleach"
: > "$dir/parts"; chmod 666 "$dir/parts"
cat > "$dir/counted.sh" <<'JOB'
#!/bin/bash
echo "+ $SLURM_JOB_ACCOUNT $SLURM_JOB_ID" >> "$OUT/parts"
sleep "$1" || exit 1
echo "- $SLURM_JOB_ACCOUNT $SLURM_JOB_ID" >> "$OUT/parts"
JOB
factor_of() { sprio -h -o '%i|%S' | awk -F'|' -v job="$1" '$1 == job { print $2 + 0; exit }'; } # JOB
are_ranked() { local job; for job in "$@"; do [ "$(factor_of "$job")" -gt 0 ] 2>/dev/null || return 1; done; }
num_running() { squeue -h -t R | wc -l; }

start_slurm
sacctmgr -i add account a1,a2,none > "$dir/sacctmgr.txt"
sacctmgr -i modify account a1 set GrpTRES=gres/gpu=2 >> "$dir/sacctmgr.txt"
sacctmgr -i add user $limited account=a1 >> "$dir/sacctmgr.txt"
sacctmgr -i add user $free account=a2 >> "$dir/sacctmgr.txt"
sacctmgr -i add user $operator account=none >> "$dir/sacctmgr.txt"
fill() { for _ in 1 2; do as $free sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:4 -t 9 "$dir/until.sh" "$1" counted; done; }

echo '1. Who is no operator writes no factor, and says why'
until as $free sbatch -D / -o /dev/null -e /dev/null -t 1 "$dir/counted.sh" 0 > /dev/null 2> "$dir/err"; do
  [ $((SECONDS - began)) -lt 60 ] || fail "the controller does not know its users: $(cat "$dir/err")"; sleep 0.2
done
fill 1 > /dev/null
wait_for 20 'both nodes are full' sh -c '[ "$(squeue -h -t R | wc -l)" = 2 ]'
job=$(as $free sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:1 -t 2 "$dir/counted.sh" 0)
start_daemon
wait_for 30 'the refusal is told' grep -q 'Invalid user id for job .*operator' "$dir/daemon.log"
[ "$(factor_of "$job")" = 0 ] || fail "an ordinary user wrote a factor: $(factor_of "$job")"
kill_daemon
go 1
wait_for 30 'the first jobs' queue_is_empty

echo '2. An operator: jobs of an account at its limit stand on top, are passed over, and the other account is done first'
sacctmgr -i modify user $operator set adminlevel=operator >> "$dir/sacctmgr.txt"
: > "$dir/parts"
start_daemon
fill 2 > /dev/null
wait_for 20 'both nodes are full' sh -c '[ "$(squeue -h -t R | wc -l)" = 2 ]'
of_limited=() of_free=()
for _ in $(seq 12); do
  of_limited+=("$(as $limited sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:1 -t 1 "$dir/counted.sh" 1.5)")
done
for _ in $(seq 12); do
  of_free+=("$(as $free sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:2 -t 50 "$dir/counted.sh" 0.3)")
done
wait_for 60 'all are ranked' are_ranked "${of_limited[@]}" "${of_free[@]}"
lowest=$(for job in "${of_limited[@]}"; do factor_of "$job"; done | sort -n | head -n 1)
highest=$(for job in "${of_free[@]}"; do factor_of "$job"; done | sort -n | tail -n 1)
[ "$lowest" -gt "$highest" ] || fail "the limited are not on top: $lowest beside $highest"
[ "$(num_running)" = 2 ] || fail 'they were ranked too late for this test'
go 2
wait_for 30 'Slurm says that the limit is met' sh -c 'squeue -h -t PD -o %r | grep -q AssocGrpGRES'
[ "$(squeue -h -t PD -O PriorityLong:\| | grep -cx '0|')" = 0 ] || fail 'somebody is held'
wait_for 120 'all jobs' queue_is_empty
# Of the lines in their order: how many of the limited had begun when the last of the others did, and how many ran at once at most.
read -r num_before most num_free num_ended < <(awk '
  $2 == "a1" && $1 == "+" { begun++; if (++now > most) most = now } $2 == "a1" && $1 == "-" { now--; ended++ }
  $2 == "a2" && $1 == "+" { free++; before = begun } END { print before + 0, most + 0, free + 0, ended + 0 }' "$dir/parts")
[ "$num_free" = 14 ] && [ "$num_ended" = 12 ] || fail "$num_free of 14 free jobs began, $num_ended of 12 limited ones ended"
[ "$most" = 2 ] || fail "$most jobs of an account that may have two GPUs ran at once"
[ "$num_before" -le 8 ] || fail "the last free job began behind $num_before of 12 limited ones"

echo '3. What it wrote it takes back, and it wrote no comment'
fill 3 > /dev/null
wait_for 20 'both nodes are full' sh -c '[ "$(squeue -h -t R | wc -l)" = 2 ]'
job=$(as $free sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:1 -t 2 "$dir/counted.sh" 0)
wait_for 30 'it is ranked' are_ranked "$job"
squeue -h -j "$job" -O admin_comment:\| | grep -q null || fail 'a comment was written'
kill_daemon
scheduler hand-back | grep -q '^1 jobs lost the factors' || fail 'nothing was handed back'
[ "$(factor_of "$job")" = 0 ] || fail "after hand-back its factor is $(factor_of "$job")"
go 3
wait_for 30 'the last' queue_is_empty
echo '4. A QOS that weighs more than the order prevails; within it the order holds'
sacctmgr -i add qos urgent set priority=1000 >> "$dir/sacctmgr.txt"
sacctmgr -i modify user $free set qos+=urgent >> "$dir/sacctmgr.txt"
rm -f "$dir"/go-*; : > "$dir/starts"
start_daemon
whole() { as $free sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:4 "$@"; } # MORE...
whole -t 9 "$dir/until.sh" 4 > /dev/null; whole -t 9 "$dir/until.sh" 5 > /dev/null
wait_for 20 'both nodes are full' sh -c '[ "$(squeue -h -t R | wc -l)" = 2 ]'
short=$(whole -t 1 "$dir/job.sh" 0.3) middle=$(whole -t 5 "$dir/job.sh" 0.3)
last=$(whole -t 50 --qos=urgent "$dir/job.sh" 0.3) first=$(whole -t 40 --qos=urgent "$dir/job.sh" 0.3)
wait_for 60 'all four are ranked' are_ranked "$short" "$middle" "$first" "$last"
is_ordered() { [ "$(factor_of "$short")" -gt "$(factor_of "$middle")" ] && [ "$(factor_of "$middle")" -gt "$(factor_of "$first")" ] \
  && [ "$(factor_of "$first")" -gt "$(factor_of "$last")" ]; }
wait_for 30 'the policy ranks them by their limits' is_ordered
# One node becomes free, and they follow each other there.
go 4
wait_for 60 'all four' sh -c '[ "$(squeue -h | wc -l)" = 1 ]'
go 5
wait_for 60 'the last' queue_is_empty
begun=$(awk '{ print $1 }' "$dir/starts" | tail -n 4 | tr '\n' ' ')
[ "$begun" = "$first $last $short $middle " ] || fail "they began in the order $begun instead of $first $last $short $middle"
kill_daemon
echo "limits_slurm: 36 jobs on $(scontrol --version) with slurmdbd, as $operator, within $((SECONDS - began)) s: $num_before of 12 limited \
jobs had begun when the last free one did, at most $most at once"
