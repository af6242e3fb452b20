"""Judges a program that schedules: what OpenEvolve, ShinkaEvolve and their like call for each candidate (`evaluate`).

    python evolve_program.py mine.py             # JSON on the last line: combined_score, more is better, and what it is made of
    python evolve_program.py mine.py --judge     # the same on lists that no search has seen

`mine.json` in its place is a formula (docs/formulas.md). `mine.py` has one function, `score(jobs, cluster)`: a number for each candidate, the largest starts; -inf: never. Both are mappings
from columns (`pleach policies --features`) to arrays, scaled, of many decisions at once. It runs in a process of its own under a
limit of processor time and memory, which is no sandbox: run programs of strangers in a container.
"""

import argparse
import json
import math
import resource
import runpy
import subprocess
import sys

TASKS, RIVAL = ("Pleach/GavelMulti-v1", "Pleach/PhillyGang-v1"), "shortest-hold"
# Lists to search on and to judge by have nothing in common.
SEEDS = {"search": 1, "judge": 31337}
MEMORY_BYTES = 8 << 30


def evaluate(path, stream="search", lists=12, budget_s=60):
    """`combined_score` is the rival's average JCT over the program's, 0 where that fails: `error` says why."""
    words = [sys.executable, __file__, path, "--inside", stream, "--lists", str(lists), "--budget", str(budget_s)]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=10 * budget_s)
    except subprocess.TimeoutExpired:
        return {"combined_score": 0.0, "error": f"not ready after {10 * budget_s} s"}
    if ran.returncode == 0:
        return json.loads(ran.stdout.splitlines()[-1])
    lines = ran.stderr.strip().splitlines() if ran.returncode > 0 else []
    return {"combined_score": 0.0, "error": lines[-1][:400] if lines else f"more than {budget_s} s of processor time, or killed"}


def inside(path, stream, lists, budget_s):
    """The same in this process."""
    import numpy as np

    import pleach

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (budget_s, budget_s))
    is_formula = path.endswith(".json")
    score = None if is_formula else runpy.run_path(path)["score"]

    @pleach.batched
    @pleach.by_name
    def program(seen):
        return np.where(seen.candidates["is_start"] == 1, score(seen.candidates, seen.cluster), -np.inf)

    found = {}
    for task in TASKS:
        table = pleach.evaluate({RIVAL: RIVAL, "program": path if is_formula else program}, task, seeds=lists, seed=SEEDS[stream], num_threads=1).table
        found[task] = {key: table[key][1] for key in ("ratio", "ratio_low", "ratio_high", "p99_jct_s", "avg_slowdown")}
    mean = math.exp(sum(math.log(one["ratio"]) for one in found.values()) / len(found))
    return {"combined_score": 1 / mean, "lists": stream, "tasks": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--judge", action="store_true", help="lists that no search has seen")
    parser.add_argument("--lists", type=int, default=12, help="of each task")
    parser.add_argument("--budget", type=int, default=60, help="s of processor time")
    parser.add_argument("--inside", choices=SEEDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        print(json.dumps(inside(args.path, args.inside, args.lists, args.budget)))
    else:
        print(json.dumps(evaluate(args.path, "judge" if args.judge else "search", args.lists, args.budget)))
