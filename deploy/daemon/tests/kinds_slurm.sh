#!/usr/bin/env bash
# Jobs of 27 kinds at once on a real Slurm on loopback, beside short ones that keep coming: each starts and ends as Slurm alone would
# have it, none is held and no round fails.
#   deploy/daemon/tests/kinds_slurm.sh PLEACH_SCHEDULER TREE
# PLEACH_SCHEDULER is the built program, TREE the file of a policy, such as compare/tree.json. Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=kinds_slurm program=$1 tree=$(realpath "$2")
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_MORE='Licenses=matlab:1' PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-17137}
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm
began=$SECONDS
scontrol update nodename=g1 availablefeatures=nvme,fast activefeatures=nvme,fast
scontrol update nodename=g2 availablefeatures=old activefeatures=old
scontrol update nodename=g3 availablefeatures=nvme activefeatures=nvme
declare -A jobs=()
kind() { jobs[$1]=$(submit "${@:2}"); } # NAME ARGS...
full=(); for gpus in a100:4 a100:4 v100:8; do full+=("$(submit --gres=gpu:$gpus -t 9 "$dir/until.sh" 1)"); done
wait_for 30 'all GPUs are taken' sh -c "[ \$(squeue -h -t R | wc -l) = 3 ]"
failing=$(submit --begin=now+1 -t 1 --wrap 'exit 1')
start_daemon
job=("$dir/job.sh" 0.3)
kind plain --gres=gpu:1 -t 30 "${job[@]}"
kind 'CPUs' --gres=gpu:1 -c 8 -t 30 "${job[@]}"
kind 'host memory' --gres=gpu:1 --mem=40000 -t 30 "${job[@]}"
kind 'a node by name' --gres=gpu:1 -w g2 -t 30 "${job[@]}"
kind 'all nodes but one' --gres=gpu:1 -x g1 -t 30 "${job[@]}"
kind 'a feature' --gres=gpu:1 -C nvme -t 30 "${job[@]}"
kind 'two features' --gres=gpu:1 -C 'nvme&fast' -t 30 "${job[@]}"
kind 'a set of features' --gres=gpu:1 -C '[nvme|old]' -t 30 "${job[@]}"
kind 'licences' --gres=gpu:1 -L matlab:1 -t 30 "${job[@]}"
scontrol create reservation reservationname=later starttime=now+600 duration=60 nodes=g3 users=root > /dev/null
kind 'short before a reservation' --gres=gpu:v100:1 -t 5 "${job[@]}"
kind 'long beside a reservation' --gres=gpu:1 -t 300 "${job[@]}"
kind 'an array' --gres=gpu:1 --array=0-5%2 -t 30 "${job[@]}"
kind 'a time to begin' --gres=gpu:1 --begin=now+5 -t 30 "${job[@]}"
kind 'behind another job' --gres=gpu:1 -d afterok:"${jobs[plain]}" -t 30 "${job[@]}"
kind 'behind one that failed' --gres=gpu:1 -d afterok:"$failing" -t 30 "${job[@]}"
jobs['parts']=$(sbatch --parsable -o /dev/null -e /dev/null -t 30 --gres=gpu:1 : -t 30 --gres=gpu:2 "${job[@]}")
kind 'nodes of its own' --gres=gpu:1 --exclusive -t 30 "${job[@]}"
kind 'a gang' -N 2 --gres=gpu:a100:4 -t 30 "${job[@]}"
kind 'GPUs in all' --gpus=10 -N 2 -t 5 "${job[@]}"
kind 'GPUs by task' --gpus-per-task=1 -n 2 -t 30 "${job[@]}"
kind 'shards' --gres=shard:1 -t 30 "${job[@]}"
kind 'memory by GPU' --gpus=1 --mem-per-gpu=2000 -t 30 "${job[@]}"
kind 'CPUs by GPU' --gpus=2 --cpus-per-gpu=2 -t 30 "${job[@]}"
kind 'neighbouring nodes' -N 2 --contiguous --gres=gpu:1 -t 30 "${job[@]}"
kind 'requeued' --gres=gpu:1 -t 30 "$dir/until.sh" 2
kind 'suspended' --gres=gpu:1 -t 30 "$dir/until.sh" 3
kind 'held by its user' -H --gres=gpu:1 -t 30 "${job[@]}"
[ ${#jobs[@]} = 27 ] || fail "${#jobs[@]} kinds"
runs() { grep -q "^$1 " "$dir/starts"; } # JOB
ended() { grep -qx "$1" "$dir/ends"; }   # JOB
go 1
for _ in 1 2 3 4 5 6; do submit --gres=gpu:2 -t 1 "${job[@]}" > /dev/null; sleep 0.3; done
scontrol release "${jobs[held by its user]}"
wait_for 60 'the one to be requeued runs' runs "${jobs[requeued]}"
scontrol requeue "${jobs[requeued]}"
wait_for 60 'the one to be suspended runs' runs "${jobs[suspended]}"
scontrol suspend "${jobs[suspended]}"
sleep 1
scontrol resume "${jobs[suspended]}"
go 2
go 3
began_chain=$SECONDS
for _ in 1 2 3; do submit -d singleton -J chain --gres=gpu:1 -t 1 "$dir/job.sh" 1 > /dev/null; done
chain_ended() { [ -z "$(squeue -h -a -n chain)" ]; }
wait_for 60 'the chain' chain_ended
chain_s=$((SECONDS - began_chain))
never=${jobs[behind one that failed]}
all_others() { [ "$(squeue -h -a -o %i)" = "$never" ]; }
wait_for 120 'all kinds but the one that never may' all_others
! runs "$never" || fail 'a job started whose dependency failed'
scancel "$never"
for kind in "${!jobs[@]}"; do
  [ "$kind" = 'behind one that failed' ] || [ "$kind" = 'an array' ] || ended "${jobs[$kind]}" || fail "$kind did not end"
done
scheduler status | grep -q ' rounds, 0 failed' || fail "rounds failed: $(scheduler status)"
kill_daemon
echo "kinds_slurm: 27 kinds on $(scontrol --version), as $slurm_user, within $((SECONDS - began)) s, a chain of three singletons of 1 s in $chain_s s: all as expected"
