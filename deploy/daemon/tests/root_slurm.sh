#!/usr/bin/env bash
# The shortest way through on a real Slurm whose controller is root's, and so is the daemon: held at submission by a script that a
# site's own one calls, let go to a node, handed back; a user's account is a text that looks like another job, his nice lifts no hold,
# and he changes nothing between decision and start. The whole is `real_slurm.sh`, as the account of the unit.
#   deploy/daemon/tests/root_slurm.sh PLEACH_SCHEDULER TREE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=root_slurm program=$1 tree=$(realpath "$2")
export PLEACH_SLURM_USER=root
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm
# As docs/deploy-slurm.md has it for a site with a script of its own.
mv "$dir/etc/job_submit.lua" "$dir/etc/pleach.lua"
cat > "$dir/etc/job_submit.lua" <<LUA
dofile("$dir/etc/pleach.lua")
local hold, guard = slurm_job_submit, slurm_job_modify
function slurm_job_submit(job_desc, part_list, submit_uid)
   if job_desc.name == "forbidden" then return slurm.ERROR end
   return hold(job_desc, part_list, submit_uid)
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return guard(job_desc, job_rec, part_list, modify_uid)
end
return slurm.SUCCESS
LUA
sleep 1.5
start_daemon
wait_for 20 'a heartbeat' test -s "$dir/pleach/heartbeat"
submit -J forbidden -t 1 "$dir/job.sh" 0 && fail 'the own rules of the site are not asked'
filler=$(submit -A $'x|\n7|PENDING|0|gres:gpu:1|' --gres=gpu:v100:8 -t 1 "$dir/job.sh" 5)
wait_for 30 'a job is let go' grep -q "^$filler .* g3 " "$dir/starts"
left=$("${as_user[@]}" sbatch --parsable -D / -o /dev/null -e /dev/null --gres=gpu:v100:8 -t 2 "$dir/job.sh" 0)
is_held() { squeue -h -j "$left" -O PriorityLong:\| | grep -qx '0|'; }
wait_for 20 'a job is held' is_held
# Under `priority/basic` it would.
"${as_user[@]}" scontrol update "jobid=$left" nice=1 2> /dev/null || true
is_held || fail 'a nice lifted the hold'
scheduler status | grep -q ' rounds, 0 failed' || fail "rounds failed: $(scheduler status)"
kill_daemon
# As between decision and start, while the script holds jobs still.
scontrol update "jobid=$left" "admincomment=pleach:decided;at=$(date +%s);tries=0" priority=0
for change in timelimit=100 partition=main features=nvme; do
  told=$("${as_user[@]}" scontrol update "jobid=$left" "$change" 2>&1) && fail "a user changed $change between decision and start"
  grep -q 'Access/permission denied' <<< "$told" || fail "$change: the user was told: $told"
done
scheduler hand-back | grep -q '1 jobs were given back'
wait_for 60 'both jobs without a daemon' queue_is_empty
grep -qx "$left" "$dir/ends" || fail 'the job that was handed back was lost'
echo "root_slurm: two jobs on $(scontrol --version): all as expected as root"
