"""A large cluster: how soon many Jobs of one pod start on many nodes, what that costs each program, and what a quiet minute costs."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real"))

import lists
from bursts import NUM_CLIENTS
from cell import NAMESPACE, Cell
from plane import wait_for
from watch import Follower

# Longest time until all that fits runs, s, on a machine that is busy with other things.
LIMIT_S = 3600
# Before the quiet time begins, s: events of the last starts are written.
SETTLE_S = 20
# Longer than the cell, s.
RUN_S = 86_400
GPUS = 2


class Large(Cell):
    """`num_jobs` Jobs of one pod of two GPUs for `num_nodes` nodes of eight; those that do not fit wait."""

    def __init__(self, *where, num_nodes, num_jobs, quiet_s):
        super().__init__(*where, 1, "free", 1.0, LIMIT_S)
        self.num_nodes, self.num_jobs, self.quiet_s, self.bound_s = num_nodes, num_jobs, quiet_s, {}

    def take(self, pod, now_s):
        if pod["spec"].get("nodeName") and pod["metadata"]["name"].startswith("large-"):
            self.bound_s.setdefault(pod["metadata"]["name"], now_s)

    def post(self):
        def post_one(number):
            job = lists.Job(f"large-{number:05}", 0, 1, GPUS, RUN_S)
            self.client.must("POST", self.path(), self.body(job))
        with ThreadPoolExecutor(NUM_CLIENTS) as pool:
            list(pool.map(post_one, range(self.num_jobs)))

    def lists_of_ours(self):
        """How often our program has listed objects so far; asking for a kind that is not installed (404) is no list."""
        lines = (json.loads(line) for line in self.plane.log_lines("audit") if '"verb":"list"' in line)
        return sum(line["user"]["username"] == "system:serviceaccount:pleach:pleach"
                   and line.get("responseStatus", {}).get("code") != 404 for line in lines)

    def run(self):
        self.up()
        follower = Follower(self.client, f"/api/v1/namespaces/{NAMESPACE}/pods", self.take)
        follower.start()
        num_free = min(self.num_jobs, self.num_nodes * lists.GPUS_PER_NODE // GPUS)
        before_cpu_s, before_calls, before_lists = self.plane.cpu_s(), self.plane.calls(), self.lists_of_ours()
        began_s, load = time.monotonic(), os.getloadavg()[0]
        self.post()
        posted_s = time.monotonic()
        wait_for(f"{num_free} pods are bound", lambda: len(self.bound_s) >= num_free, LIMIT_S, pause_s=0.5)
        all_s = sorted(self.bound_s.values())[num_free - 1] - began_s
        after_cpu_s, after_calls = self.plane.cpu_s(), self.plane.calls()
        time.sleep(SETTLE_S)
        rest_cpu_s, rest_rounds, rest_s = self.plane.cpu_s(), self.num_rounds(), time.monotonic()
        time.sleep(self.quiet_s)
        quiet_s, num_rounds = time.monotonic() - rest_s, self.num_rounds() - rest_rounds
        quiet_cpu_s = {name: value - rest_cpu_s.get(name, 0) for name, value in self.plane.cpu_s().items()}
        follower.is_over = True
        found = {
            "all_s": all_s, "posted_s": posted_s - began_s, "per_s": num_free / all_s, "load": load,
            "cpu_s": {name: value - before_cpu_s.get(name, 0) for name, value in after_cpu_s.items()},
            "calls": {name: num - before_calls[name] for name, num in after_calls.items()},
            "num_lists": self.lists_of_ours() - before_lists, "version": self.plane.version,
            "quiet_cores": {name: value / quiet_s for name, value in quiet_cpu_s.items()},
        }
        if num_rounds:
            found["quiet_round_ms"] = 1000 * quiet_cpu_s.get("pleach", 0) / num_rounds
        return found
