"""Policies on nine kinds of lists in several conditions, as ratios of average JCT to a reference, in one table for each condition.

    python3 lab/bench/lists/columns.py --policies las-deal,srtf-deal,index --real FOLDER [--lists 20] [--load 2]
        [--columns Philly,pollux] [--conditions realistic,ideal] [--pleach target/release/pleach]

FOLDER holds `philly/` and `venus/`, written by real_windows.py; without --real these two columns are left out. Every
number comes from `pleach evaluate`, whose line is printed to standard error before it runs.
"""

import argparse
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from random import Random

GENERATED = ["Pleach/Philly-v0", "helios-like", "sia-philly", "gavel-multi", "synergy-multi", "pollux"]
# Played only where --columns names them.
MORE = ["acme-like", "itp-like"]
# So are these, made here: (nodes, GPUs of each, gangs, each as likely as the others), on one GPU type.
MADE = {
    "wide": (8, 8, [8, 16, 32, 64]),
    "tiny": (1, 4, [1, 2, 4]),
    "one-node": (1, 32, [1, 2, 4, 8, 16]),
    "burst": (4, 8, [1, 2, 4, 8, 16]),
}
# 8 nodes of the cluster of `pai-share`, 28 GPUs, on which its lists have to wait.
PAI_NODES = {"P100": 4, "T4": 2, "MISC": 1, "V100M32": 1}
# Those of `pleach tournament --condition`, but that with the same cost for every restart a first start is free. Of lists that are files
# `--realistic` takes their run times for those of a record; the other flags add what is in no run time here.
REALISTIC = ["--realistic", "--class-facts", "--site-failures", "production", "--keep-places-s", "1800"]
CONDITIONS = {
    "realistic": [*REALISTIC, "--overheads", "by-class"],
    "realistic-10s": [*REALISTIC, "--restart-cost-s", "10"],
    "realistic-60s": [*REALISTIC, "--restart-cost-s", "60"],
    "realistic-250s": [*REALISTIC, "--restart-cost-s", "250"],
    "ideal": ["--overheads", "zero"],
}


def pai_lists(pleach, folder, num):
    """`num` lists of 400 jobs of `pai-share`, on the smaller cluster."""
    paths = []
    for seed in range(num):
        path = folder / f"pai-{seed}.csv"
        words = ["workload", "write", "--workload", "pai-share", "--num-jobs", "400", "--load", "0.5", "--seed", str(seed)]
        subprocess.run([pleach, *words, "--to", path], check=True, capture_output=True)
        cluster = path.with_suffix(".cluster.toml")
        head, *groups = cluster.read_text().split("[[cluster.node_groups]]")
        groups[-1], tenants, rest = groups[-1].partition("[[cluster.tenants]]")
        kept = [head]
        for group in groups:
            count = PAI_NODES.get(re.search(r'gpu_type = "(\w+)"', group)[1])
            if count:
                kept.append("[[cluster.node_groups]]" + re.sub(r"count = \d+", f"count = {count}", group))
        text = "".join(kept) + tenants + rest
        cluster.write_text(re.sub(r"quota_gpus = \d+", "quota_gpus = 28", text))
        paths.append(path)
    return paths


def made_lists(folder, kind, num, seed, load):
    """`num` lists of 200 jobs: run times log-normal with a median of an hour and a deviation of 1, gaps exponential."""
    num_nodes, gpus, gangs = MADE[kind]
    mean_s = 3600 * math.exp(0.5)
    gap_s = mean_s * sum(gangs) / len(gangs) / (num_nodes * gpus * load)
    cluster = (
        f'name = "{kind}"\n[cluster]\n[[cluster.gpu_types]]\nname = "GPU"\nmemory_gib = 32.0\n'
        f'[[cluster.node_groups]]\ncount = {num_nodes}\ngpus_per_node = {gpus}\ngpu_type = "GPU"\nnodes_per_rack = {num_nodes}\n'
        f'[[cluster.tenants]]\nname = "all"\nquota_gpus = {num_nodes * gpus}\n'
    )
    paths = []
    for number in range(seed, seed + num):
        random = Random(f"{kind}-{number}")
        submit_s, lines = 0.0, ["submit_s,num_gpus,run_time_s"]
        for _ in range(200):
            lines.append(f"{submit_s:.3f},{random.choice(gangs)},{3600 * math.exp(random.gauss(0, 1)):.3f}")
            submit_s += random.expovariate(1 / gap_s)
        path = folder / f"{kind}-{number}.csv"
        path.write_text("\n".join(lines) + "\n")
        path.with_suffix(".cluster.toml").write_text(cluster)
        paths.append(path)
    return paths


def evaluate(args, workload, condition):
    """Ratio with interval and the ratios of three more figures, by policy."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [args.pleach, "evaluate", *workload, "--preemption", "--sharing", "mps", *CONDITIONS[condition]]
        words += ["--policy", args.policies, "--reference", args.reference, "--json", file.name]
        print(shlex.join(map(str, words)), file=sys.stderr)
        subprocess.run(words, check=True, capture_output=True)
        policies = json.load(open(file.name))["policies"]
    base = policies[args.reference]
    found = {args.reference: (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, base["preemptions"])}
    for name, mine in policies.items():
        ratio = mine["ratio_vs_reference"]
        if ratio and name != args.reference:
            more = [mine[key] / base[key] for key in ("p99_jct_s", "avg_slowdown", "fairness")]
            found[name] = (ratio["mean"], ratio["low"], ratio["high"], *more, mine["preemptions"])
    return found


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def row(name, columns):
    found = [columns[column].get(name) for column in columns]
    cells = [f"{cell[0]:.3f} [{cell[1]:.3f}, {cell[2]:.3f}]" if cell[1] < cell[2] else "1" for cell in found]
    more = [f"{mean([cell[at] for cell in found]):.2f}" for at in (3, 4, 5)]
    stops = sum(cell[6] for cell in found) / len(found)
    ratio = mean([cell[0] for cell in found])
    return ratio, [f"`{name}`", f"{ratio:.3f}", *cells, *more, f"{stops:.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", required=True)
    parser.add_argument("--reference", default="las-deal")
    parser.add_argument("--real", type=pathlib.Path)
    parser.add_argument("--lists", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--load", default="2")
    parser.add_argument("--columns", help=f"only these, with commas; also {', '.join([*MORE, *MADE])}")
    parser.add_argument("--conditions", default="realistic,ideal", help=f"with commas; known are {', '.join(CONDITIONS)}")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = {}
        for name in GENERATED + MORE:
            work[name.removeprefix("Pleach/").removesuffix("-v0")] = [
                "--workload", name, "--num-jobs", "200", "--load", args.load, "--seeds", str(args.lists), "--seed", str(args.seed)
            ]
        folder = pathlib.Path(folder)
        files = {kind: made_lists(folder, kind, args.lists, args.seed, float(args.load)) for kind in MADE}
        if not args.columns or "pai-share" in args.columns:
            files["pai-share"] = pai_lists(args.pleach, folder, args.lists)
        for name in ("philly", "venus") if args.real else ():
            files[f"real {name}"] = sorted((args.real / name).glob("*.csv"))
        for name, paths in files.items():
            work[name] = ["--workload", ",".join(map(str, paths)), "--seeds", "1"]
        named = args.columns.split(",") if args.columns else [name for name in work if name not in MORE and name not in MADE]
        unknown = [name for name in named if name not in work]
        if unknown:
            parser.error(f"--columns {', '.join(unknown)}: expected {', '.join(work)}")
        work = {name: work[name] for name in named}
        conditions = args.conditions.split(",")
        unknown = [name for name in conditions if name not in CONDITIONS]
        if unknown:
            parser.error(f"--conditions {', '.join(unknown)}: expected {', '.join(CONDITIONS)}")
        for condition in conditions:
            columns = {name: evaluate(args, workload, condition) for name, workload in work.items()}
            names = columns[next(iter(columns))]
            rows = sorted(row(name, columns) for name in names)
            print(f"| {condition} | all | {' | '.join(columns)} | p99 | slowdown | Jain | stops |")
            print("| --- " + "| ---: " * (len(columns) + 5) + "|")
            for _, cells in rows:
                print(f"| {' | '.join(cells)} |")
            print(flush=True)


if __name__ == "__main__":
    main()
