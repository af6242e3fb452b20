#!/usr/bin/env bash
# A working day of a site in minutes: 1,000 jobs of all kinds by four users on a real Slurm with slurmdbd, a limit of an account,
# jobs without GPUs, features, licences, exclusive ones, arrays, a reservation, a node that sleeps, with and without faults of 20
# kinds. Counts who is lost, doubled, starved, and puts mean JCTs of the same submissions side by side.
#   deploy/daemon/tests/field_slurm.sh PLEACH_SCHEDULER OUT ARM...
# ARM: multifactor (Slurm's multifactor priority with backfill, no daemon), a policy of pleach-scheduler, or
# faults:POLICY, the same with faults. All arms at once, each in a copy of the root of slurm_roots.sh. Needs root and that root.
# PLEACH_FIELD_JOBS, PLEACH_FIELD_FAULTS, PLEACH_FIELD_SEED, PLEACH_FIELD_RELEASE: 1000, 200, 1, 22.05.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
jobs=${PLEACH_FIELD_JOBS:-1000} faults=${PLEACH_FIELD_FAULTS:-200} seed=${PLEACH_FIELD_SEED:-1} release=${PLEACH_FIELD_RELEASE:-22.05}

outside() {
  local program out number=0 arm folder policy runs=() bad=0
  program=$(realpath "$1"); out=$(realpath -m "$2"); shift 2
  "$here/slurm_roots.sh" where "$release" > /dev/null || { echo 'field_slurm: skipped'; exit 0; }
  for arm in "$@"; do
    folder=$out/$((number += 1)) policy=${arm#faults:}
    rm -rf "$folder"; mkdir -p "$folder"
    cp "$program" "$folder/pleach-scheduler"
    [ ! -e "$policy" ] || { cp "$policy" "$folder/tree.json"; policy=/out/tree.json; }
    [ "$policy" != multifactor ] || policy=none
    PLEACH_ROOT_OUT=$folder timeout 1800 "$here/slurm_roots.sh" run "$release" bash /repo/deploy/daemon/tests/field_slurm.sh inside "$policy" \
      "$jobs" "$([[ "$arm" == faults:* ]] && echo "$faults" || echo 0)" "$seed" > "$folder/log" 2>&1 &
    runs+=("$!")
  done
  number=0
  echo list,arm,job,slurm_job,num_gpus,run_time_s,estimate_s,submit_s,start_s,end_s,nodes > "$out/rows.csv"
  for arm in "$@"; do
    wait "${runs[$number]}" || bad=1
    folder=$out/$((number += 1))
    printf '\n%s\n' "$arm"; tail -n 45 "$folder/log"
    [[ "$arm" == faults:* ]] || python3 "$here/field_slurm.py" rows "$folder" "$arm" >> "$out/rows.csv"
  done
  [ "$bad" = 0 ] || exit 1
  [[ " $* " != *" multifactor "* ]] || python3 "$here/compare_slurm.py" table "$out/rows.csv" multifactor
}

inside() {
  local policy=$1 jobs=$2 faults=$3 seed=$4 node
  name=field_slurm program=/out/pleach-scheduler tree=/out/pleach-scheduler
  export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_ACCOUNTING=1
  export PLEACH_SLURM_NODES='g1:a100:4:nvme g2:a100:4:nvme g3:a100:8 g4:a100:8'
  # Over the whole queue, with room for all limits.
  export PLEACH_SLURM_SCHEDULER=backfill,default_queue_depth=1000,bf_window=20160,bf_max_job_test=1000,bf_continue
  export PLEACH_SLURM_MORE="PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=1000
PriorityMaxAge=1-0
Licenses=matlab:2
SuspendProgram=/tmp/power/suspend
ResumeProgram=/tmp/power/resume
SuspendTime=10
SuspendTimeout=3
ResumeTimeout=60
SuspendExcNodes=g[1-3]"
  # shellcheck source=deploy/daemon/tests/slurm_accounting.sh
  . "$here/slurm_accounting.sh"
  # shellcheck source=deploy/daemon/tests/slurm_daemon.sh
  . "$here/slurm_daemon.sh"
  # A node sleeps and wakes: the programs run as slurm, and write down what root then does to the node's daemon.
  mkdir -p /tmp/power; chmod 777 /tmp/power
  for word in suspend resume; do printf '#!/bin/bash\necho %s "$1" >> /tmp/power/asked\n' $word > /tmp/power/$word; chmod 755 /tmp/power/$word; done
  : > /tmp/power/asked; chmod 666 /tmp/power/asked
  start_slurm
  tail -n 0 -f /tmp/power/asked | while read -r word node; do
    if [ "$word" = suspend ]; then pkill -F "$dir/run/slurmd.$node.pid" || true; else slurmd -b -N "$node"; fi
  done &
  sacctmgr -i add account few,many,daemon > /dev/null
  sacctmgr -i modify account few set GrpTRES=gres/gpu=8 > /dev/null
  sacctmgr -i add user games account=few > /dev/null
  sacctmgr -i add user irc,news,uucp,root account=many > /dev/null
  sacctmgr -i add user name=daemon account=daemon adminlevel=operator > /dev/null
  for _ in $(seq 100); do setpriv --reuid=games --regid=games --clear-groups sbatch -D / -o /dev/null -t 1 --wrap true > /dev/null 2>&1 && break; sleep 0.2; done
  wait_for 60 'a first job' queue_is_empty
  scontrol create reservation starttime=now+90 duration=1 nodes=g2 users=root > /dev/null

  # The log is a small disk of its own, and Slurm's commands are in front of the real ones: a file named after the fault.
  mount -t tmpfs -o size=8m tmpfs "$dir/pleach"; chown daemon: "$dir/pleach"
  mkdir -p "$dir/bin"
  for word in squeue sinfo scontrol sprio; do
    cat > "$dir/bin/$word" <<WRAP
#!/bin/bash
[ ! -e "$dir/hang" ] || sleep 30
if [ -e "$dir/garbage" ]; then echo 'slurm_load_jobs: Zero Bytes were transmitted'; exit 0; fi
if [ -e "$dir/lost" ]; then $(command -v $word) "\$@" > /dev/null 2>&1; exit 1; fi
exec $(command -v $word) "\$@"
WRAP
    chmod 755 "$dir/bin/$word"
  done
  # A step that other factors do not turn round; round by round as fast as jobs are short.
  cat > "$dir/pleach.toml" <<CONF
partition = "main"
state_dir = "$dir/pleach"
slurm_bin = "$dir/bin"
tick_s = 0.25
order_step = 20000
command_limit_s = $([ "$faults" = 0 ] && echo 5.0 || echo 2.0)
log_bytes_max = 1000000
CONF
  cat > "$dir/job.sh" <<JOB
#!/bin/bash
key=\$SLURM_JOB_NAME\${SLURM_ARRAY_TASK_ID:+_\$SLURM_ARRAY_TASK_ID}
echo "\$key \${SLURM_RESTART_COUNT:-0} \$EPOCHREALTIME \$SLURM_JOB_NODELIST" >> $dir/starts
sleep "\$1" || exit 1
echo "\$key \${SLURM_RESTART_COUNT:-0} \$EPOCHREALTIME" >> $dir/ends
JOB
  echo "$policy with $faults faults on $(scontrol --version), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
  local rc=0
  python3 "$here/field_slurm.py" play "$seed" "$jobs" "$faults" "$dir" "$policy" daemon "$program" || rc=$?
  cp "$dir"/{starts,ends,submitted,daemon.log} "$dir/log/slurmctld.log" /tmp/power/asked /out/
  echo "the node that sleeps was woken $(grep -c resume /tmp/power/asked) times; a full disk was told $(grep -c 'No space left' "$dir/daemon.log") times"
  umount -l "$dir/pleach"
  [ "$rc" = 0 ] || { tail -30 "$dir/daemon.log"; squeue -a; sinfo -N; exit 1; }
}

if [ "${1:-}" = inside ]; then shift; inside "$@"; else outside "$@"; fi
