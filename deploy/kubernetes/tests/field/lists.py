"""Lists of Jobs for the field test: the same seed, the same list.

170 Jobs for 8 nodes of 8 GPUs: 70 arrive in the first 30 s, the others until 180 s. A fifth of them are gangs of 2 to 4 pods
whose size divides a node. Run times are lognormal (median 15 s before scaling, shape 1.1: assumed, after the long tails of
published lists) and lie between 2 and 120 s; all work together is 255 s of the whole cluster.
"""

import random
from dataclasses import dataclass

NUM_NODES, GPUS_PER_NODE = 8, 8
NUM_JOBS, NUM_EARLY, EARLY_S, LATE_S = 170, 70, 30.0, 180.0
SHORTEST_S, LONGEST_S, WHOLE_S = 2.0, 120.0, 255.0
MEDIAN_S, SHAPE = 15.0, 1.1
GANG_SHARE = 0.2
# GPUs of a single pod and how often; published lists have mostly small jobs.
SINGLE = ((1, 2, 4, 8), (0.45, 0.25, 0.2, 0.1))
# Pods and GPUs of each, for gangs: from half a node to four nodes.
GANGS = ((2, 1), (2, 2), (2, 4), (2, 8), (3, 2), (3, 4), (3, 8), (4, 1), (4, 2), (4, 4), (4, 8))


@dataclass
class Job:
    """A Job: when it arrives, s; its pods, their GPUs and how long they run, s."""

    name: str
    at_s: float
    num_pods: int
    gpus: int
    run_s: float

    @property
    def gpu_s(self):
        return self.num_pods * self.gpus * self.run_s

    @property
    def is_gang(self):
        return self.num_pods > 1


def make(seed):
    """The list of a seed, in order of arrival."""
    random_ = random.Random(f"field-{seed}")
    early = [random_.uniform(0, EARLY_S) for _ in range(NUM_EARLY)]
    late = [random_.uniform(EARLY_S, LATE_S) for _ in range(NUM_JOBS - NUM_EARLY)]
    jobs = []
    for number, at_s in enumerate(sorted(early + late)):
        if random_.random() < GANG_SHARE:
            num_pods, gpus = random_.choice(GANGS)
        else:
            num_pods, gpus = 1, random_.choices(*SINGLE)[0]
        run_s = MEDIAN_S * random_.lognormvariate(0, SHAPE)
        jobs.append(Job(f"job-{number:03}", round(at_s, 2), num_pods, gpus, run_s))
    fit(jobs)
    return jobs


def fit(jobs):
    """Stretches run times until all work is that of the whole cluster for so long, within the limits of a run time."""
    target_gpu_s = WHOLE_S * NUM_NODES * GPUS_PER_NODE
    drawn = [job.run_s for job in jobs]
    low, high = 0.01, 100.0
    for _ in range(60):
        factor = (low * high) ** 0.5
        for job, run_s in zip(jobs, drawn):
            job.run_s = round(min(max(run_s * factor, SHORTEST_S), LONGEST_S), 2)
        if sum(job.gpu_s for job in jobs) < target_gpu_s:
            low = factor
        else:
            high = factor
