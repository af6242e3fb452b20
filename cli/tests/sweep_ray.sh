#!/usr/bin/env bash
# Runs the driver that `pleach sweep emit ray` writes on a real Ray of this machine: one unit asks for another try, one is killed,
# one takes its worker with it. All are gathered, with the same bytes as a run without Ray.
#   cli/tests/sweep_ray.sh PLEACH PYTHON
# PLEACH is the built program, PYTHON one that can `import ray`. About a minute.
set -euo pipefail
real=$(realpath "$1") python=$(realpath -s "$2")
dir=$(mktemp -d /tmp/pleach-ray.XXXXXX)
trap 'rm -rf "$dir"' EXIT
fail() { printf 'sweep_ray: %s\n' "$*" >&2; cat "$dir/said" >&2; exit 1; }
cd "$dir"
: > said
printf '#!/bin/bash\nreal=%q dir=%q\n' "$real" "$dir" > "it's pleach"
cat >> "it's pleach" <<'PROGRAM'
if [ "$2" = unit ]; then
  index=${*: -1}
  tries=$(cat "$dir/tries.$index" 2>/dev/null || echo 0); echo $((tries + 1)) > "$dir/tries.$index"
  case "$index/$tries" in
    4/0) exit 75 ;;
    5/0) kill -9 $$ ;;
    6/0) kill -9 $PPID; exit 75 ;; # the worker of Ray
  esac
fi
exec "$real" "$@"
PROGRAM
chmod +x "it's pleach"
sweep="a 'sweep' of \"ours\""
cat > grid.toml <<'GRID'
name = "ray"
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
"$real" sweep unit --manifest "$sweep/sweep.json" --index 3 > /dev/null
"$real" sweep emit ray --manifest "$sweep/sweep.json" --program "./it's pleach" --parallel 4 --quiet
began=$SECONDS
env -u RAY_ADDRESS "$python" "$sweep/sweep_ray.py" > said 2>&1 || fail "the driver ended with $?"
for file in results.csv results.json results.html; do
  cmp "$sweep/$file" "local/$file" || fail "$file is not that of the run without Ray"
done
[ "$(cat tries.0 tries.4 tries.5 tries.6 | tr '\n' ' ')" = '1 2 2 2 ' ] || fail 'tries'
[ ! -e tries.3 ] || fail 'a unit that was done was run again'
grep -q 'unit 5 ended with 137, try 2' said || fail 'the line of the killed unit'
echo "sweep_ray: 12 of 12 units on $("$python" -c 'import ray; print("Ray", ray.__version__)') in $((SECONDS - began)) s; all as expected"
