"""Gangs of every shape under lost pods and nodes: all of a gang runs or none of it."""

import random
import time
from collections import Counter

from api import MERGE, TEAM, notes, phase
from operators import SHAPES, Operators, by_place, install
from plane import Failed, expect, wait_for

# Pods and nodes that are lost.
NUM_LOST = 200
# How long a gang has to be whole until its work is done, s.
WORK_S = 2.0
# Pods of a gang that were decided together are bound within it, s, on a machine that is busy with other things.
TOGETHER_S = 6.0
# The Job controller waits twice as long after each pod that is lost, up to ten minutes: of its gangs so many are.
LOST_OF_JOB = 2
# Settings of the controller, s: a gang without a size that may grow, a place that is kept, a pod that is not bound, one that does not begin.
LIMITS = {"settle_s": 5, "release_limit_s": 6, "seat_limit_s": 20, "ready_limit_s": 60}


class Shapes:
    """The step: it submits gangs, loses pods and nodes, and judges."""

    def __init__(self, steps):
        self.steps, self.client, self.random = steps, steps.client, random.Random("shapes")
        self.num_lost, self.num_nodes_lost, self.num_begun = Counter(), 0, Counter()
        self.num_hits = Counter()
        self.finishing, self.whole_s, self.part_s, self.was_hit = set(), {}, {}, set()
        # Longest times in parts of each shape: at its start, after a loss, with a pod that does not begin.
        self.longest = {why: Counter() for why in ("start", "loss", "stuck")}

    @property
    def watcher(self):
        return self.steps.watcher

    def shapes(self):
        steps, plane = self.steps, self.steps.plane
        install(self.client)
        plane.kill("pleach")
        plane.write_settings(**LIMITS)
        steps.start_ours()
        self.operators = Operators(self.watcher)
        self.operators.start()
        try:
            self.lose(limit_s=300)
            # What is left ends; a gang with a pod that never begins gives its GPUs back first.
            wait_for("all gangs end", self.turn, limit_s=150, pause_s=0.1)
        except Failed:
            self.print_left()
            raise
        finally:
            self.operators.is_over = True
        self.judge()
        plane.kill("pleach")
        plane.write_settings()
        steps.start_ours()

    def submit(self, shape, is_stuck=False):
        self.num_begun[shape] += 1
        name = f"{shape}-{self.num_begun[shape]}"
        gang = SHAPES[shape](self.client, name)
        gang.shape, gang.is_stuck = shape, is_stuck
        with self.operators.lock:
            self.operators.gangs.append(gang)

    def print_left(self):
        for gang in self.operators.gangs:
            live, ended = by_place(self.operators.pods().get(gang.name, []))
            pods = [(place, phase(pod), pod["spec"].get("nodeName"), notes(pod)) for place, pod in live.items()]
            if not gang.is_done:
                print(f"   {gang.name} is left: {pods}, {len(ended)} have ended; {gang.state()}", flush=True)

    def lose(self, limit_s):
        end_s, next_s = time.monotonic() + limit_s, time.monotonic() + 5
        self.submit("grove", is_stuck=True)
        while sum(self.num_lost.values()) + self.num_nodes_lost < NUM_LOST and time.monotonic() < end_s:
            now = {gang.shape for gang in self.operators.gangs if not gang.is_done}
            for shape in SHAPES.keys() - now:
                self.submit(shape)
            self.turn()
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + self.random.uniform(0.2, 0.7)
                self.lose_node() if self.random.random() < 0.05 else self.lose_pod()
            time.sleep(0.05)

    def candidates(self):
        """Pods that may be lost, of gangs that still work: held, let go, running."""
        def may_lose(gang):
            is_of_job = gang.kind in ("Job", "JobSet") and gang.shape != "volcano"
            return not (gang.is_done or gang.is_stuck or is_of_job and self.num_hits[gang.name] >= LOST_OF_JOB)
        shapes = {gang.name: gang.shape for gang in self.operators.gangs if may_lose(gang)}
        for name, pods in self.operators.pods().items():
            if name in shapes and name not in self.finishing:
                yield from ((shapes[name], pod) for pod in by_place(pods)[0].values())

    def lose_pod(self):
        found = sorted(self.candidates(), key=lambda one: one[1]["metadata"]["name"])
        if found:
            self.evict(*self.random.choice(found))

    def lose_node(self):
        """A node is not ready, and all its pods are taken off it, as the controller of node lifecycles does after a while."""
        lost = self.random.choice(sorted(self.steps.nodes))
        on_it = [(shape, pod) for shape, pod in self.candidates() if pod["spec"].get("nodeName") == lost]
        self.client.set_ready(lost, False)
        for shape, pod in on_it:
            self.evict(shape, pod)
        self.num_nodes_lost += 1
        began_s = time.monotonic()
        while time.monotonic() < began_s + 2:
            self.turn()
            time.sleep(0.05)
        self.client.set_ready(lost, True)

    def evict(self, shape, pod):
        name = pod["metadata"]["name"]
        code, _ = self.client.ask("POST", f"/api/v1/namespaces/{TEAM}/pods/{name}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
        if code in (200, 201):
            self.num_lost[shape] += 1
            self.num_hits[notes(pod)["test/gang"]] += 1
            self.was_hit.add(notes(pod)["test/gang"])

    def turn(self):
        """Looks at all gangs; whether all are done."""
        self.steps.well()
        now_s, pods = time.monotonic(), self.operators.pods()
        open_gangs = [gang for gang in self.operators.gangs if not gang.is_done]
        for gang in open_gangs:
            live, ended = by_place(pods.get(gang.name, []))
            bound = [pod for pod in live.values() if pod["spec"].get("nodeName")]
            runs = [pod for pod in bound if phase(pod) == "Running"]
            is_whole = len(runs) == gang.size
            if gang.name not in self.finishing:
                self.note(gang, bool(bound) and not is_whole, is_whole, now_s)
            since_s = self.whole_s.setdefault(gang.name, now_s) if is_whole else self.whole_s.pop(gang.name, None)
            if is_whole and now_s - since_s >= WORK_S:
                self.finishing.add(gang.name)
            # Also one that is made anew because it was lost in the very moment in which its gang's work was done.
            for pod in runs if gang.name in self.finishing else ():
                if "test/run" not in notes(pod):
                    self.client.ask("PATCH", f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}",
                                    {"metadata": {"annotations": {"test/run": "0.1s"}}}, MERGE)
        return not open_gangs

    def note(self, gang, is_part, is_whole, now_s):
        """Keeps how long a gang has pods on nodes and not all of them."""
        if not is_part:
            self.part_s.pop(gang.name, None)
            if is_whole or gang.name not in self.was_hit:
                self.was_hit.discard(gang.name)
            return
        took_s = now_s - self.part_s.setdefault(gang.name, now_s)
        why = "stuck" if gang.is_stuck else "loss" if gang.name in self.was_hit else "start"
        self.longest[why][gang.shape] = max(self.longest[why][gang.shape], took_s)

    def judge(self):
        for shape in SHAPES:
            each = ", ".join(f"{why} {self.longest[why][shape]:.1f}" for why in ("start", "loss") if shape in self.longest[why])
            print(f"   {shape}: {self.num_begun[shape]} gangs, {self.num_lost[shape]} pods lost; longest in parts, s: {each}",
                  flush=True)
        parts = {shape: took_s for shape, took_s in self.longest["start"].items() if took_s > TOGETHER_S}
        print(f"   {sum(self.num_lost.values())} pods and {self.num_nodes_lost} nodes were lost; {len(parts)} shapes began in parts; "
              f"a gang with a pod that does not begin held GPUs for {self.longest['stuck']['grove']:.0f} s", flush=True)
        expect(sum(self.num_lost.values()) + self.num_nodes_lost >= NUM_LOST, "too few pods and nodes were lost")
        expect(not parts, f"gangs ran in parts from their start: {parts}")
        expect(self.longest["stuck"]["grove"] < LIMITS["ready_limit_s"] + 30, "a pod that does not begin keeps its gang's GPUs")
        longest_s = LIMITS["seat_limit_s"] + LIMITS["release_limit_s"] + TOGETHER_S
        late = {shape: took_s for shape, took_s in self.longest["loss"].items() if took_s > longest_s}
        expect(not late, f"gangs stay in parts after a loss: {late}")
