"""What field_slurm.sh does on a Slurm that runs: jobs of all kinds by a seeded plan, seeded faults beside them, and the count.

  field_slurm.py play SEED NUM_JOBS NUM_FAULTS FOLDER POLICY [ACCOUNT PROGRAM]   POLICY `none`: without a daemon
  field_slurm.py rows FOLDER ARM                                                 a CSV row for each job that ended

The plan is the same for the same seed, whatever the policy and however many faults. Python's own library only.
"""

import csv
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time

NUM_GPUS, LOAD = 24, 0.95
# Accounts that every Debian has; the first one's may have eight GPUs at a time.
USERS = ["games", "irc", "news", "uucp"]
WAIT_S = 300
KINDS = [
    "daemon killed", "daemon killed and away for 3 s", "policy read again", "controller restarted", "slurmdbd restarted",
    "node drained", "node down and back", "running job requeued", "waiting job edited by its user", "waiting job held by its user",
    "waiting job cancelled", "running job cancelled", "time limit changed", "disk full", "scontrol stopped for 3 s",
    "scontrol killed", "answers lost", "commands hang", "commands print garbage", "hold and release in bulk",
]  # fmt: skip


def plan(seed, num_jobs):
    """Jobs in the order of their arrival: key, time, user, what sbatch is told, run time, GPUs, estimate (s)."""
    luck = random.Random(f"jobs {seed}")
    jobs, at_s = [], 0.0
    while sum(job["tasks"] for job in jobs) < num_jobs:
        run_s = round(min(max(luck.lognormvariate(1.1, 0.9), 0.5), 20.0), 2)
        estimate_s = math.ceil(run_s * luck.choice([1, 1.5, 2, 4, 8]))
        num_gpus, nodes = luck.choices([(1, 1), (2, 1), (4, 1), (8, 1), (8, 2)], [45, 25, 18, 6, 6])[0]
        ask = ["-N", str(nodes), f"--gres=gpu:{num_gpus // nodes}"]
        kind, tasks = luck.random(), 1
        if kind < 0.12:
            ask, num_gpus = ["-n", str(luck.choice([1, 4, 12]))], 0
        elif kind < 0.17 and nodes == 1 and num_gpus <= 4:
            ask += ["-C", "nvme"]
        elif kind < 0.21:
            ask += ["-L", "matlab:1"]
        elif kind < 0.24 and nodes == 1:
            ask += ["--exclusive"]
        elif kind < 0.30 and num_gpus == 1:
            tasks = min(luck.randint(2, 4), num_jobs - sum(job["tasks"] for job in jobs))
            ask += [f"--array=0-{tasks - 1}"]
        work = max(num_gpus, 0.5) * run_s * tasks
        at_s += luck.expovariate(1.0) * work / (NUM_GPUS * LOAD)
        jobs.append(dict(key=f"j{len(jobs)}", at_s=round(at_s, 2), user=luck.choice(USERS), ask=ask, run_s=run_s,
                         num_gpus=num_gpus, estimate_s=estimate_s, tasks=tasks))  # fmt: skip
    return jobs


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def as_user(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


class Site:
    def __init__(self, folder, policy, account=None, program=None):
        self.folder, self.policy, self.account, self.program = folder, policy, account, program
        self.daemon, self.ids, self.cancelled, self.done = None, {}, set(), {kind: 0 for kind in KINDS}
        self.late_s = 0.0

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        if self.policy == "none":
            return
        command = [self.program, "--config", self.path("pleach.toml"), "run", "--policy", self.policy, "--live"]
        with open(self.path("daemon.log"), "a") as log:
            self.daemon = subprocess.Popen(as_user(self.account) + command, stderr=log, stdout=log)

    def kill(self):
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon = None

    def submit(self, job, began_s):
        self.late_s = max(self.late_s, time.time() - began_s - job["at_s"])
        script = [self.path("job.sh"), str(job["run_s"])]
        ask = ["--parsable", "-D", "/", "-o", "/dev/null", "-e", "/dev/null", "-J", job["key"], "-t", str(job["estimate_s"])]
        until_s = time.time() + 60
        while True:
            done = run(as_user(job["user"]) + ["sbatch"] + ask + job["ask"] + script)
            if done.returncode == 0:
                break
            # The controller is away. An answer may be lost, not the job.
            if time.time() > until_s:
                sys.exit(f"field_slurm: {job}: {done.stderr}")
            time.sleep(0.2)
        with open(self.path("submitted"), "a") as file:
            file.write(f"{job['key']} {done.stdout.strip()} {time.time()}\n")

    def some(self, state, luck):
        """A job in that state, whole, with its user and name."""
        lines = run(["squeue", "-h", "-t", state, "-o", "%i|%u|%j"]).stdout.split()
        return luck.choice(lines).split("|") if lines else None

    def flag(self, name, seconds):
        open(self.path(name), "w").close()
        time.sleep(seconds)
        os.remove(self.path(name))

    def controller(self):
        # With the jobs of the moment drained: Slurm 22.05 itself goes on counting GPUs of jobs that end in the meantime.
        run(["scontrol", "update", "partitionname=main", "state=inactive"])
        for _ in range(150):
            if not run(["squeue", "-h", "-t", "R,CG,CF"]).stdout:
                break
            time.sleep(0.2)
        self.again("slurmctld")
        for _ in range(150):
            if run(["scontrol", "update", "partitionname=main", "state=up"]).returncode == 0:
                break
            time.sleep(0.2)

    def again(self, program):
        with open(self.path(f"run/{program}.pid")) as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGTERM)
        for _ in range(150):
            if not os.path.exists(f"/proc/{pid}"):
                break
            time.sleep(0.1)
        run([program])

    def children(self):
        """The long-lived scontrol of the daemon."""
        return [int(pid) for pid in run(["pgrep", "-x", "-P", str(self.daemon.pid), "scontrol"]).stdout.split()] if self.daemon else []

    def fault(self, kind, luck):
        node = luck.choice(["g1", "g2", "g3", "g4"])
        word = lambda text: run(["scontrol"] + text.split())
        match kind:
            case "daemon killed":
                self.kill(), self.start()
            case "daemon killed and away for 3 s":
                self.kill(), time.sleep(3), self.start()
            case "policy read again" if self.daemon:
                self.daemon.send_signal(signal.SIGHUP)
            case "controller restarted":
                self.controller()
            case "slurmdbd restarted":
                self.again("slurmdbd")
            case "node drained":
                word(f"update nodename={node} state=drain reason=test"), time.sleep(3), word(f"update nodename={node} state=resume")
            case "node down and back":
                word(f"update nodename={node} state=down reason=test"), time.sleep(0.5), word(f"update nodename={node} state=resume")
            case "disk full":
                run(["sh", "-c", f"cat /dev/zero > {self.path('pleach/filler')}"]), time.sleep(2), os.remove(self.path("pleach/filler"))
            case "scontrol stopped for 3 s":
                stopped = self.children()
                for sign in [signal.SIGSTOP, signal.SIGCONT]:
                    run(["kill", f"-{sign.value}", *map(str, stopped)]), time.sleep(3 if sign == signal.SIGSTOP else 0)
            case "scontrol killed":
                run(["kill", "-9", *map(str, self.children())])
            case "answers lost" | "commands hang" | "commands print garbage":
                self.flag(kind.split()[-1], 2)
            case "hold and release in bulk":
                waiting = run(["squeue", "-h", "-t", "PD", "-o", "%A"]).stdout.split()[:30]
                if waiting:
                    word(f"hold {','.join(waiting)}"), time.sleep(2), word(f"release {','.join(waiting)}")
            case _:
                return self.edit(kind, luck)
        self.done[kind] += 1

    def edit(self, kind, luck):
        for _ in range(20):
            found = self.some("R" if "running" in kind else "PD", luck)
            if found:
                break
            time.sleep(0.3)
        else:
            return
        job, user, key = found
        own = lambda text: run(as_user(user) + ["scontrol"] + text.split())
        match kind:
            case "running job requeued":
                run(["scontrol", "requeue", job])
            case "waiting job edited by its user":
                change = luck.choice(["nice=100", "comment=mine", "excnodelist=g1", "starttime=now+2", "timelimit=3", "nice=50000"])
                own(f"update jobid={job} {change}")
            case "waiting job held by its user":
                own(f"hold {job}"), time.sleep(2.5), own(f"release {job}")
            case "waiting job cancelled" | "running job cancelled":
                self.cancelled.add(key + (f"_{job.split('_')[1]}" if "_" in job and "[" not in job else ""))
                run(["scancel", job])
            case "time limit changed":
                run(["scontrol", "update", f"jobid={job}", f"timelimit={luck.choice(['1', '600'])}"])
        self.done[kind] += 1


def words(path):
    with open(path) as file:
        return [line.split() for line in file]


def faults(site, seed, num_faults, began_s, last_s):
    luck = random.Random(f"faults {seed}")
    order = [KINDS[i % len(KINDS)] for i in range(num_faults)]
    luck.shuffle(order)
    for i, kind in enumerate(order):
        time.sleep(max(began_s + last_s * (i + 0.5) / num_faults - time.time(), 0.0))
        site.fault(kind, luck)


def play(seed, num_jobs, num_faults, folder, policy, account=None, program=None):
    num_faults, jobs = int(num_faults), plan(seed, int(num_jobs))
    site = Site(folder, policy, account, program)
    site.start()
    began_s, last_s = time.time() + 3, jobs[-1]["at_s"]
    breaker = threading.Thread(target=faults, args=(site, seed, num_faults, began_s, last_s))
    breaker.start()
    for job in jobs:
        time.sleep(max(began_s + job["at_s"] - time.time(), 0.0))
        site.submit(job, began_s)
    breaker.join()
    until_s = time.time() + WAIT_S
    while left := run(["squeue", "-h", "-a", "-r", "-o", "%i|%j|%T|%r"]).stdout.split("\n")[:-1]:
        if time.time() > until_s:
            break
        time.sleep(0.5)
    site.kill()
    report(site, jobs, left, time.time() - began_s)


def report(site, jobs, left, took_s):
    keys = [job["key"] + (f"_{task}" if job["tasks"] > 1 else "") for job in jobs for task in range(job["tasks"])]
    starts = [(key, restart) for key, restart, _, _ in words(site.path("starts"))]
    ends = [(key, restart) for key, restart, _ in words(site.path("ends"))]
    ended = {key for key, _ in ends}
    starved = {line.split("|")[1] for line in left}
    # Cancelled: the task, or the whole array.
    was_cancelled = lambda key: key in site.cancelled or key.split("_")[0] in site.cancelled
    lost = [key for key in keys if key not in ended and not was_cancelled(key) and key.split("_")[0] not in starved]
    doubled = (len(starts) - len(set(starts))) + (len(ends) - len(set(ends)))
    requeued = len({key for key, restart in starts if restart != "0"})
    num_cancelled = sum(key not in ended and was_cancelled(key) for key in keys)
    print("| fault | times |\n|---|---|")
    for kind, times in site.done.items():
        print(f"| {kind} | {times} |")
    print(f"{len(keys)} jobs, {sum(site.done.values())} faults in {took_s:.0f} s: {len(ended)} ended, {num_cancelled} cancelled, "
          f"{requeued} requeued; lost {len(lost)}, doubled {doubled}, starved {len(left)}; "
          f"submitted {site.late_s:.1f} s late at most")  # fmt: skip
    if lost or doubled or left:
        sys.exit(f"field_slurm: lost {lost[:9]}, starved {left[:9]}")


def rows(folder, arm):
    path = lambda name: os.path.join(folder, name)
    at_s = {key: float(at) for key, _, at in words(path("submitted"))}
    began = {key: (float(at), nodes) for key, _, at, nodes in words(path("starts"))}
    writer = csv.writer(sys.stdout, lineterminator="\n")
    zero_s = min(at_s.values())
    for key, _, end_s in words(path("ends")):
        submit_s, (start_s, nodes) = at_s[key.split("_")[0]], began[key]
        times = [round(value - zero_s, 2) for value in (submit_s, start_s, float(end_s))]
        writer.writerow(["field", arm, key, "", "", "", "", *times, nodes])


if __name__ == "__main__":
    commands = {"play": play, "rows": rows}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
