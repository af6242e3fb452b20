"""Policies on almost idle clusters of wide gangs, as ratios of average JCT to the best of five heuristics that wait for no place.

    python3 lab/bench/lists/idle_gangs.py --policies NAME=checkpoints/reference/PhillyGang-v1.ckpt,... [--lists 24] [--seed 0]
        [--gpus 512,2416] [--loads 0.1,0.2,0.3] [--kinds even,bursts] [--pleach target/release/pleach]

Nodes of 8 GPUs, 8 to a rack; gangs of 8 to 512; 300 jobs a list. `even`: each size as likely, run times log-uniform from 100 s to
8.8 h, arrivals at random. `bursts`: mostly the smaller sizes, run times log-normal with a median of 124 s and a mean of 1,260 s, as
published for Acme's cluster Kalos (Hu et al., NSDI 2024), arrivals in bursts of three. Every number comes from `pleach evaluate`.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile
from random import Random

RIVALS = ["fifo", "sjf", "easy", "sjf-reserve", "gpu-time-reserve"]
GANGS = [8, 16, 32, 64, 128, 256, 512]
WEIGHTS = {"even": [1] * 7, "bursts": [40, 20, 14, 10, 6, 3, 1]}
# Of a log-normal: mean over median is exp(sigma^2 / 2).
BURSTS_SIGMA = math.sqrt(2 * math.log(1260 / 124))


def run_time_s(kind, random):
    if kind == "even":
        return 10 ** random.uniform(2, 4.5)
    return min(max(random.lognormvariate(math.log(124), BURSTS_SIGMA), 2), 86400)


def arrivals_s(kind, span_s, num, random):
    if kind == "even":
        return sorted(random.uniform(0, span_s) for _ in range(num))
    times = []
    while len(times) < num:
        first, more = random.uniform(0, span_s), int(random.expovariate(0.5))
        times += [first + random.uniform(0, 10 * more) for _ in range(1 + more)]
    return sorted(times[:num])


def write_list(path, kind, gpus, load, number):
    random = Random(f"{kind}-{gpus}-{load}-{number}")
    jobs = [(random.choices(GANGS, WEIGHTS[kind])[0], run_time_s(kind, random)) for _ in range(300)]
    span_s = sum(gang * run_s for gang, run_s in jobs) / (gpus * load)
    lines = ["submit_s,num_gpus,run_time_s"]
    for submit_s, (gang, run_s) in zip(arrivals_s(kind, span_s, len(jobs), random), jobs):
        lines.append(f"{submit_s:.3f},{gang},{run_s:.3f}")
    path.write_text("\n".join(lines) + "\n")
    path.with_suffix(".cluster.toml").write_text(
        f'name = "{kind}"\n[cluster]\n[[cluster.gpu_types]]\nname = "GPU"\nmemory_gib = 80.0\n'
        f'[[cluster.node_groups]]\ncount = {gpus // 8}\ngpus_per_node = 8\ngpu_type = "GPU"\nnodes_per_rack = 8\n'
        f'[[cluster.tenants]]\nname = "all"\nquota_gpus = {gpus}\n'
        '[[classes]]\nname = "any"\nspeed = [1.0]\n[classes.locality]\nmore_nodes = 0.854\ncross_rack = 0.65\n'
    )


def evaluate(args, paths, reference):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        policies = ",".join([*RIVALS, args.policies])
        words = [args.pleach, "evaluate", "--workload", ",".join(map(str, paths)), "--seeds", "1", "--estimates", "oracle"]
        words += ["--policy", policies, "--reference", reference, "--json", file.name, "--quiet"]
        subprocess.run(words, check=True)
        return json.load(open(file.name))["policies"]


def column(args, paths):
    """The best rival, and of every other policy its ratio with interval, and how many times the slowdown it has."""
    first = evaluate(args, paths, RIVALS[0])
    ratio = lambda name: (first[name].get("ratio_vs_reference") or {"mean": 1.0})["mean"]
    best = min(RIVALS, key=ratio)
    found = evaluate(args, paths, best)
    slowdown = lambda name: found[name]["avg_slowdown"] / found[best]["avg_slowdown"]
    return best, {name: (found[name]["ratio_vs_reference"], slowdown(name)) for name in found if name not in RIVALS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", required=True)
    parser.add_argument("--lists", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gpus", default="512,2416")
    parser.add_argument("--loads", default="0.1,0.2,0.3")
    parser.add_argument("--kinds", default="even,bursts")
    parser.add_argument("--pleach", default="target/release/pleach")
    args = parser.parse_args()
    for kind in args.kinds.split(","):
        for gpus in map(int, args.gpus.split(",")):
            for load in map(float, args.loads.split(",")):
                with tempfile.TemporaryDirectory() as folder:
                    numbers = range(args.seed, args.seed + args.lists)
                    paths = [pathlib.Path(folder) / f"{kind}-{number}.csv" for number in numbers]
                    for path, number in zip(paths, numbers):
                        write_list(path, kind, gpus, load, number)
                    best, found = column(args, paths)
                print(f"{kind}, {gpus} GPUs, load {load}, over {best}")
                for name, (ratio, slowdown) in found.items():
                    print(f"  {name:28} {ratio['mean']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]  slowdown x {slowdown:.2f}")


main()
