#!/usr/bin/env bash
# Runs the job array that `pleach sweep emit slurm` writes on a real Slurm on loopback: one task requeued by hand, one killed, one
# that asks for another try twice; all are gathered, with the same bytes as a run on this machine. Then one that never ends well
# is given up, and one that is cancelled does not come back. Then a training by evolution whose units are tasks of an array.
#   cli/tests/sweep_slurm.sh PLEACH
# PLEACH is the built program. Needs root. About a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
real=$(realpath "$1")
export PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-17017} PLEACH_SLURM_NODES='g1:a100:4 g2:a100:4'
# shellcheck source=deploy/daemon/tests/slurm_cluster.sh
. "$here/../../deploy/daemon/tests/slurm_cluster.sh"

dir=$(mktemp -d /tmp/pleach-array.XXXXXX)
fail() {
  printf 'sweep_slurm: %s\n' "$*" >&2
  squeue -a >&2 || true
  tail -n 20 "$dir/a 'sweep' of \"ours\"/logs 100%"/* >&2 2>/dev/null || true
  exit 1
}
cleanup() {
  scancel -u "$(id -un)" 2>/dev/null || true
  for _ in $(seq 50); do [ -n "$(squeue -h -a 2>/dev/null)" ] || break; sleep 0.2; done
  slurm_stop "$dir"
  [ "${PLEACH_KEEP:-0}" = 1 ] || rm -rf "$dir"
}
trap cleanup EXIT
wait_for() { # SECONDS WORDS COMMAND...
  local end=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do [ $SECONDS -lt $end ] || fail "not within time: $what"; sleep 0.2; done
}
queue_is_empty() { [ -z "$(squeue -h -a)" ]; }

# The program, with units that misbehave: those named in $dir/trouble, as `INDEX WHAT UP_TO_WHICH_TRY`.
mkdir "$dir/my tools"
program="$dir/my tools/it's pleach"
cat > "$program" <<PROGRAM
#!/bin/bash
real=$real dir=$dir
PROGRAM
cat >> "$program" <<'PROGRAM'
if [ "$2" = unit ]; then
  index=${*: -1}
  tries=$(cat "$dir/tries.$index" 2>/dev/null || echo 0); echo $((tries + 1)) > "$dir/tries.$index"
  read -r _ what last < <(grep "^$index " "$dir/trouble")
  if [ -n "$what" ] && [ "$tries" -lt "$last" ]; then
    echo "$index: $what"
    [ "$what" != again ] || exit 75
    [ "$what" != broken ] || exit 2
    echo $$ > "$dir/pid.$index"
    exec sleep 100
  fi
fi
exec "$real" "$@"
PROGRAM
chmod +x "$program"
tries() { cat "$dir/tries.$1"; }

slurm_start "$dir"
cd "$dir"
sweep="a 'sweep' of \"ours\""
mkdir "$sweep"
cat > grid.toml <<'GRID'
name = "array"
seeds = 2
[base]
num_jobs = 40
[grid]
policy = ["fifo", "sjf"]
load = [0.6, 0.9, 1.2]
GRID
"$real" sweep plan --config grid.toml --out "$sweep/sweep.json" --quiet
"$real" sweep plan --config grid.toml --out local/sweep.json --quiet
"$real" sweep run --manifest local/sweep.json --quiet
"$real" sweep gather --manifest local/sweep.json --quiet

echo '1. Twelve units: one is there already, one requeued, one killed, one that asks for another try twice'
printf '%s\n' '2 hang 1' '5 hang 1' '7 again 2' > trouble
"$real" sweep unit --manifest "$sweep/sweep.json" --index 3 > /dev/null
emit() { "$real" sweep emit slurm --manifest "$sweep/sweep.json" --program "$program" --logs "$sweep/logs 100%" --quiet "$@"; }
emit --parallel 6 --option=--mem-per-cpu=100
grep -q '^#SBATCH --array=0-2,4-11%6$' "$sweep/sweep.sbatch" || fail 'the array does not list what is missing'
began=$SECONDS
bash "$sweep/sweep.sbatch" | tee submitted.txt
array=$(sed -n 's/^array \([0-9]*\):.*/\1/p' submitted.txt)
wait_for 30 'two units hang' test -s pid.2 -a -s pid.5
scontrol requeue "${array}_2"
kill -9 "$(cat pid.5)"
wait_for 120 'the array and its gather job' queue_is_empty
took=$((SECONDS - began))
"$real" sweep gather --manifest "$sweep/sweep.json" --status | grep -q '^12 of 12 units done' || fail 'units are missing'
for file in results.csv results.json results.html; do
  cmp "$sweep/$file" "local/$file" || fail "$file is not that of the run on this machine"
done
[ "$(tries 2) $(tries 5) $(tries 7) $(tries 0)" = '2 2 3 1' ] || fail "tries: $(tries 2) $(tries 5) $(tries 7) $(tries 0)"
[ ! -e tries.3 ] || fail 'a unit that was done was run again'
grep -q 'exit code 137: requeued, time 1 of 3' "$sweep/logs 100%/${array}_5.log" || fail 'the log of the killed unit'
[ "$(grep -c 'exit code 75: requeued' "$sweep/logs 100%/${array}_7.log")" = 2 ] || fail 'the log of the unit that asked twice'

echo '2. Given up after the last requeue, never tried again, and cancelled'
rm -r "$sweep/units" tries.*
printf '%s\n' '0 again 9' '1 broken 9' '2 hang 9' > trouble
rm -f pid.2
emit --force --retries 1
# Only three of the twelve, as a person would.
array=$(sbatch --parsable --array=0-2 "$sweep/sweep.sbatch")
wait_for 30 'the third unit hangs' test -s pid.2
scancel "${array}_2"
wait_for 60 'three units' queue_is_empty
[ "$(tries 0) $(tries 1) $(tries 2)" = '2 1 1' ] || fail "tries: $(tries 0) $(tries 1) $(tries 2)"
grep -q 'given up after 1 requeues' "$sweep/logs 100%/${array}_0.log" || fail 'the log of the unit that was given up'
# A list whose every unit has a result is refused, with what to do.
emitted=0; "$real" sweep emit slurm --manifest local/sweep.json > /dev/null 2> refused.txt || emitted=$?
[ "$emitted" = 2 ] && grep -q gather refused.txt || fail 'a sweep without missing units was emitted'

echo '3. A training whose generations are played by the tasks of an array too: one is requeued, one is killed'
training=(train --learner evolution --num-jobs 60 --set num_validation=8 --set train.num_updates=40 --quiet)
"$real" "${training[@]}" --out alone
array=$(sbatch --parsable --array=1-2 --requeue --output "unit-%a.log" --open-mode=append \
  --wrap "exec '$real' train --out '$dir/shared' --unit \$SLURM_ARRAY_TASK_ID")
"$real" "${training[@]}" --out shared --units 3 &
leader=$!
wait_for 60 'both units play' test -s shared/units/part-1.json -a -s shared/units/part-2.json
scontrol requeue "${array}_1"
pkill -9 -f "^$real train --out $dir/shared --unit 2"
wait "$leader" || fail 'the training failed'
wait_for 60 'the units end with their training' queue_is_empty
same() { (cd "$1" && find . -type f ! -path '*tensorboard*' ! -name timing.jsonl -exec sha256sum {} + | sort -k 2); }
[ "$(same alone)" = "$(same shared)" ] || fail 'the training is not that of one process'

echo "sweep_slurm: 12 of 12 units on $(scontrol --version) in $took s, one requeued, one killed, one tried three times; all as expected; a training with two units, one requeued and one killed, has the bytes of one process"
