"""Who watches the Jobs and pods of a cell and notes when what happened, by one clock of this machine."""

import math
import threading
import time
from dataclasses import dataclass, field

from api import MERGE, gpus, has_ended, phase
from plane import Failed

# Beyond this a gang counts as one that ran in parts, s: starts of pods that were decided together lie within it.
TOGETHER_S = 0.5


@dataclass
class PodSeen:
    """A pod: its Job, node and GPUs; when it began to run and when it ended, s of `time.monotonic`; none: not yet."""

    job: str
    gpus: int
    node: str | None = None
    made_s: float | None = None
    bound_s: float | None = None
    began_s: float | None = None
    ended_s: float | None = None
    has_failed: bool = False


@dataclass
class Seen:
    """What a cell has shown so far."""

    posted_s: dict = field(default_factory=dict)
    done_s: dict = field(default_factory=dict)
    pods: dict = field(default_factory=dict)
    failed_jobs: set = field(default_factory=set)
    # Most GPUs that were in use at once on any node.
    gpus_most: int = 0


class Follower(threading.Thread):
    """Lists and then watches one kind of object, again and again."""

    def __init__(self, client, path, take):
        super().__init__(daemon=True)
        self.client, self.path, self.take, self.is_over, self.errors = client, path, take, False, []

    def run(self):
        while not self.is_over:
            try:
                self.follow()
            except Failed as error:
                self.errors.append(str(error))
            time.sleep(0.05)

    def follow(self):
        code, answer = self.client.ask("GET", self.path)
        if code != 200:
            return
        for one in answer["items"]:
            self.take(one, time.monotonic())
        for event in self.client.watch(self.path, answer["metadata"]["resourceVersion"]):
            if self.is_over or event["type"] == "ERROR":
                break
            if event["type"] in ("ADDED", "MODIFIED"):
                self.take(event["object"], time.monotonic())


class Observer:
    """Follows Jobs and pods of a namespace; with a barrier it begins the run time of a gang once all its pods run."""

    def __init__(self, client, namespace, jobs, has_barrier, scale):
        self.client, self.namespace, self.has_barrier, self.scale = client, namespace, has_barrier, scale
        self.jobs = {job.name: job for job in jobs}
        self.seen, self.lock, self.begun = Seen(), threading.Lock(), set()
        self.followers = [Follower(client, f"/apis/batch/v1/namespaces/{namespace}/jobs", self.take_job),
                          Follower(client, f"/api/v1/namespaces/{namespace}/pods", self.take_pod)]

    def start(self):
        for one in self.followers:
            one.start()

    def stop(self):
        for one in self.followers:
            one.is_over = True

    def take_job(self, job, now_s):
        name = job["metadata"]["name"]
        done = {one["type"] for one in job.get("status", {}).get("conditions") or [] if one["status"] == "True"}
        with self.lock:
            if "Complete" in done and name in self.jobs:
                self.seen.done_s.setdefault(name, now_s)
            if "Failed" in done:
                self.seen.failed_jobs.add(name)

    def take_pod(self, pod, now_s):
        name = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")
        if name not in self.jobs:
            return
        with self.lock:
            one = self.seen.pods.setdefault(pod["metadata"]["uid"], PodSeen(name, gpus(pod)))
            one.node = pod["spec"].get("nodeName")
            one.made_s = one.made_s or now_s
            one.bound_s = one.bound_s or (now_s if one.node else None)
            is_new = one.began_s is None and phase(pod) == "Running"
            if is_new:
                one.began_s = now_s
                self.count(one.node)
            if has_ended(pod) and one.ended_s is None:
                one.ended_s, one.has_failed = now_s, phase(pod) == "Failed"
        if is_new and self.has_barrier:
            self.meet(self.jobs[name], pod)

    def count(self, node):
        used = sum(one.gpus for one in self.seen.pods.values()
                   if one.node == node and one.began_s is not None and one.ended_s is None)
        self.seen.gpus_most = max(self.seen.gpus_most, used)

    def meet(self, job, pod):
        """Gives the pods of a gang their run time when the last of them has begun."""
        if not job.is_gang or job.name in self.begun:
            return
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        labels = f"labelSelector=batch.kubernetes.io/job-name%3D{job.name}"
        pods = self.client.must("GET", f"{path}?{labels}")["items"]
        if sum(phase(one) == "Running" for one in pods) < job.num_pods:
            return
        self.begun.add(job.name)
        note = {"metadata": {"annotations": {"test/run": run_time(job, self.scale)}}}
        for one in pods:
            if phase(one) == "Running":
                self.client.must("PATCH", f"{path}/{one['metadata']['name']}", note, MERGE)


def run_time(job, scale):
    """A run time as kwok reads it."""
    return f"{job.run_s / scale:.3f}s"


def quantile(sorted_values, share):
    """The smallest value that so large a share of all does not exceed."""
    return sorted_values[max(0, math.ceil(len(sorted_values) * share) - 1)]


def measures(seen, jobs, end_s, scale, num_gpus):
    """What a cell is worth; times in s of the list (s of the clock times `scale`)."""
    # A Job that has not ended counts as if it ended now: a lower bound.
    done_s = {job.name: seen.done_s.get(job.name, end_s) for job in jobs}
    jct_s = {job.name: (done_s[job.name] - seen.posted_s[job.name]) * scale for job in jobs}
    jcts, gangs = sorted(jct_s.values()), [jct_s[job.name] for job in jobs if job.is_gang]
    makespan_s = (max(done_s.values()) - min(seen.posted_s.values())) * scale
    parts = [split(job, seen, end_s) for job in jobs if job.is_gang]
    parts = [(apart_s * scale, held_gpu_s * scale) for apart_s, held_gpu_s in parts if apart_s > TOGETHER_S]
    return {
        "mean_s": sum(jcts) / len(jcts), "median_s": quantile(jcts, 0.5), "p99_s": quantile(jcts, 0.99),
        "mean_gangs_s": sum(gangs) / len(gangs), "makespan_s": makespan_s,
        "useful": sum(job.gpu_s for job in jobs if job.name in seen.done_s) / (num_gpus * makespan_s),
        "num_left": len(jobs) - len(seen.done_s), "num_failed": len(seen.failed_jobs),
        "num_pods_failed": sum(one.has_failed for one in seen.pods.values()), "gpus_most": seen.gpus_most,
        "num_partial": len(parts), "partial_longest_s": max([0, *(part[0] for part in parts)]),
        "partial_gpu_s": sum(part[1] for part in parts), **delays(seen, jobs),
    }


def delays(seen, jobs):
    """Where time goes beside waiting, s of the clock: from a pod's place to its start, from the last pod's end to the Job's."""
    ended, starts = {}, []
    for one in seen.pods.values():
        if one.ended_s is not None:
            ended[one.job] = max(one.ended_s, ended.get(one.job, 0))
        if one.began_s is not None:
            starts.append(one.began_s - (one.bound_s or one.began_s))
    ends = [seen.done_s[job.name] - ended[job.name] for job in jobs if job.name in seen.done_s and job.name in ended]
    return {"start_delay_s": sum(starts) / max(1, len(starts)), "end_delay_s": sum(ends) / max(1, len(ends))}


def split(job, seen, end_s):
    """How long pods of a gang ran before the last one did, s, and the GPU-s that they held meanwhile."""
    pods = [one for one in seen.pods.values() if one.job == job.name]
    began = sorted(one.began_s for one in pods if one.began_s is not None)
    if not began:
        return 0, 0
    whole_s = began[-1] if len(began) >= job.num_pods else end_s
    held = sum((min(one.ended_s or whole_s, whole_s) - one.began_s) * one.gpus for one in pods if one.began_s is not None)
    return whole_s - began[0], held
