"""Every shipped network and tree on lists that are hard for it, over the best rule of each: what is above 1.01 is named first.

    python3 lab/bench/lists/shipped.py [--lists 12] [--policies GavelMulti-v1-tree.json,...] [--pleach target/release/pleach]

Columns: the policy's own task as long, four times as long, and at load 0.3; wide gangs, one node of four GPUs, one node of 32, and
all jobs at once. The best rule is that heuristic or named rival with the least geometric mean of average JCT on the very lists, so
luck in choosing is on its side. Rules and policies know the same and may do the same: nothing stops a job.

With --rules: all rules on sixteen kinds of lists, eleven of them with guessed run times, over the best of each.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import tempfile

import columns

REFERENCE = pathlib.Path("checkpoints/reference")
# A policy is level up to this.
LEVEL = 1.01
# In `columns.made_lists`: nodes, GPUs of each, gangs. Loads of what is not the policy's own task.
TASKS = ["Pleach/PhillyGangRealistic-v2", "Pleach/HeliosTenantsRealistic-v2", "Pleach/Philly-v0", "Pleach/GavelMultiRealistic-v2"]
GUESSED = ["acme-like", "itp-like", "helios-like", "philly-like"]
HARD = {"wide": 2.0, "tiny": 2.0, "one-node": 2.0, "burst": 50.0}


def task_of(file):
    name = re.sub(r"-(longer|standby|tree)$", "", file.stem)
    return "Pleach/" + name.replace("Realistic-v0", "Realistic-v2").replace("LlmSite-v0", "LlmSite-v1")


def jobs_of(task):
    return 600 if "LlmSite" in task else 160 if "Elastic" in task else 300


def rules(pleach, shares):
    """Every rule that stops no job; those that share only where sharing is allowed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([pleach, "policies", "--json", file.name], check=True, capture_output=True)
        known = json.load(open(file.name))["policies"]
    left_out = ["dealing"] + ["sharing"] * (not shares)
    chooses = [one["name"] for one in known if one["kind"] == "policy" and not any(word in one["family"] for word in left_out)]
    return chooses + ["conservative"] + (["sjf-ffs"] if shares else [])


def evaluate(pleach, workload, policies, reference):
    """Ratio of average JCT to the reference's with its interval, and of p99 waits of a second or more, by policy."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [pleach, "evaluate", *workload, "--policy", ",".join(policies), "--reference", reference, "--json", file.name]
        ran = subprocess.run(words, capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"{shlex.join(words)}\n{ran.stderr}")
        found = json.load(open(file.name))["policies"]
    waits_s = {name: max(one["p99_wait_s"], 1.0) for name, one in found.items()}
    return {
        name: {**one["ratio_vs_reference"], "p99_wait": waits_s[name] / waits_s[reference]}
        for name, one in found.items()
        if one["ratio_vs_reference"]
    }


def judge(pleach, workload, files, shares):
    """The best rule on these lists, and the files over it."""
    known = rules(pleach, shares)
    over = evaluate(pleach, workload, known, "sjf")
    best = min([name for name in known if name in over], key=lambda name: over[name]["mean"])
    best = best if over[best]["mean"] < 1 else "sjf"
    named = [f"{file.name}={file}" for file in files]
    return best, evaluate(pleach, workload, [best, *named], best)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", help="names of files of checkpoints/reference, with commas [default: all]")
    parser.add_argument("--lists", type=int, default=12)
    parser.add_argument("--hard", action="store_true", help="the lists that are made here alone")
    parser.add_argument("--idle", action="store_true", help="the policies' own tasks at load 0.3 alone")
    parser.add_argument("--guessed", action="store_true", help="with --hard: run times are guessed from ended jobs")
    parser.add_argument("--rules", action="store_true", help="rules in the place of shipped policies")
    parser.add_argument("--seed", type=int, default=770077)
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    names = args.policies.split(",") if args.policies else sorted(
        path.name for path in REFERENCE.iterdir() if path.name != "index.json")
    files = [REFERENCE / name for name in names]
    if args.rules:
        show_rules(args)
        return
    print("| policy | list | best rule | over it | p99 wait |\n|---|---|---|---|---|")
    for task in sorted({task_of(file) for file in files} if not args.hard else ()):
        own, num_jobs = [file for file in files if task_of(file) == task], jobs_of(task)
        base = ["--workload", task, "--seed", str(args.seed)]
        lists = {
            "own": [*base, "--seeds", str(args.lists)],
            "4x": [*base, "--seeds", str(args.lists // 2), "--num-jobs", str(4 * num_jobs)],
            "load 0.3": [*base, "--seeds", str(args.lists), "--load", "0.3"],
        }
        if args.idle:
            lists = {"load 0.3": lists["load 0.3"]}
        show(args.pleach, lists, own, "Share" in task)
    if args.idle:
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: columns.made_lists(pathlib.Path(folder), kind, args.lists, args.seed, load) for kind, load in HARD.items()}
        for shares in (False, True):
            more = ["--sharing", "mps"] * shares + ["--estimates", "history"] * args.guessed
            lists = {kind: ["--workload", ",".join(map(str, paths[kind])), "--seeds", "1", *more] for kind in HARD}
            own = [file for file in files if ("Share" in file.name) == shares]
            if own:
                show(args.pleach, lists, own, shares)


def show_rules(args):
    """All rules over the best of each kind of lists: geometric mean, the worst kind, then each."""
    lists = {task: ["--workload", task, "--seed", str(args.seed), "--seeds", str(args.lists)] for task in TASKS}
    for kind in GUESSED:
        words = ["--workload", kind, "--num-jobs", "400", "--load", "1.5", "--estimates", "history"]
        lists[f"{kind}, guessed"] = [*words, "--seed", str(args.seed), "--seeds", str(args.lists)]
    with tempfile.TemporaryDirectory() as folder:
        for kind, load in HARD.items():
            paths = columns.made_lists(pathlib.Path(folder), kind, args.lists, args.seed, load)
            lists[kind] = ["--workload", ",".join(map(str, paths)), "--seeds", "1"]
            lists[f"{kind}, guessed"] = [*lists[kind], "--estimates", "history"]
        known = rules(args.pleach, False)
        found = {kind: evaluate(args.pleach, words, known, "sjf") for kind, words in lists.items()}
    ratios = {kind: {"sjf": 1.0} | {name: one["mean"] for name, one in over.items()} for kind, over in found.items()}
    over_best = {kind: {name: value / min(over.values()) for name, value in over.items()} for kind, over in ratios.items()}
    print(f"| rule | all | worst | {' | '.join(lists)} |\n|{' --- |' * (len(lists) + 3)}")
    rows = [(columns.mean([over[name] for over in over_best.values()]), name) for name in known]
    for mean, name in sorted(rows):
        cells = [over[name] for over in over_best.values()]
        print(f"| `{name}` | {mean:.3f} | {max(cells):.2f} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")


def show(pleach, lists, files, shares):
    for kind, workload in lists.items():
        best, found = judge(pleach, workload, files, shares)
        for name, ratio in sorted(found.items(), key=lambda one: -one[1]["mean"]):
            if name != best:
                mark = " **" if ratio["low"] > LEVEL else ""
                cell = f"{ratio['mean']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]{mark}"
                print(f"| `{name}` | {kind} | `{best}` | {cell} | {ratio['p99_wait']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
