"""N environments for Stable-Baselines3 (``pip install stable-baselines3``), stepped in Rust with no ``DummyVecEnv`` between."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor  # type: ignore[import-not-found,unused-ignore]
from stable_baselines3.common.vec_env import VecEnv  # type: ignore[import-not-found,unused-ignore]

from pleach.vector import PleachVectorEnv
from pleach.wrappers import flat, flat_space

Indices = int | Iterable[int] | None


class SB3VecEnv(VecEnv):  # type: ignore[misc,unused-ignore]
    """A :class:`pleach.PleachVectorEnv` under the interface of Stable-Baselines3, masks for MaskablePPO among it.

    It steps in the mode ``SAME_STEP``. ``is_flat=True`` shows one Box, as :func:`pleach.wrappers.flat`, for ``MlpPolicy``; otherwise the
    dict, for ``MultiInputPolicy``. Ends of episodes have what a ``Monitor`` would write.
    """

    def __init__(self, envs: PleachVectorEnv, *, is_flat: bool = False) -> None:
        if envs.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode = {envs.autoreset_mode.value}: allowed is AutoresetMode.SAME_STEP, as Stable-Baselines3 steps")
        if not (is_flat or envs.copies):
            raise ValueError("copy = False: allowed is copy=True, for Stable-Baselines3 looks at an observation after the next step")
        self.envs, self._is_flat, self._begun_s = envs, is_flat, time.time()
        space = envs.single_observation_space
        super().__init__(envs.num_envs, flat_space(space) if is_flat else space, envs.single_action_space)

    def _seen(self, observation: dict[str, npt.NDArray[Any]]) -> Any:
        return flat(observation) if self._is_flat else observation

    def reset(self) -> Any:
        """Begins episodes, with the seeds and the options that were set before."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        options = list(self._options) if any(self._options) else None
        observation, _ = self.envs.reset(seed=seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return self._seen(observation)

    def step_async(self, actions: Any) -> None:
        """Keeps the actions for :meth:`step_wait`."""
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """One decision in each environment."""
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = terminated | truncated
        for index in np.flatnonzero(ended):
            metrics = {key: value[index].item() for key, value in info["metrics"].items() if not key.startswith("_")}
            seconds = round(time.time() - self._begun_s, 6)
            infos[index] = {
                "metrics": metrics,
                "episode": {"r": metrics["r"], "l": metrics["l"], "t": seconds},
                "terminal_observation": self._seen(info["final_obs"][index]),
                "TimeLimit.truncated": bool(truncated[index] and not terminated[index]),
            }
        return self._seen(observation), reward, ended, infos

    def close(self) -> None:
        """Ends the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environments, which is the same for all of them."""
        value = getattr(self.envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refused: the environments are no objects of Python."""
        raise NotImplementedError(f"{attr_name}: settings of environments are options of a reset (set_options)")

    def env_method(self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any) -> list[Any]:
        """What a method of the environments says of each: ``action_masks``."""
        answers = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [answers[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Whether ends of episodes are told as by this wrapper: as by ``Monitor`` they are."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]
