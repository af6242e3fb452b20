"""Learn, prune and compare schedulers for shared GPU clusters. Importing this registers the environments with Gymnasium."""

import gymnasium

from pleach import policies, wrappers
from pleach._pleach import __version__, candidate_kinds, deal_names, env_ids, serving_names, workload_names
from pleach.columns import Named, by_name, named
from pleach.comparison import Comparison, Distilled, distill, evaluate
from pleach.deals import DealEnv
from pleach.env import PleachEnv
from pleach.networks import export_onnx
from pleach.policies import Policy, batched, load
from pleach.serving import ServingEnv
from pleach.starts import when
from pleach.training import Trained, train
from pleach.vector import PleachVectorEnv
from pleach.workloads import Simulation, Workload, read, simulate, workload

__all__ = [
    "CANDIDATE_KINDS",
    "Comparison",
    "DealEnv",
    "Distilled",
    "INTEGRALS",
    "Named",
    "PleachEnv",
    "PleachVectorEnv",
    "Policy",
    "ServingEnv",
    "Simulation",
    "TENANT_INTEGRALS",
    "Trained",
    "Workload",
    "__version__",
    "batched",
    "by_name",
    "deal_ids",
    "distill",
    "env_ids",
    "evaluate",
    "export_onnx",
    "load",
    "named",
    "policies",
    "read",
    "serving_ids",
    "simulate",
    "train",
    "when",
    "workload",
    "workload_names",
    "wrappers",
]

#: Names of what a candidate does, in the order of the numbers under ``"kind"``.
CANDIDATE_KINDS: tuple[str, ...] = tuple(candidate_kinds())

#: What a step adds to the integrals that rewards are made of: jobs in the system x s, 1 / isolated run time of those x s, held
#: GPUs x s, waiting jobs x s.
INTEGRALS: tuple[str, ...] = ("jobs_s", "slowdown", "held_gpu_s", "waiting_s")

#: The same of each tenant, [T], where an environment is made with ``by_tenant=True``: its waiting jobs x s, the GPUs it holds x s.
TENANT_INTEGRALS: tuple[str, ...] = ("tenant_waiting_s", "tenant_held_gpu_s")


def serving_ids() -> list[str]:
    """Ids of the environments in which requests are served."""
    return [one for one, _ in serving_names()]


def deal_ids() -> list[str]:
    """Ids of the environments in which GPUs are dealt."""
    return [one for one, _ in deal_names()]


for _id in deal_ids():
    if _id not in gymnasium.registry:
        gymnasium.register(_id, entry_point="pleach.deals:DealEnv", kwargs={"env_id": _id})
for _id in serving_ids():
    if _id not in gymnasium.registry:
        gymnasium.register(_id, entry_point="pleach.serving:ServingEnv", kwargs={"env_id": _id})
for _id in env_ids():
    if _id not in gymnasium.registry:
        gymnasium.register(
            _id,
            entry_point="pleach.env:PleachEnv",
            vector_entry_point="pleach.vector:PleachVectorEnv",
            kwargs={"env_id": _id},
        )
