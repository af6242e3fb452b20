#!/usr/bin/env python3
"""CPU time of the daemon's own rounds beside a Slurm of files: 1,000 nodes with a running job each, 5,000 jobs that wait, and ten that
come, start and end each second. The commands of that Slurm are other processes and not counted.

    deploy/daemon/tests/round_cost.py PLEACH_SCHEDULER [POLICY] [ROUNDS] [NODES] [WAITING]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SQUEUE = """#!/bin/bash
cd "$(dirname "$0")"
last="${@: -1}"; word=${last%|}; word=${word##*|}
case "$*" in
  *EndTime*) exit 0 ;;
  *JobID:*) sed "s/\\$/$word|/" queue ;;
  *Account:*) sed "s/\\$/$word|/" jobs ;;
  *%x*) cat wishes ;;
esac
"""
SCONTROL = """#!/bin/bash
cd "$(dirname "$0")"
case "$*" in
  '') while read -r verb job factor; do
        case $verb in
          update) printf '%s %s\\n' "${job#*=}" "${factor#*=}" >> factors ;;
          *) echo "invalid keyword: $verb" >&2 ;;
        esac
      done ;;
  *config*) echo 'PriorityType = priority/multifactor' ;;
  *partition*) cat partition ;;
  *assoc_mgr*) cat limits ;;
esac
"""
SPRIO = """#!/bin/bash
cd "$(dirname "$0")"
awk 'NR == FNR { of[$1] = $2; next } { print $1 "|" of[$1] + 0 "|main|" }' factors waiting
"""
SINFO = """#!/bin/bash
cd "$(dirname "$0")"
case "$*" in *%P*) echo 'main*' ;; *) cat nodes ;; esac
"""


class Site:
    """Jobs and nodes, as texts of Slurm's commands."""

    def __init__(self, folder, num_nodes, num_waiting):
        self.folder, self.num_nodes, self.next, self.now = folder, num_nodes, 1, int(time.time())
        self.running, self.waiting, self.row = {}, {}, 0
        for node in range(num_nodes):
            self.running[node] = self.job(3)
        for row in range(num_waiting):
            self.come()
        for name, text in [("squeue", SQUEUE), ("scontrol", SCONTROL), ("sprio", SPRIO), ("sinfo", SINFO)]:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        (folder / "factors").write_text("")
        (folder / "partition").write_text(f"PartitionName=main Nodes=n[0-{num_nodes - 1}] State=UP\n")
        users = [
            f"ClusterName=c Account=a{user % 20} UserName=u{user}({user}) Partition= ParentAccount= GrpTRES=gres/gpu=N(1) MaxJobs=\n"
            for user in range(200)
        ]
        (folder / "limits").write_text("".join(users))
        self.write()

    def job(self, gpus):
        number, self.next = self.next, self.next + 1
        return number, gpus, 10 + number * 7919 % 1500, self.now - 1000 + number // 8

    def come(self):
        job = self.job(1 + self.next * 31 % 4)
        self.waiting[job[0]] = job

    def step(self):
        """Ten jobs end, start and come."""
        for _ in range(10):
            node, self.row = self.row % self.num_nodes, self.row + 7
            first = next(iter(self.waiting))
            number, _, limit, submit = self.waiting.pop(first)
            self.running[node] = (number, 3, limit, submit)
            self.come()
        self.write()

    def write(self):
        jobs, nodes = [], []
        users = [(f"u{number % 200}", f"a{number % 20}") for number in range(200)]
        line = (
            "cpu=1,mem=0,node=1,gres/gpu={g}|normal|N/A|N/A|{n}|{state}|{p}|gres:gpu:{g}|N/A|N/A|N/A|1|1|{node}||(null)|{reason}|{l}:00|"
            "{s}|{start}|0|OK|0|0|(null)|(null)|0|main|{u}|{a}|"
        )
        for node, (number, gpus, limit, submit) in self.running.items():
            user, account = users[number % 200]
            of = {"state": "RUNNING", "p": 1, "node": f"n{node}", "reason": "None", "start": submit + 5}
            jobs.append(line.format(n=number, g=gpus, l=limit, s=submit, u=user, a=account, **of))
            nodes.append(f"64000|0|1|(null)|n{node}|mixed|gpu:a100:4|gpu:a100:3(IDX:0-2)|1/15/0/16|main*|")
        for number, gpus, limit, submit in self.waiting.values():
            user, account = users[number % 200]
            of = {"state": "PENDING", "p": 1, "node": "", "reason": "Priority", "start": "N/A"}
            jobs.append(line.format(n=number, g=gpus, l=limit, s=submit, u=user, a=account, **of))
        texts = {
            "jobs": jobs,
            "nodes": nodes,
            "queue": [f"{n}|{n}|1|{s}|Priority|" for n, _, _, s in self.waiting.values()],
            "wishes": [f"{n}\x1f\x1f(null)\x1f(null)" for n in self.waiting],
            "waiting": [str(n) for n in self.waiting],
        }
        for name, lines in texts.items():
            new = self.folder / f"{name}.new"
            new.write_text("\n".join(lines) + "\n")
            new.replace(self.folder / name)


def main():
    program = sys.argv[1]
    policy, num_rounds, num_nodes, num_waiting = (sys.argv[2:] + ["sjf", "30", "1000", "5000"][len(sys.argv) - 2 :])[:4]
    with tempfile.TemporaryDirectory(prefix="pleach-round.") as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        site = Site(folder / "bin", int(num_nodes), int(num_waiting))
        config = folder / "pleach.toml"
        config.write_text(
            f'partition = "main"\nstate_dir = "{folder}/state"\nslurm_bin = "{folder}/bin"\ntick_s = 1.0\n'
            "command_limit_s = 60.0\ndeadline_s = 60.0\n"
        )
        daemon = subprocess.Popen([program, "--config", config, "run", "--policy", policy, "--live"])

        def look():
            fields = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
            status = folder / "state/status.json"
            rounds = json.loads(status.read_text())["num_rounds"] if status.exists() else 0
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), rounds

        try:
            # Until the order is written: two rounds of 500 factors, and some.
            while look()[1] < 5:
                time.sleep(0.2)
            before = after = look()
            log = folder / "state/decisions.jsonl"
            log_before = log.stat().st_size
            while after[1] < before[1] + int(num_rounds):
                site.step()
                time.sleep(1)
                after = look()
            log_bytes = log.stat().st_size - log_before
            memory = [line for line in pathlib.Path(f"/proc/{daemon.pid}/status").read_text().splitlines() if "VmHWM" in line]
        finally:
            daemon.terminate()
            daemon.wait()
        cpu_s, rounds = after[0] - before[0], after[1] - before[1]
        print(f"{policy}: {1000 * cpu_s / max(rounds, 1):.1f} ms of CPU a round, {rounds} rounds, {log_bytes / max(rounds, 1):.0f} bytes of log each; {memory[0]}")


main()
