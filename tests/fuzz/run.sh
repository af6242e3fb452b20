#!/usr/bin/env bash
# Tries every reader of tests/tests/hostile on inputs that nothing meant: tests/fuzz/run.sh [SECONDS [READER ...]]
#
# SECONDS of processor time for each reader and ending of its seeds (default 60). With a C++ compiler libFuzzer does it, which goes where
# new code is reached: the compiler of this project does the counting, no nightly and no cargo-fuzz is needed. Without one the mutations of
# the tests do it. What breaks a reader is kept in target/fuzz/found; put it into tests/hostile/READER as found-WHAT and mend the reader.
# PLEACH_FUZZ_GROW=1 also keeps inputs that reach new code, in target/fuzz/corpus, for the next run.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
target=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
found=$target/found
mkdir -p "$found"

if ! command -v c++ >/dev/null; then
  echo 'no C++ compiler is here for libFuzzer: the mutations of the tests instead, without counting what code they reach'
  end=$((SECONDS + seconds)) round=1
  while [ "$SECONDS" -lt "$end" ]; do
    PLEACH_HOSTILE_SEED=$round cargo test --workspace --test tests --locked -- hostile read_or_refused
    round=$((round + 1))
  done
  exit
fi

# Versions are those of the workspace; what libFuzzer adds is found once.
cp Cargo.lock tests/fuzz/Cargo.lock
host=$(rustc -vV | sed -n 's/^host: //p')
counting='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters'
counting+=' -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing'
RUSTFLAGS="$counting" CARGO_TARGET_DIR="$target" cargo build --release --manifest-path tests/fuzz/Cargo.toml --target "$host"
program=$target/$host/release/pleach-fuzz

scratch=$(mktemp -d "${XDG_RUNTIME_DIR:-/dev/shm}/pleach-fuzz.XXXXXX" 2>/dev/null || mktemp -d)
trap 'rm -rf "$scratch"' EXIT
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=($(ls tests/hostile | grep -vx beside))
broken=0
printf '%-34s %10s %8s %8s\n' reader.ending inputs reached found
for reader in "${readers[@]}"; do
  for ending in $(find "tests/hostile/$reader" -type f -printf '%f\n' | sed 's/^[^.]*//' | sort -u); do
    name=$reader$ending seeds=$scratch/seeds
    rm -rf "$seeds" "$scratch/new" && mkdir -p "$seeds" "$scratch/new" "$target/corpus/$name"
    find "tests/hostile/$reader" -type f | while read -r seed; do
      [ "$(basename "$seed" | sed 's/^[^.]*//')" != "$ending" ] || cp "$seed" "$seeds/"
    done
    into=$scratch/new
    [ "${PLEACH_FUZZ_GROW:-0}" != 1 ] || into=$target/corpus/$name
    TMPDIR=$scratch PLEACH_FUZZ=$name "$program" "$into" "$target/corpus/$name" "$seeds" -max_total_time="$seconds" -timeout=10 \
      -malloc_limit_mb=400 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 -verbosity=1 -artifact_prefix="$found/$name-" \
      >"$scratch/log" 2>&1 && is_found= || { is_found=found broken=1; cp "$scratch/log" "$found/$name.log"; }
    inputs=$(sed -n 's/^stat::number_of_executed_units: //p' "$scratch/log")
    reached=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$scratch/log" | tail -n 1)
    printf '%-34s %10s %8s %8s\n' "$name" "${inputs:-0}" "${reached:-0}" "${is_found:-none}"
    rm -rf "$scratch"/.tmp*
  done
done
exit "$broken"
