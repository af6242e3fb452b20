"""What compare_slurm.sh does besides Slurm: lists of jobs, their submission, the table. Python's own library only.

  compare_slurm.py scale IN OUT SECONDS_PER_SECOND LOAD NUM_GPUS   a list that real nodes can run in minutes
  compare_slurm.py submit LIST ARM_FOLDER LIMITS START_S           submits it by sbatch
  compare_slurm.py rows LIST ARM ARM_FOLDER                        what ran when, as CSV rows
  compare_slurm.py table CSV [REFERENCE]                           the table, paired over jobs
  compare_slurm.py jitter IN OUT SECONDS SEED                      the list with each submission up to so much later
"""

import csv
import math
import os
import random
import subprocess
import sys
import time

LEAST_S, MOST_S, NODE_GPUS = 2.0, 120.0, 8


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def scale(source, target, speed, load, num_gpus):
    """Run times divided by `speed` and cut to [2 s, 120 s], gangs cut to half the cluster, arrivals laid anew for the load.

    Slurm keeps limits in whole minutes, so a limit of n seconds is asked for as n minutes: `estimate_s` is 60 times as long.
    """
    speed, load, num_gpus = float(speed), float(load), int(num_gpus)
    jobs = read(source)
    for job in jobs:
        run_time_s = min(max(float(job["run_time_s"]) / speed, LEAST_S), MOST_S)
        limit_s = max(float(job["estimate_s"]) / speed, run_time_s)
        job.update(run_time_s=round(run_time_s, 2), estimate_s=60 * math.ceil(limit_s))
        job.update(num_gpus=min(int(job["num_gpus"]), num_gpus // 2), outcome="completed")
    work = sum(job["run_time_s"] * job["num_gpus"] for job in jobs)
    stretch = work / (num_gpus * load) / float(jobs[-1]["submit_s"])
    for job in jobs:
        job["submit_s"] = round(float(job["submit_s"]) * stretch, 2)
    with open(target, "w", newline="") as file:
        writer = csv.DictWriter(file, jobs[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(jobs)


def jitter(source, target, seconds, seed):
    """Each job comes up to `seconds` later than planned: what chance alone makes of a list."""
    luck = random.Random(int(seed))
    jobs = read(source)
    for job in jobs:
        job["submit_s"] = round(float(job["submit_s"]) + luck.uniform(0, float(seconds)), 2)
    jobs.sort(key=lambda job: job["submit_s"])
    with open(target, "w", newline="") as file:
        writer = csv.DictWriter(file, jobs[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(jobs)


def submit(path, folder, limits, start_s):
    """Submits each job at its time. `limits` is `minutes` (n seconds as n minutes) or `rounded` (n seconds rounded up)."""
    late_s = 0.0
    for job in read(path):
        at_s = float(start_s) + float(job["submit_s"])
        time.sleep(max(at_s - time.time(), 0.0))
        late_s = max(late_s, time.time() - at_s)
        num_gpus, minutes = int(job["num_gpus"]), int(job["estimate_s"]) // 60
        if limits == "rounded":
            minutes = math.ceil((minutes + 2) / 60)
        shape = ["-N", str(-(-num_gpus // NODE_GPUS)), f"--gres=gpu:{min(num_gpus, NODE_GPUS)}"]
        script = [f"{folder}/job.sh", job["job_id"], job["run_time_s"]]
        command = ["sbatch", "--parsable", "-p", "main", "-o", "/dev/null", "-J", job["job_id"], "-t", str(minutes)]
        done = subprocess.run(command + shape + script, capture_output=True, text=True, check=True)
        with open(f"{folder}/submitted", "a") as file:
            file.write(f"{job['job_id']} {done.stdout.strip()} {at_s}\n")
    print(f"latest submission: {late_s:.2f} s after its time")


def words(path):
    with open(path) as file:
        return [line.split() for line in file]


def rows(path, arm, folder):
    """One row for each job: planned submission, start, end (s from the first submission), nodes."""
    submitted = {job: (slurm, float(at_s)) for job, slurm, at_s in words(f"{folder}/submitted")}
    began = {job: (float(at_s), nodes) for job, at_s, nodes in words(f"{folder}/starts")}
    ended = {job: float(at_s) for job, at_s in words(f"{folder}/ends")}
    zero_s = min(at_s for _, at_s in submitted.values())
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for job in read(path):
        key = job["job_id"]
        slurm, at_s = submitted[key]
        (start_s, nodes), end_s = began[key], ended[key]
        times = [round(value - zero_s, 2) for value in (at_s, start_s, end_s)]
        writer.writerow([os.path.basename(path), arm, key, slurm, job["num_gpus"], job["run_time_s"], job["estimate_s"], *times, expand(nodes)])


def expand(nodes):
    """`g[1-2,4]` as `g1 g2 g4`."""
    head, _, inside = nodes.rstrip("]").partition("[")
    spans = [part.split("-") for part in inside.split(",")] if inside else []
    return " ".join(f"{head}{n}" for span in spans for n in range(int(span[0]), int(span[-1]) + 1)) or nodes


def percentile(values, part):
    values = sorted(values)
    return values[min(math.ceil(part * len(values)), len(values)) - 1]


def bootstrap(pairs, statistic):
    """A 95 % interval over jobs, drawn anew with their pairs."""
    luck = random.Random(0)
    drawn = sorted(statistic(luck.choices(pairs, k=len(pairs))) for _ in range(2000))
    return drawn[50], drawn[1949]


def table(path, reference="backfill"):
    jobs = {}
    for row in read(path):
        jobs.setdefault(row["list"], {}).setdefault(row["arm"], {})[row["job"]] = row
    for name, arms in jobs.items():
        print(f"\n{name}\n")
        print("| policy | average JCT, s | p99 JCT, s | average wait, s | makespan, s | average JCT over", end=" ")
        print(f"{reference} | median ratio of a job's JCT | jobs sooner / later |\n|---|---|---|---|---|---|---|---|")
        jct = {arm: {job: float(row["end_s"]) - float(row["submit_s"]) for job, row in of.items()} for arm, of in arms.items()}
        for arm, of in arms.items():
            waits = [float(row["start_s"]) - float(row["submit_s"]) for row in of.values()]
            makespan = max(float(row["end_s"]) for row in of.values())
            pairs = [(jct[arm][job], jct[reference][job]) for job in of]
            ratio = lambda drawn: sum(pair[0] for pair in drawn) / sum(pair[1] for pair in drawn)
            low, high = bootstrap(pairs, ratio)
            median = percentile([ours / theirs for ours, theirs in pairs], 0.5)
            sooner, later = (sum(sign * (a - b) > 1 for a, b in pairs) for sign in (-1, 1))
            print(
                f"| {arm} | {sum(jct[arm].values()) / len(of):.1f} | {percentile(jct[arm].values(), 0.99):.0f} "
                f"| {sum(waits) / len(of):.1f} | {makespan:.0f} | {ratio(pairs):.3f} [{low:.3f}, {high:.3f}] "
                f"| {median:.2f} | {sooner} / {later} |"
            )
        agree(arms)


def agree(arms):
    """Beside each simulated arm (`simulated ARM`): the same order of starts, the same nodes."""
    for arm, real in arms.items():
        copy = arms.get(f"simulated {arm}")
        if copy is None:
            continue
        keys = sorted(real, key=lambda job: float(copy[job]["start_s"]))
        begins = [float(real[job]["start_s"]) for job in keys]
        num = len(begins)
        swapped = sum(begins[i] > begins[j] for i in range(num) for j in range(i + 1, num))
        nodes = sum(real[job]["nodes"] == copy[job]["nodes"] for job in keys)
        gaps = sorted(abs(float(real[job]["start_s"]) - float(copy[job]["start_s"])) for job in keys)
        print(
            f"{arm}: {1 - swapped / (num * (num - 1) / 2):.1%} of all pairs of jobs start in the simulated order, "
            f"{nodes} of {num} jobs on the same nodes, starts differ by {gaps[num // 2]:.1f} s in the median"
        )


if __name__ == "__main__":
    commands = {"scale": scale, "submit": submit, "rows": rows, "table": table, "jitter": jitter}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
