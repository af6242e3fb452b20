"""Cuts busy windows of single virtual clusters out of published job lists, each with its own nodes.

    python3 lab/bench/lists/real_windows.py JOBS.csv[.gz] NODES.csv OUT_FOLDER [--days 3] [--num 12]

JOBS has columns `vc`, `user`, `submit_s` or `submit_time` (s), `num_gpus` or `gpu_num`, and `duration_s` or `duration` (s); NODES has
the name of a virtual cluster and its number of nodes with 8 GPUs in its first two columns. Windows begin at multiples
of their length. Kept are those with 100 to 450 jobs whose work is at least half of what the nodes can do, the busiest
first, at most two of a virtual cluster.
The seed-free result is NAME.csv and NAME.cluster.toml for each window, as `pleach evaluate --workload` reads them.
"""

import argparse
import csv
import gzip
import pathlib

GPUS_PER_NODE = 8
NUM_JOBS = range(100, 451)
LOAD_MIN = 0.5
PER_CLUSTER = 2


def rows(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        for row in csv.DictReader(file):
            submit, run = row.get("submit_s") or row.get("submit_time"), row.get("duration_s") or row.get("duration")
            num_gpus = row.get("num_gpus") or row.get("gpu_num")
            if row["vc"] and submit and num_gpus and run and float(run) > 0:
                yield row["vc"], float(submit), int(num_gpus), float(run), row.get("user", "")


def windows(jobs, nodes, length_s):
    found = {}
    for vc, submit_s, num_gpus, run_s, user in jobs:
        if vc in nodes and 0 < num_gpus <= nodes[vc] * GPUS_PER_NODE:
            found.setdefault((vc, int(submit_s // length_s)), []).append((submit_s, num_gpus, run_s, user))
    for (vc, number), rows_of in found.items():
        load = sum(gpus * run for _, gpus, run, _ in rows_of) / (nodes[vc] * GPUS_PER_NODE * length_s)
        if len(rows_of) in NUM_JOBS and load >= LOAD_MIN:
            yield load, vc, number, sorted(rows_of)


def write(folder, vc, number, jobs, num_nodes, length_s):
    name = folder / f"{vc}-{number}"
    with open(f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["submit_s", "num_gpus", "run_time_s", "user"])
        for submit_s, num_gpus, run_s, user in jobs:
            writer.writerow([f"{submit_s - number * length_s:.3f}", num_gpus, run_s, user])
    gpu_type = '[[cluster.gpu_types]]\nname = "GPU"\nmemory_gib = 24.0\n'
    group = f'[[cluster.node_groups]]\ncount = {num_nodes}\ngpus_per_node = {GPUS_PER_NODE}\ngpu_type = "GPU"\n'
    group += "nodes_per_rack = 16\n"
    tenant = f'[[cluster.tenants]]\nname = "all"\nquota_gpus = {num_nodes * GPUS_PER_NODE}\n'
    locality = "[[classes]]\nname = \"any\"\nspeed = [1.0]\n\n[classes.locality]\nmore_nodes = 0.854\ncross_rack = 0.65\n"
    pathlib.Path(f"{name}.cluster.toml").write_text(f'name = "{vc}"\n\n[cluster]\n\n{gpu_type}\n{group}\n{tenant}\n{locality}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs")
    parser.add_argument("nodes")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--num", type=int, default=12)
    args = parser.parse_args()
    with open(args.nodes) as file:
        nodes = {row[0]: int(row[1]) for row in list(csv.reader(file))[1:]}
    length_s = args.days * 86_400
    args.out.mkdir(parents=True, exist_ok=True)
    taken = {}
    for load, vc, number, jobs in sorted(windows(rows(args.jobs), nodes, length_s), reverse=True):
        if sum(taken.values()) < args.num and taken.get(vc, 0) < PER_CLUSTER:
            taken[vc] = taken.get(vc, 0) + 1
            write(args.out, vc, number, jobs, nodes[vc], length_s)
            print(f"{vc}-{number}: {len(jobs)} jobs, load {load:.2f}")


if __name__ == "__main__":
    main()
