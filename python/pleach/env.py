"""One environment."""

from __future__ import annotations

import copy as copies
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from pleach._episodes import Episodes
from pleach._settings import are_same, checked_seed, kept
from pleach._spaces import (
    OBSERVATION,
    changed,
    check_reward_fn,
    checked_action,
    checked_reward,
    open_envs,
    spaces_of,
    views_of,
)
from pleach.policies import PolicyLike, as_inner

Observation = dict[str, npt.NDArray[Any]]
Info = dict[str, Any]
#: Makes rewards ``[N]`` of what a step has gained and of what was decided, both arrays ``[N]`` by name.
RewardFunction = Callable[[dict[str, npt.NDArray[np.float64]], dict[str, npt.NDArray[Any]]], Any]


class PleachEnv(Episodes, gymnasium.Env[Observation, Any]):
    """A GPU cluster with a queue; a step is one scheduling decision.

    Observation: ``global`` float32 [G], ``candidates`` float32 [C, F] (rows beyond the present candidates are zero), ``mask`` int8 [C].
    Action: the index of a candidate whose mask is 1; 0 is *hold*. ``inadmissible="first"`` takes the first admissible candidate
    instead of one that is masked. ``settings`` are keys of the environment's settings, merged at any depth, ``num_jobs``, ``load``, and
    ``jobs`` (a path, a table or a :class:`pleach.Workload`) with ``cluster``.

    ``reward_fn(gained, decision)`` makes the reward. ``gained`` has what the step has gained, arrays [1] by the names of
    ``pleach.INTEGRALS`` and ``dt_s``; ``by_tenant=True`` adds those of ``pleach.TENANT_INTEGRALS``, arrays [1, T]. ``decision`` has what
    was decided, int64 [1], -1 where there is none: ``kind`` (a place in ``pleach.CANDIDATE_KINDS``), ``job`` (its row in the list),
    ``gpu_type``, ``node`` (the first) and ``num_gpus``; and ``committed_s``, float64 [1]: run time beyond the best possible.
    ``candidate_info=True`` adds the same five of each candidate to ``info``, int64 [C] under ``"candidates"``.
    ``columns`` names the view that observations show, ``"decision-1"`` unless the id says otherwise; spaces and ``features`` follow.
    ``copy=False`` returns read-only views that the next step overwrites.
    """

    #: A window needs pygame.
    metadata = {"render_modes": ["ansi", "rgb_array", *(["human"] if find_spec("pygame") else [])], "render_fps": 20}

    def __init__(
        self,
        env_id: str,
        *,
        inadmissible: Literal["raise", "first"] = "raise",
        render_mode: Literal["ansi", "rgb_array", "human"] | None = None,
        max_steps: int | None = None,
        columns: str | None = None,
        reward_fn: RewardFunction | None = None,
        by_tenant: bool = False,
        candidate_info: bool = False,
        copy: bool = True,
        **settings: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            if render_mode == "human":
                raise DependencyNotInstalled("render_mode='human' shows a window: pip install pygame")
            raise ValueError(f"render_mode = {render_mode!r}: allowed is None, 'ansi', 'rgb_array', 'human'")
        check_reward_fn(reward_fn)
        self.render_mode, self._reward_fn, self._copy, self._tells = render_mode, reward_fn, copy, candidate_info
        self._window: Any = None
        if max_steps is not None:
            settings["max_steps"] = max_steps
        if columns is not None:
            settings["columns"] = columns
        arguments: dict[str, Any] = {
            "inadmissible": inadmissible,
            "render_mode": render_mode,
            "reward_fn": reward_fn,
            "by_tenant": by_tenant,
            "candidate_info": candidate_info,
            "copy": copy,
        }
        self._made_of = (env_id, arguments, settings)
        self._closed = False
        self._open({})

    def _open(self, options: Mapping[str, Any]) -> None:
        env_id, arguments, settings = self._made_of
        own = changed(settings, options)
        envs = open_envs(env_id, own, 1, "disabled", 1, arguments)
        self.observation_space, self.action_space, self.features = spaces_of(envs)
        if self.render_mode in ("rgb_array", "human"):
            envs.record()
        self._envs, self._views = envs, views_of(envs, 1)
        self._present = own
        # A copy, so that a caller who changes his own dict is heard.
        self._options = kept(options)
        self._rows = {name: self._views[name][0] for name in OBSERVATION}
        self._forget()

    def __deepcopy__(self, memo: dict[int, Any]) -> PleachEnv:
        """An environment that goes on from here; a planner that was asked as an expert begins anew in it."""
        other = self.__class__.__new__(self.__class__)
        memo[id(self)] = other
        # What is never changed in place is shared, and a window is not shown twice.
        anew = {name: self.__dict__[name] for name in ("_made_of", "_present", "_options", "_reward_fn")}
        envs = self._envs.fork()
        views = views_of(envs, 1)
        anew |= {"_window": None, "_envs": envs, "_views": views, "_rows": {name: views[name][0] for name in OBSERVATION}}
        for name, value in self.__dict__.items():
            other.__dict__[name] = anew[name] if name in anew else copies.deepcopy(value, memo)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("_options", "_seed", "_taken", "_return", "_length", "_closed", "_np_random", "_np_random_seed")
        return _remake, self._made_of, {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["_options"]:
            self._open(state["_options"])
        if state["_seed"] is not None:
            self._play_again(state["_seed"], state["_taken"])
        self.__dict__.update(state)

    def _play_again(self, seed: int, actions: Sequence[int | None]) -> None:
        self._envs.reset([seed])
        for action in actions:
            self._envs.random_action() if action is None else self._envs.step_one(action)

    def _present_step(self) -> tuple[Observation, Info]:
        observation = self._observation()
        return observation, self._info(observation, 0.0)

    def _info(self, observation: Observation, dt_s: float) -> Info:
        info: Info = {"dt_s": dt_s, "action_mask": observation["mask"]}
        if self._tells:
            info["candidates"] = {name: column[0] for name, column in self._envs.offered().items()}
        return info

    def _observation(self) -> Observation:
        if not self._copy:
            return dict(self._rows)
        rows = self._rows
        return {"global": rows["global"].copy(), "candidates": rows["candidates"].copy(), "mask": rows["mask"].copy()}

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the environment is closed: make another one")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begins an episode. ``options`` are settings that hold until a later reset gives others."""
        self._check_open()
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        if options is not None and not are_same(options, self._options):
            self._open(options)
        seed = int(self.np_random.integers(2**63)) if seed is None else seed
        self._envs.reset([seed])
        self._forget()
        self._seed = seed
        if self.render_mode == "human":
            self.render()
        return self._present_step()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """One decision. ``info`` has ``dt_s`` (simulated s), ``action_mask``, and, where the episode ends, ``metrics``: its figures,
        and ``r`` and ``l``, return and steps. ``info["episode"]`` is left to ``RecordEpisodeStatistics``."""
        if self._closed:
            self._check_open()
        action = action if type(action) is int else checked_action(action)
        envs = self._envs
        try:
            reward, terminated, truncated, dt_s = envs.step_one(action)
        except OverflowError:
            raise ValueError(f"action = {action}: allowed is 0 to {len(self._rows['mask']) - 1}") from None
        self._taken.append(action)
        observation = self._observation()
        info = self._info(observation, dt_s)
        if self._reward_fn is not None:
            reward = float(checked_reward(self._reward_fn, envs, np.array([dt_s]))[0])
        self._return += reward
        self._length += 1
        if terminated or truncated:
            info["metrics"] = {**(envs.episode(0) or {}), "r": self._return, "l": self._length}
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The mask as bool [C], under the name that MaskablePPO asks for."""
        return np.asarray(self._rows["mask"], bool)

    def random_action(self) -> int:
        """A random admissible action, which the seed of the last reset decides."""
        self._taken.append(None)
        return self._envs.random_action()

    def gained(self) -> dict[str, Any]:
        """What the last step added to the integrals that rewards are made of: a float for each of ``pleach.INTEGRALS``; with
        ``by_tenant=True`` also float64 [T] for each of ``pleach.TENANT_INTEGRALS``."""
        return {name: float(value[0]) if value.ndim == 1 else value[0] for name, value in self._envs.gained().items()}

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants of the present episode, in the order of ``pleach.TENANT_INTEGRALS``."""
        return tuple(self._envs.tenants(0))

    def expert_action(self, policy: PolicyLike) -> int | None:
        """What a heuristic, a planner or any other policy would do now; None where no candidate does what a planner plans."""
        return self._envs.expert_action(0, as_inner(policy))

    def render(self) -> Any:
        """One line with ``render_mode="ansi"``; with ``"rgb_array"`` the GPUs over time, coloured by job, above the queue."""
        if self.render_mode == "ansi":
            return self._envs.text(0)
        if self.render_mode is None:
            gymnasium.logger.warn("render without a render_mode: give one to gymnasium.make")
            return None
        picture = self._envs.picture()
        if self.render_mode == "rgb_array":
            return picture
        import pygame  # type: ignore[import-not-found,unused-ignore]

        if self._window is None:
            pygame.display.init()
            self._window = pygame.display.set_mode((picture.shape[1], picture.shape[0]))
        self._window.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        return None

    def close(self) -> None:
        """Ends the environment. Arrays that were handed out stay good."""
        if self._window is not None:
            import pygame

            pygame.display.quit()
            self._window = None
        self._closed = True


def _remake(env_id: str, arguments: dict[str, Any], settings: dict[str, Any]) -> PleachEnv:
    return PleachEnv(env_id, **arguments, **settings)
