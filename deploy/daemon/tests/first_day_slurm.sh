#!/usr/bin/env bash
# An operator's first day on a real Slurm on loopback, printed command by command: a shadow, what it would do, live, what it did, back.
#   deploy/daemon/tests/first_day_slurm.sh PLEACH_SCHEDULER
# Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=first_day_slurm program=$(realpath "$1") tree=$here/compare/tree.json
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_NODES=g1:a100:8 PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16937}
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
start_slurm

says() { # WHO COMMAND...
  printf '%s$ %s\n' "$1" "${*:2}"
  case $2 in
    pleach-scheduler) scheduler "${@:3}" ;;
    *) "${@:2}" ;;
  esac 2>&1 | grep -v '^ *$' | tee "$dir/said"
}
start() { # --shadow | --live
  printf 'operator$ pleach-scheduler run --policy sjf %s &\n' "$1"
  "${as_daemon[@]}" "$program" --config "$dir/pleach.toml" run --policy sjf "$1" >> "$dir/daemon.log" 2>&1 &
  daemon=$!
}
has_seen() { scheduler status 2> /dev/null | grep -q "$1"; } # WORDS
queue() { says operator squeue -t PD -S -p,i -o '%i %l %Q %r'; }
is_first() { [ "$(squeue -h -t PD -S -p,i -o %i | head -n 1)" = "$1" ]; } # JOB

running=$(submit --gres=gpu:8 -t 9 "$dir/until.sh" 1)
wait_for 30 'the node is full' grep -q "^$running " "$dir/starts"
long=$(submit --gres=gpu:8 -t 120 "$dir/job.sh" 0.2)
short=$(submit --gres=gpu:8 -t 10 "$dir/job.sh" 0.2)
start --shadow
wait_for 30 'the shadow sees both' has_seen '2 waiting'
queue
is_first "$long" || fail 'without an order the first that came is first'
says operator pleach-scheduler status
says operator pleach-scheduler why-not --policy sjf "$long"
kill_daemon
start --live
wait_for 30 'the short job is first in the queue' is_first "$short"
queue
go 1
wait_for 60 'both' queue_is_empty
order=$(awk '{ print $1 }' "$dir/starts" | tr '\n' ' ')
[ "$order" = "$running $short $long " ] || fail "started in the order $order"
wait_for 30 'the daemon sees that none waits' has_seen '0 waiting'
says operator pleach-scheduler explain "$short"
kill_daemon
says operator pleach-scheduler hand-back
