# What the tests of the daemon on a real Slurm share: one cluster, one daemon, jobs that write down when they start and end.
# Sourced with `name`, `program` and `tree` set; ends what it started when the shell ends.
#   start_slurm                  the cluster
#   start_daemon, kill_daemon    the daemon, as the account of the controller, or what as_daemon says
#   scheduler ARGS...            the program beside it
#   submit ARGS...               the number of a new job
#   go NAME                      ends the jobs until.sh NAME
#   wait_for SECONDS WORDS COMMAND...
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
as_daemon=("${as_slurm[@]}")
# An account that is nobody's friend, as users are.
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)

dir=$(mktemp -d /tmp/pleach-slurm.XXXXXX)
daemon=
fail() {
  printf '%s: %s\n' "$name" "$*" >&2
  printf -- '--- daemon\n' >&2; tail -20 "$dir/daemon.log" >&2 || true
  printf -- '--- queue\n' >&2; squeue -a >&2 || true
  exit 1
}
cleanup() {
  [ -z "$daemon" ] || kill_daemon 2>/dev/null || true
  # Jobs end before the daemons that watch them, or their step daemons are left behind.
  scancel -t PD,R,CF 2>/dev/null || true
  for _ in $(seq 50); do [ -n "$(squeue -h -a 2>/dev/null)" ] || break; sleep 0.2; done
  slurm_stop "$dir"
  [ "${PLEACH_KEEP:-0}" = 1 ] || rm -rf "$dir"
}
trap cleanup EXIT

chmod 755 "$dir"
# Where the account of the controller can run it.
cp "$program" "$dir/pleach-scheduler"
program=$dir/pleach-scheduler
cp "$tree" "$dir/tree.json"
tree=$dir/tree.json
chmod 644 "$tree"
mkdir "$dir/pleach"
chown "$slurm_user" "$dir/pleach"
cat > "$dir/pleach.toml" <<CONF
partition = "main"
state_dir = "$dir/pleach"
tick_s = 0.5
CONF
cat > "$dir/job.sh" <<'JOB'
#!/bin/bash
echo "$SLURM_JOB_ID $(date +%s%N) $SLURM_JOB_NODELIST $SLURM_RESTART_COUNT" >> "$OUT/starts"
# Who is killed has not ended: the shell may live a moment longer than its sleep.
sleep "$1" || exit 1
echo "$SLURM_JOB_ID" >> "$OUT/ends"
JOB
# Runs until it is told to end, however slow the machine is: `go NAME` ends the jobs that wait for NAME.
cat > "$dir/until.sh" <<'JOB'
#!/bin/bash
echo "$SLURM_JOB_ID $(date +%s%N) $SLURM_JOB_NODELIST $SLURM_RESTART_COUNT" >> "$OUT/starts"
[ "${2:-}" != counted ] || echo "+ $SLURM_JOB_ACCOUNT $SLURM_JOB_ID" >> "$OUT/parts"
for _ in $(seq 3000); do [ ! -e "$OUT/go-$1" ] || break; sleep 0.1 || exit 1; done
[ "${2:-}" != counted ] || echo "- $SLURM_JOB_ACCOUNT $SLURM_JOB_ID" >> "$OUT/parts"
echo "$SLURM_JOB_ID" >> "$OUT/ends"
JOB
go() { : > "$dir/go-$1"; }
export OUT=$dir
: > "$dir/starts"; : > "$dir/ends"; : > "$dir/daemon.log"
chmod 666 "$dir/starts" "$dir/ends"
scheduler() { "${as_daemon[@]}" "$program" --config "$dir/pleach.toml" "$@"; }
# Without a shell between, which would be killed in the place of the daemon.
start_daemon() {
  "${as_daemon[@]}" "$program" --config "$dir/pleach.toml" run --policy "$tree" --live >> "$dir/daemon.log" 2>&1 &
  daemon=$!
}
kill_daemon() { kill -9 "$daemon"; wait "$daemon" 2>/dev/null || true; daemon=; }
submit() { sbatch --parsable -o /dev/null -e "$dir/err" "$@"; }
wait_for() { # SECONDS WORDS COMMAND...
  local end=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do [ $SECONDS -lt $end ] || fail "not within time: $what"; sleep 0.2; done
}
queue_is_empty() { [ -z "$(squeue -h -a)" ]; }
says_why() { scheduler why-not --policy "$tree" "$1" | grep -q "$2"; } # JOB WORDS
start_slurm() { slurm_start "$dir"; }
