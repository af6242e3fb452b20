"""Bursts: how soon free GPUs are taken, with as many pods as GPUs on an idle cluster, and with many that wait already."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real"))

from api import MERGE
from cell import NAMESPACE, Cell
from plane import Failed, wait_for
from watch import Follower

# Longest time for anything to happen, s, on a machine that is busy with other things.
LIMIT_S = 300
# Requests at once, as several clients make them.
NUM_CLIENTS = 8


class Burst(Cell):
    """`num_pods` pods of one GPU for `num_nodes` nodes; if they wait, the nodes are opened once all of them are there."""

    def __init__(self, *where, num_nodes, num_pods, waits):
        super().__init__(*where, 1, "free", 1.0, LIMIT_S)
        self.num_nodes, self.num_pods, self.waits, self.bound_s = num_nodes, num_pods, waits, {}

    def take(self, pod, now_s):
        if pod["spec"].get("nodeName") and pod["metadata"]["name"].startswith("burst-"):
            self.bound_s.setdefault(pod["metadata"]["name"], now_s)

    def close(self, is_closed):
        def set_one(number):
            self.client.must("PATCH", f"/api/v1/nodes/g{number + 1}", {"spec": {"unschedulable": is_closed}}, MERGE)
        with ThreadPoolExecutor(NUM_CLIENTS) as pool:
            list(pool.map(set_one, range(self.num_nodes)))

    def post(self):
        def post_one(number):
            self.client.add_pod(f"burst-{number:04}", 1, namespace=NAMESPACE, life_s=3600, estimate_s=600)
        with ThreadPoolExecutor(NUM_CLIENTS) as pool:
            list(pool.map(post_one, range(self.num_pods)))

    def run(self):
        self.up()
        follower = Follower(self.client, f"/api/v1/namespaces/{NAMESPACE}/pods", self.take)
        follower.start()
        if self.waits:
            self.close(True)
            self.post()
            if self.system.has_gates:
                wait_for("the controller sees all pods", lambda: self.num_waiting() == self.num_pods, LIMIT_S)
            time.sleep(5)
        if self.bound_s:
            raise Failed("pods were bound to nodes that are closed")
        began_s, load = time.monotonic(), os.getloadavg()[0]
        self.close(False) if self.waits else self.post()
        num_free = min(self.num_pods, self.num_nodes * 8)
        wait_for(f"{num_free} pods are bound", lambda: len(self.bound_s) >= num_free, LIMIT_S, pause_s=0.05)
        follower.is_over = True
        took_s = sorted(self.bound_s.values())
        return {"num_bound": len(took_s), "half_s": took_s[num_free // 2] - began_s, "all_s": took_s[num_free - 1] - began_s,
                "per_s": num_free / (took_s[num_free - 1] - began_s), "load": load, "version": self.plane.version}

    def num_waiting(self):
        return self.status().get("num_waiting", 0)
