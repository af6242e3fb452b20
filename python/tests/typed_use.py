"""What a type checker must accept, and know the types of: `mypy --strict typed_use.py`. No test of pytest's."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import pleach

names: list[str] = pleach.policies.names()
policy: pleach.Policy = pleach.load("sjf")
assert_type(policy.kind, str)
jobs: pleach.Workload = pleach.workload("philly-like", num_jobs=10)
assert_type(len(jobs), int)
found: pleach.Simulation = pleach.simulate(jobs, policy, preemption=True)
assert_type(found.metrics, dict[str, float])


def mine(observation: pleach.policies.Observation) -> npt.NDArray[np.float32]:
    scores: npt.NDArray[np.float32] = observation["mask"].astype(np.float32)
    return scores


comparison: pleach.Comparison = pleach.evaluate({"mine": mine, "sjf": "sjf"}, jobs)
assert_type(comparison.table, dict[str, list[Any]])
env = pleach.PleachEnv("Pleach/Philly-v0", num_jobs=10)
observation, info = env.reset(seed=1)
assert_type(observation, dict[str, npt.NDArray[Any]])
observation, reward, terminated, truncated, info = env.step(env.random_action())
assert_type(reward, float)
assert_type(terminated, bool)
vector = pleach.PleachVectorEnv("Pleach/Philly-v0", 4, copy=False)
rows, infos = vector.reset(seed=[1, 2, 3, 4])
rows, rewards, _, _, infos = vector.step(vector.random_actions())
assert_type(rewards, npt.NDArray[np.float32])
flat: gymnasium.Env[Any, Any] = pleach.wrappers.FlatObservation(env)
made: gymnasium.Env[Any, Any] = gymnasium.make("Pleach/GavelMulti-v1", num_jobs=10)
assert_type(policy.score(made), npt.NDArray[np.float32])
action: int = policy.act(made)
many = gymnasium.make_vec("Pleach/GavelMulti-v1", num_envs=2, vectorization_mode="vector_entry_point")
actions: npt.NDArray[np.int64] = policy.act(many)
by_environment: pleach.Comparison = pleach.evaluate([mine], made, seeds=1)
tree: pleach.Distilled = pleach.distill(mine, made, leaves=[2])
assert_type(pleach.__version__, str)


@pleach.by_name
def shortest(seen: pleach.Named) -> Any:
    return -seen.candidates["remaining_s"]


assert_type(shortest(observation), npt.NDArray[np.float32])
by_names: pleach.Comparison = pleach.evaluate({"shortest": shortest}, made, seeds=1)
each: tuple[dict[str, npt.NDArray[Any]], dict[str, Any]] = vector.reset(options=[{"load": 1.0}, None, None, {"load": 2.0}])
answer: pleach.starts.Answer = pleach.when(jobs, {"gpus": 4, "time_s": 3600.0}, [{"gpus": 2}], policy="easy")
assert_type(answer["forecast"]["median_s"], float)
trained: pleach.Trained = pleach.train(made, num_updates=0, settings={"num_jobs": 5})
assert_type(trained.policy, pleach.Policy)
