"""The same id, seeds and actions give the same bytes as a recorded run in Rust (env/tests/recorded_episodes.rs)."""

import hashlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import pleach  # noqa: F401

LINES = (Path(__file__).parent / "recorded_episodes.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_python_sees_the_bytes_that_were_recorded(line, copy, num_threads):
    env_id, num_jobs, num_steps, digest, sum_s = line.split()
    envs = gymnasium.make_vec(
        env_id,
        num_envs=4,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        num_jobs=int(num_jobs),
        copy=copy,
        num_threads=num_threads,
    )
    found, total = hashlib.sha256(), 0.0

    def add(observation, reward, terminated, truncated, dt_s):
        for array in (observation["candidates"], observation["global"], reward, observation["mask"], terminated, truncated, dt_s):
            found.update(np.ascontiguousarray(array).tobytes())

    observation, info = envs.reset(seed=[7, 8, 9, 10])
    nothing = np.zeros(4, bool)
    add(observation, np.zeros(4, np.float32), nothing, nothing, info["dt_s"])
    for _ in range(int(num_steps)):
        actions = np.array([np.flatnonzero(mask)[-1] for mask in observation["mask"]])
        observation, reward, terminated, truncated, info = envs.step(actions)
        add(observation, reward, terminated, truncated, info["dt_s"])
        if "metrics" in info:
            step = 0.0
            for index in np.flatnonzero(info["_metrics"]):
                step += info["metrics"]["avg_jct_s"][index]
            total += step
    assert found.hexdigest() == digest and total == float(sum_s)
