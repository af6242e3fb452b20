"""Observations and steps in other shapes: one flat Box, admissible rows alone, the names of RLlib, one decision per instant."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict

Observation = dict[str, npt.NDArray[Any]]


def flat(observation: Observation) -> npt.NDArray[np.float32]:
    """``global``, ``candidates`` and ``mask`` in one float32 [G + C x F + C], or [N, ...] of N."""
    mask = observation["mask"].astype(np.float32)
    lead = mask.shape[:-1]
    return np.concatenate([observation["global"], observation["candidates"].reshape(*lead, -1), mask], axis=-1)


def ragged(observation: Observation) -> Observation:
    """Admissible rows alone, of one observation or of N.

    ``rows`` float32 [M, F]: the admissible candidates of all environments, one after the other. ``actions`` int64 [M]: their indices.
    ``offsets`` int64 [N + 1]: environment i has rows ``offsets[i]`` to ``offsets[i + 1]``. ``global`` float32 [N, G].
    """
    mask = np.atleast_2d(observation["mask"]).astype(bool)
    candidates = observation["candidates"]
    candidates = candidates.reshape(len(mask), mask.shape[1], candidates.shape[-1])
    offsets = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask.sum(axis=1), out=offsets[1:])
    return {
        "global": np.atleast_2d(observation["global"]),
        "rows": candidates[mask],
        "actions": np.nonzero(mask)[1],
        "offsets": offsets,
    }


class FlatObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment whose observation is one Box, for libraries that take no dict; the mask is its last C numbers."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = flat_space(env.observation_space)

    def observation(self, observation: Observation) -> npt.NDArray[np.float32]:
        """As :func:`flat`."""
        return flat(observation)


class FlatVectorObservation(gymnasium.vector.VectorObservationWrapper):
    """The same for N environments."""

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.single_observation_space = flat_space(env.single_observation_space)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: Observation) -> npt.NDArray[np.float32]:
        """As :func:`flat`."""
        return flat(observations)


class RaggedObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment that shows admissible rows alone. Their number changes, so it declares no space of fixed shape."""

    def observation(self, observation: Observation) -> Observation:
        """As :func:`ragged`, of one environment: ``global`` float32 [G]."""
        rows = ragged(observation)
        return {"global": rows["global"][0], "rows": rows["rows"], "actions": rows["actions"]}


class ActionMaskObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The two keys that RLlib's masked modules look for: ``action_mask`` float32 [C] and ``observations``, one flat Box."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = flat_space(env.observation_space)
        num_candidates = env.observation_space["mask"].shape[0]  # type: ignore[index]
        self.observation_space = Dict(
            {
                "action_mask": Box(0.0, 1.0, (num_candidates,), np.float32),
                "observations": Box(space.low[:-num_candidates], space.high[:-num_candidates], dtype=np.float32),
            }
        )

    def observation(self, observation: Observation) -> Observation:
        """The observation under other names."""
        mask = observation["mask"].astype(np.float32)
        return {"action_mask": mask, "observations": flat(observation)[: -len(mask)]}


class OneDecisionPerInstant(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One decision, then *hold* until time has passed: a frame-skip to the end of each pass.

    Rewards and ``dt_s`` are sums. Where holding is not admissible, because the cluster would stop, the next decision comes at once.
    """

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One decision and the holds after it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        total, seconds = float(reward), info["dt_s"]
        while not (terminated or truncated) and seconds == 0.0 and info["action_mask"][0]:
            observation, reward, terminated, truncated, info = self.env.step(0)
            total, seconds = total + float(reward), seconds + info["dt_s"]
        return observation, total, terminated, truncated, {**info, "dt_s": seconds}


def flat_space(space: Any) -> Box:
    """The space of :func:`flat`, of that of an observation."""
    num_candidates = space["mask"].shape[0]
    low = [space["global"].low, space["candidates"].low.ravel(), np.zeros(num_candidates, np.float32)]
    high = [space["global"].high, space["candidates"].high.ravel(), np.ones(num_candidates, np.float32)]
    return Box(np.concatenate(low), np.concatenate(high), dtype=np.float32)
