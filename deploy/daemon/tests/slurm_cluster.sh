# A Slurm of virtual nodes with fake GPUs on loopback, in one folder. Sourced; needs root.
#   slurm_start DIR         starts it; sets SLURM_CONF
#   slurm_stop DIR          ends the daemons that it started, by their process ids
#   "${as_slurm[@]}" ...    runs a command as the account of the controller
# Settings, from the environment:
#   PLEACH_SLURM_USER       the account of the controller, SlurmUser; slurm, as distributions set it up, or root
#   PLEACH_SLURM_PORT       the controller's port; the nodes' are the next ones
#   PLEACH_SLURM_NODES      NAME:GPU_TYPE:NUM_GPUS[:FEATURE] of each node
#   PLEACH_SLURM_PRIORITY   how Slurm orders jobs, basic or multifactor
#   PLEACH_SLURM_ACCOUNTING 1: with slurmdbd (slurm_accounting.sh), GPUs counted, and the limits of accounts enforced
#   PLEACH_SLURM_MORE       more lines of slurm.conf, behind all others
#   PLEACH_SLURM_SCHEDULER  Slurm's own scheduler, with more words for SchedulerParameters behind a comma; of a word that stands
#                           there twice Slurm takes the first, so those below cannot be changed so

slurm_user=${PLEACH_SLURM_USER:-slurm}
as_slurm=()
[ "$slurm_user" = root ] || as_slurm=(setpriv "--reuid=$slurm_user" "--regid=$slurm_user" --clear-groups)

# Whether the release is that one or a later one.
slurm_is_after() { [ "$(printf '%s\n' "$1" "$(slurmctld -V | awk '{ print $NF }')" | sort -V | head -n 1)" = "$1" ]; } # YY.MM

slurm_start() {
  local dir=$1 host port=${PLEACH_SLURM_PORT:-16817}
  local nodes=${PLEACH_SLURM_NODES:-g1:a100:4 g2:a100:4 g3:v100:8} scheduler=${PLEACH_SLURM_SCHEDULER:-backfill}
  local node name kind num feature names=()
  local accounting=AccountingStorageType=accounting_storage/none
  if [ "${PLEACH_SLURM_ACCOUNTING:-0}" = 1 ]; then
    accounting=$(printf 'AccountingStorage%s\n' Type=accounting_storage/slurmdbd Host=127.0.0.1 "Port=$((port + 10))" \
      "Pass=$dir/run/munge.socket" TRES=gres/gpu Enforce=associations,limits)
  fi
  host=$(hostname)
  # What newer releases call defunct, and what they cannot do without where control groups are not theirs.
  local cache=NoAddrCache,
  slurm_is_after 23.02 && { cache=; mkdir -p "$dir/etc"; echo CgroupPlugin=disabled > "$dir/etc/cgroup.conf"; }
  mkdir -p "$dir"/{run,log,state,etc,dev,munge}
  chmod 755 "$dir" "$dir"/run "$dir"/log
  chown "$slurm_user" "$dir"/{run,log,state}
  for i in 0 1 2 3 4 5 6 7; do [ -e "$dir/dev/nvidia$i" ] || mknod "$dir/dev/nvidia$i" c 1 3; done
  [ -e "$dir/munge/key" ] || dd if=/dev/urandom of="$dir/munge/key" bs=1 count=1024 status=none
  chown -R munge: "$dir/munge" && chmod 400 "$dir/munge/key"
  cat > "$dir/etc/slurm.conf" <<CONF
ClusterName=pleach
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$slurm_user
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/run/munge.socket,cred_expire=5
CommunicationParameters=${cache}NoCtldInAddrAny,NoInAddrAny
SlurmctldPort=$port
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdSpoolDir=$dir/spool/%n
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmdLogFile=$dir/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
$accounting
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
PriorityType=priority/${PLEACH_SLURM_PRIORITY:-basic}
SchedulerType=sched/${scheduler%%,*}
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=2,bf_resolution=1${scheduler#"${scheduler%%,*}"}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,shard
DefMemPerCPU=1000
PreemptType=preempt/none
KillWait=5
SlurmdTimeout=20
NodeName=DEFAULT CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=64000 State=UNKNOWN
CONF
  echo 'AutoDetect=off' > "$dir/etc/gres.conf"
  for node in $nodes; do
    IFS=: read -r name kind num feature <<< "$node"
    names+=("$name"); mkdir -p "$dir/spool/$name"
    echo "NodeName=$name NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + ${#names[@]}))" \
      "Gres=gpu:$kind:$num,shard:$((4 * num))${feature:+ Feature=$feature}" >> "$dir/etc/slurm.conf"
    printf 'NodeName=%s Name=%s\n' "$name" "gpu Type=$kind File=$dir/dev/nvidia[0-$((num - 1))]" \
      "$name" "shard Count=$((4 * num))" >> "$dir/etc/gres.conf"
  done
  echo "PartitionName=main Nodes=$(IFS=,; echo "${names[*]}") Default=YES MaxTime=UNLIMITED DefaultTime=00:10:00 State=UP" \
    >> "$dir/etc/slurm.conf"
  [ -z "${PLEACH_SLURM_MORE:-}" ] || printf '%s\n' "$PLEACH_SLURM_MORE" >> "$dir/etc/slurm.conf"
  munged --force --key-file="$dir/munge/key" --socket="$dir/run/munge.socket" --pid-file="$dir/run/munged.pid" \
    --log-file="$dir/etc/munged.log" --seed-file="$dir/run/munged.seed"
  export SLURM_CONF=$dir/etc/slurm.conf
  [ "${PLEACH_SLURM_ACCOUNTING:-0}" != 1 ] || accounting_start "$dir"
  slurmctld -i
  for node in "${names[@]}"; do slurmd -N "$node"; done
  for _ in $(seq 200); do
    [ "$(sinfo -h -N -o %T 2>/dev/null | sort -u)" = idle ] && return 0
    sleep 0.1
  done
  echo "the nodes are not idle after 20 s: $(sinfo -h -N -o '%N %T' 2>&1)" >&2
  return 1
}

slurm_stop() {
  local dir=$1 file
  for file in "$dir"/run/slurmd.*.pid "$dir"/run/slurmctld.pid "$dir"/run/munged.pid; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  for _ in $(seq 100); do
    pgrep -F "$dir/run/slurmctld.pid" >/dev/null 2>&1 || break
    sleep 0.1
  done
  [ "${PLEACH_SLURM_ACCOUNTING:-0}" != 1 ] || accounting_stop "$dir"
}
