#!/usr/bin/env bash
# Forecasts of starts beside a real Slurm on loopback: the daemon drives, `capture --every` writes the list as it stands, `pleach when
# --answers` forecasts from it, the daemon serves that and writes the bucket into the comment of a job that waits.
#   deploy/daemon/tests/when_slurm.sh PLEACH_SCHEDULER TREE PLEACH
# PLEACH_SCHEDULER and PLEACH are the built programs, TREE a policy (example `shortest_first_tree`). Needs root and curl.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=when_slurm program=$1 tree=$(realpath "$2") pleach=$(realpath "$3")
export PLEACH_SLURM_PRIORITY=multifactor PLEACH_SLURM_PORT=${PLEACH_SLURM_PORT:-16857}
metrics=$((PLEACH_SLURM_PORT + 20))
# shellcheck source=deploy/daemon/tests/slurm_daemon.sh
. "$here/slurm_daemon.sh"
others=()
cleanup_all() { [ ${#others[@]} = 0 ] || kill "${others[@]}" 2>/dev/null || true; cleanup; }
trap cleanup_all EXIT
echo "metrics_port = $metrics" >> "$dir/pleach.toml"
cp "$pleach" "$dir/pleach-cli"
start_slurm
served() { curl -sf "http://127.0.0.1:$metrics/v1/when${1:-}"; }
comment_of() { scontrol show job "$1" | sed -n 's/.*AdminComment=//p'; }          # JOB
has_bucket() { comment_of "$1" | grep -q "^pleach:median-wait-$2-at-"; }           # JOB BUCKET
start_forecasts() {
  "${as_daemon[@]}" "$program" --config "$dir/pleach.toml" capture "$dir/pleach" --to "$dir/pleach/queue.csv" --every 1s \
    >> "$dir/capture.log" 2>&1 &
  others+=($!)
  "${as_daemon[@]}" "$dir/pleach-cli" when "$dir/pleach/queue.csv" --policy fifo --answers "$dir/pleach/when.json" --every 1s --quiet \
    >> "$dir/when.log" 2>&1 &
  others+=($!)
}

echo '1. Some jobs of ten seconds end; a job for all GPUs of a kind runs, and another one waits for them'
start_daemon
for _ in 1 2 3; do submit --gres=gpu:v100:8 -t 10 "$dir/job.sh" 1 > /dev/null; done
wait_for 60 'three jobs' queue_is_empty
runs=$(submit --gres=gpu:v100:8 -t 300 "$dir/until.sh" 1)
wait_for 30 'the first runs' grep -q "^$runs " "$dir/starts"
waits=$(submit --gres=gpu:v100:8 -t 120 "$dir/job.sh" 0.2)
is_logged() { scheduler explain "$1" > /dev/null; } # JOB
wait_for 30 'it is in the log' is_logged "$waits"

echo '2. The forecast is served, counted and written into the comment; of no other job'
start_forecasts
is_served() { served "?job=$1" > /dev/null; } # JOB
wait_for 60 'a forecast is served' is_served "$waits"
served "?job=$waits" | tee "$dir/served.json"; echo
served | grep -q '"gpus":8' || fail "no requests: $(served)"
served | grep -q '"jobs":{}' || fail "jobs are listed: $(served)"
served "?job=$runs" && fail 'a job that runs has a forecast'
bucket=$(grep -o '"bucket":"[^"]*"' "$dir/served.json" | cut -d'"' -f4)
wait_for 30 'the comment' has_bucket "$waits" "$bucket"
comment_of "$waits"
[ -z "$(comment_of "$runs")" ] || fail "a job that runs has a comment: $(comment_of "$runs")"
curl -sf "http://127.0.0.1:$metrics/metrics" | grep '^pleach_forecast' | tee "$dir/metrics.txt"
grep -q '^pleach_forecast_jobs 1' "$dir/metrics.txt" || fail 'one job has a forecast'
"$dir/pleach-cli" when "$dir/pleach/queue.csv" --policy fifo --job "$waits"

echo '3. Without a forecaster the age grows, and the comment stays; a file that cannot be understood is no forecast, and rounds go on'
kill "${others[@]}"; wait "${others[@]}" 2>/dev/null || true; others=()
before=$(comment_of "$waits")
sleep 3
[ "$(served "?job=$waits" | grep -o '"age_s":[0-9]*' | cut -d: -f2)" -ge 3 ] || fail "no age: $(served "?job=$waits")"
[ "$(comment_of "$waits")" = "$before" ] || fail 'the comment changed'
printf '{"version":1' > "$dir/pleach/when.json"
wait_for 30 'it is no forecast' sh -c "! curl -sfo /dev/null http://127.0.0.1:$metrics/v1/when"
wait_for 10 'the log says so' grep -q 'when.json' "$dir/daemon.log"
go 1
wait_for 60 'both jobs' queue_is_empty
scheduler status | grep -q ' rounds, 0 failed' || fail "rounds failed: $(scheduler status)"
echo "when_slurm: on $(scontrol --version), as $slurm_user: all as expected"
