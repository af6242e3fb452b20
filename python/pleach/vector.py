"""N environments that step together over threads."""

from __future__ import annotations

import copy as copies
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from pleach._settings import are_same, checked_seed, kept, to_json
from pleach._spaces import (
    OBSERVATION,
    changed,
    check_reward_fn,
    checked_actions,
    checked_reward,
    open_envs,
    spaces_of,
    views_of,
    with_jobs,
)
from pleach.env import Info, Observation, RewardFunction
from pleach.policies import PolicyLike, as_inner

_WORDS = {AutoresetMode.SAME_STEP: "same-step", AutoresetMode.NEXT_STEP: "next-step", AutoresetMode.DISABLED: "disabled"}


class PleachVectorEnv(VectorEnv[Observation, Any, npt.NDArray[Any]]):
    """N environments of one id, stepped in Rust without the interpreter's lock.

    Spaces as those of :class:`pleach.PleachEnv` with N in front. ``copy=False`` returns observations as read-only views that the next
    step overwrites; rewards, flags and seconds are always fresh. ``num_threads=0`` takes all cores; the numbers do not depend on it.
    ``reward_fn(gained, decision)``, ``by_tenant`` and ``candidate_info`` are those of :class:`pleach.PleachEnv` too: arrays [N], [N, T]
    and [N, C]; the reward is float32 [N]. In a step that only begins an episode nothing is decided. ``columns`` names the view that
    observations show.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        inadmissible: Literal["raise", "first"] = "raise",
        num_threads: int = 0,
        reward_fn: RewardFunction | None = None,
        by_tenant: bool = False,
        candidate_info: bool = False,
        max_episode_steps: int | None = None,
        columns: str | None = None,
        render_mode: None = None,
        **settings: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode = {render_mode!r}: allowed is None; a single environment draws itself")
        mode = AutoresetMode(autoreset_mode)
        if max_episode_steps is not None:
            settings["max_steps"] = max_episode_steps
        if columns is not None:
            settings["columns"] = columns
        # Libraries look for the mode in one of two places.
        self._mode = self.autoreset_mode = mode
        #: Whether observations are copies, which later steps leave as they are.
        self.copies = copy
        check_reward_fn(reward_fn)
        self._reward_fn, self._tells = reward_fn, candidate_info
        self._made_of = (
            (env_id, num_envs),
            {
                "autoreset_mode": mode,
                "copy": copy,
                "inadmissible": inadmissible,
                "num_threads": num_threads,
                "reward_fn": reward_fn,
                "by_tenant": by_tenant,
                "candidate_info": candidate_info,
            },
            settings,
        )
        self._open({})
        self.num_envs = int(num_envs)
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self.single_observation_space, self.single_action_space, self.features = spaces_of(self._envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        # Steps so far, and how many there were when each episode began.
        self._num_steps, self._begun = 0, np.zeros(self.num_envs, np.int64)
        # Sums of what `reward_fn` made; those of our own rewards are kept in Rust.
        self._returns = np.zeros(self.num_envs)
        self._all = np.ones(self.num_envs, bool)
        self._all.flags.writeable = False

    def _open(self, options: Mapping[str, Any]) -> None:
        (env_id, num_envs), settings = self._made_of[0], self._made_of[2]
        arguments: dict[str, Any] = self._made_of[1]
        own, word = changed(settings, options), _WORDS[self._mode]
        envs = open_envs(env_id, own, num_envs, word, arguments["num_threads"], arguments)
        self._envs, self._views = envs, views_of(envs, int(num_envs))
        # A copy of the options, so that a caller who changes his own dict is heard.
        self._present, self._options, self._each = own, kept(options), [own] * int(num_envs)

    def _change(self, options: Sequence[Mapping[str, Any] | None]) -> None:
        """Settings of each environment for itself; where there are none it keeps its own."""
        if len(options) != self.num_envs:
            raise ValueError(f"{len(options)} options: allowed is one dict for all, or {self.num_envs} of them")
        (env_id, _), settings = self._made_of[0], self._made_of[2]
        each = [own if one is None else changed(settings, one) for own, one in zip(self._each, options)]
        with ExitStack() as files:
            texts = [None if one is None else to_json(files.enter_context(with_jobs(own))) for own, one in zip(each, options)]
            self._envs.change(env_id, texts)
        self._each = each
        # Whatever is given next to all of them is other than this.
        self._present, self._options = each[0], {"each": None}

    def __reduce__(self) -> tuple[Any, ...]:
        # For other processes: the copy there begins with ``reset``.
        return _remake, self._made_of

    def __deepcopy__(self, memo: dict[int, Any]) -> PleachVectorEnv:
        """Environments that go on from here; planners that were asked as experts begin anew in them."""
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        envs = self._envs.fork()
        anew = {"_envs": envs, "_views": views_of(envs, self.num_envs)}
        # What is never changed in place is shared.
        anew |= {name: self.__dict__[name] for name in ("_made_of", "_present", "_options", "_reward_fn")}
        anew["_each"] = list(self._each)
        for name, value in self.__dict__.items():
            other.__dict__[name] = anew[name] if name in anew else copies.deepcopy(value, memo)
        return other

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the environments are closed: make others")

    def _observation(self) -> Observation:
        views = self._views
        if not self.copies:
            return dict(views)
        return {"global": views["global"].copy(), "candidates": views["candidates"].copy(), "mask": views["mask"].copy()}

    def _fresh_seeds(self) -> list[int]:
        return [int(seed) for seed in self.np_random.integers(2**63, size=self.num_envs)]

    def _seeds(self, seed: int | Sequence[int | None] | None, begins: npt.NDArray[np.bool_]) -> list[int | None]:
        if seed is None:
            seeds = self._fresh_seeds()
        elif isinstance(seed, (int, np.integer)) or np.ndim(cast(Any, seed)) == 0:
            first = checked_seed(seed)
            super().reset(seed=first)
            seeds = [checked_seed(first + index) for index in range(self.num_envs)]
        else:
            if len(seed) != self.num_envs:
                raise ValueError(f"{len(seed)} seeds: allowed is one number, or {self.num_envs} of them")
            seeds = [new if one is None else checked_seed(one) for one, new in zip(seed, self._fresh_seeds())]
        return [one if begin else None for one, begin in zip(seeds, begins)]

    def _reset_mask(self, options: dict[str, Any] | None) -> npt.NDArray[np.bool_]:
        if options is None or "reset_mask" not in options:
            return self._all
        mask = options["reset_mask"]
        if len(options) > 1:
            raise ValueError("reset_mask beside settings: settings hold for all environments, so all begin; leave out the mask")
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"reset_mask = {mask!r}: allowed is a bool array of shape ({self.num_envs},) with a true value")
        return mask

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | Sequence[dict[str, Any] | None] | None = None,
    ) -> tuple[Observation, Info]:
        """Begins episodes, with seeds seed, seed + 1, ...; ``options={"reset_mask": bool [N]}`` begins only those. Other options are
        settings of all environments, or a list with those of each (None: as before), that hold until a later reset gives others."""
        self._check_open()
        each = None if options is None or isinstance(options, Mapping) else options
        options = options if isinstance(options, dict) or options is None else None
        begins = self._reset_mask(options)
        seeds = self._seeds(seed, begins)
        if each is not None:
            self._change(each)
        if options is not None and "reset_mask" not in options and not are_same(options, self._options):
            self._open(options)
        self._envs.reset(seeds)
        self._returns[begins], self._begun[begins] = 0.0, self._num_steps
        observation = self._observation()
        return observation, self._info(observation, np.zeros(self.num_envs))

    def _info(self, observation: Observation, dt_s: npt.NDArray[np.float64]) -> Info:
        info: Info = {"dt_s": dt_s, "_dt_s": self._all, "action_mask": observation["mask"], "_action_mask": self._all}
        if self._tells:
            info |= {"candidates": self._envs.offered(), "_candidates": self._all}
        return info

    def step(
        self, actions: Any
    ) -> tuple[Observation, npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]:
        """One decision each: observations, reward float32 [N], terminated and truncated bool [N], infos with ``_key`` masks."""
        if self.closed:
            self._check_open()
        reward, terminated, truncated, dt_s, ended = self._envs.step(checked_actions(actions, self.num_envs))
        observation = self._observation()
        info = self._info(observation, dt_s)
        if self._reward_fn is not None:
            reward = checked_reward(self._reward_fn, self._envs, dt_s)
            if self._mode == AutoresetMode.NEXT_STEP:
                # What the function says of a step in which nothing happened is none of the episode that it begins.
                reward = np.where(self._begun > self._num_steps, np.float32(0), reward)
            self._returns += reward
        self._num_steps += 1
        if ended:
            self._add_ends(info, terminated | truncated)
        return observation, reward, terminated, truncated, info

    def _add_ends(self, info: Info, ended: npt.NDArray[np.bool_]) -> None:
        own = self._envs.take_returns()
        figures: dict[str, npt.NDArray[Any]] = {
            "r": own if self._reward_fn is None else np.where(ended, self._returns, 0.0),
            "_r": ended.copy(),
            "l": np.where(ended, self._num_steps - self._begun, 0),
            "_l": ended.copy(),
        }
        # With NEXT_STEP the step that begins an episode is none of it.
        self._returns[ended] = 0.0
        self._begun[ended] = self._num_steps + (self._mode == AutoresetMode.NEXT_STEP)
        for index in np.flatnonzero(ended):
            for key, value in (self._envs.episode(int(index)) or {}).items():
                figures.setdefault(key, np.zeros(self.num_envs))[index] = value
                figures.setdefault(f"_{key}", ended.copy())
        info["metrics"], info["_metrics"] = figures, ended.copy()
        if self._mode == AutoresetMode.SAME_STEP:
            final = np.full(self.num_envs, None, dtype=object)
            for index in np.flatnonzero(ended):
                flat = self._envs.last_observation(int(index))
                final[index] = {name: flat[name].reshape(self._views[name].shape[1:]) for name in OBSERVATION}
            info["final_obs"], info["_final_obs"] = final, ended.copy()
            masks = np.zeros(self._views["mask"].shape, np.int8)
            for index in np.flatnonzero(ended):
                masks[index] = final[index]["mask"]
            info["final_info"], info["_final_info"] = {
                "metrics": figures,
                "_metrics": ended.copy(),
                "dt_s": np.where(ended, info["dt_s"], 0.0),
                "_dt_s": ended.copy(),
                "action_mask": masks,
                "_action_mask": ended.copy(),
            }, ended.copy()

    def fork(self, source: int, targets: Sequence[int]) -> Observation:
        """Puts copies of environment ``source``, in the middle of its episode, into the places of ``targets``, and returns the
        observations. Their episodes have the same jobs and the same fates, so that only actions tell them apart; the episodes that
        follow by autoreset are the same too."""
        self._check_open()
        self._envs.fork_to(int(source), [int(target) for target in targets])
        for target in targets:
            self._returns[target], self._begun[target] = self._returns[source], self._begun[source]
            self._each[target] = self._each[source]
        return self._observation()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The masks as bool [N, C]."""
        return np.asarray(self._views["mask"], bool)

    def random_actions(self) -> npt.NDArray[np.int64]:
        """Random admissible actions, int64 [N], which the seed of the last reset decides; far quicker than ``action_space.sample``."""
        return self._envs.random_actions()

    def gained(self) -> dict[str, npt.NDArray[np.float64]]:
        """What the last step added to the integrals that rewards are made of: float64 [N] for each of ``pleach.INTEGRALS``;
        with ``by_tenant=True`` also float64 [N, T] for each of ``pleach.TENANT_INTEGRALS``, zero beyond an environment's tenants."""
        return self._envs.gained()

    @property
    def tenants(self) -> list[tuple[str, ...]]:
        """Names of the tenants of each environment, in the order of ``pleach.TENANT_INTEGRALS``."""
        return [tuple(self._envs.tenants(index)) for index in range(self.num_envs)]

    def expert_action(self, policy: PolicyLike) -> npt.NDArray[np.int64]:
        """What a policy would do in each environment, int64 [N]; -1 where no candidate does what a planner plans."""
        inner = as_inner(policy)
        found = (self._envs.expert_action(index, inner) for index in range(self.num_envs))
        return np.array([-1 if action is None else action for action in found], np.int64)


def _remake(positional: tuple[Any, ...], arguments: dict[str, Any], settings: dict[str, Any]) -> PleachVectorEnv:
    env_id, num_envs = positional
    return PleachVectorEnv(env_id, num_envs, **arguments, **settings)
