"""Policies: ours by name or file, and functions of Python."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Callable, Mapping, Union

import gymnasium
import numpy as np
import numpy.typing as npt

from pleach import _pleach
from pleach._settings import checked_whole, to_json

Observation = Mapping[str, npt.NDArray[Any]]
#: An environment of this package, one or N, also in wrappers of Gymnasium's.
Environment = Union["gymnasium.Env[Any, Any]", "gymnasium.vector.VectorEnv[Any, Any, Any]"]
#: Scores ``[C]`` of an observation's candidates, of which the largest admissible one wins, or the index of one.
PolicyFunction = Callable[[Observation], Any]
PolicyLike = Union["Policy", str, "os.PathLike[str]", PolicyFunction]
#: What marks a function of N decisions.
_MARK = "_pleach_takes_many"


def names() -> list[str]:
    """Names of heuristics and planners, all of which can be compared and asked as experts."""
    heuristics, planners = _pleach.policy_names()
    return [*heuristics, *planners]


def batched(function: PolicyFunction) -> PolicyFunction:
    """Marks a function that takes the observations of N decisions at once (``global`` [N, G], ``candidates`` [N, C, F], ``mask``
    [N, C]) and returns scores [N, C] or indices [N].

    :func:`pleach.evaluate` then plays up to 64 lists side by side and asks once for all of them; elsewhere N is 1. Who is asked together
    depends on the lists alone, so results are the same at any number of threads. They are those of the same function of one decision
    where its rounding does not depend on N.
    """

    def many(observation: Observation) -> Any:
        return function(observation)

    many.__name__ = str(getattr(function, "__name__", type(function).__name__))
    many.__doc__ = function.__doc__
    setattr(many, _MARK, True)
    return many


class Policy:
    """A policy that was loaded, or a function of Python that was wrapped. Made by :func:`pleach.load`."""

    def __init__(self, inner: _pleach.Policy, place: str | None = None) -> None:
        self._inner, self._place = inner, place

    @classmethod
    def of(
        cls,
        function: PolicyFunction,
        name: str | None = None,
        candidates: Mapping[str, Any] | Policy | None = None,
        tie_key: str | None = None,
        columns: str = "decision-1",
    ) -> Policy:
        """A function ``observation -> scores [C] or index`` as a policy, or one of N decisions (:func:`pleach.batched`).

        Without ``candidates`` it chooses among those of the environment it plays in. Others are given as the settings of the same name
        (``heads``, ``fitting``, ``templates``, ``reserve``, ``preempt``, ``share``, ``sizes``, ``cores``, ``wait_for_type``, and
        ``actions``, a list of others by name), or as a policy that chooses among the same. ``tie_key`` orders candidates of equal score: ``index`` (where ``candidates`` is no policy, which has its own),
        ``arrival``, ``shortest-estimate``, ``smallest-gpu-time``. ``columns`` names the view that its observations show. The function
        is called from other threads, one at a time.
        """
        own = str(getattr(function, "__name__", type(function).__name__))
        like = candidates._inner if isinstance(candidates, Policy) else None
        settings = None if candidates is None or isinstance(candidates, Policy) else to_json(candidates)
        takes_many = bool(getattr(function, _MARK, False))
        return cls(_pleach.Policy.of_callable(name or own, function, takes_many, settings, tie_key, like, columns))

    @property
    def name(self) -> str:
        """Name in tables."""
        return self._inner.name

    @property
    def kind(self) -> str:
        """``heuristic``, ``planner``, ``network``, ``tree``, ``formula`` or ``callable``."""
        return self._inner.kind

    @property
    def text(self) -> str | None:
        """A tree in words; None for other kinds."""
        return self._inner.text

    def named(self, name: str) -> Policy:
        """The same policy under another name."""
        return Policy(self._inner.named(name), self._place)

    def score(self, seen: Observation | Environment) -> npt.NDArray[np.float32]:
        """Scores of the candidates, float32 [C]; those that are masked are minus infinity.

        Of an observation a tree can be asked, a network that corrects no heuristic, and a function; of an environment every policy but
        planners. With N environments, or an observation of N, float32 [N, C].
        """
        envs = _envs_of(seen)
        if envs is not None:
            rows = [envs._envs.scores(index, self._inner) for index in range(_num_envs(envs))]
            return np.stack(rows) if hasattr(envs, "num_envs") else rows[0]
        observation = _checked_observation(seen)
        if observation["mask"].ndim == 2:
            rows = [self._score_row({key: value[index] for key, value in observation.items()}) for index in range(len(observation["mask"]))]
            return np.stack(rows)
        return self._score_row(observation)

    def _score_row(self, observation: Observation) -> npt.NDArray[np.float32]:
        mask = np.ascontiguousarray(observation["mask"]).astype(bool)
        return self._inner.scores(
            np.ascontiguousarray(observation["global"]), np.ascontiguousarray(observation["candidates"]), mask
        )

    def act(self, seen: Observation | Environment) -> Any:
        """The candidate that is chosen: an int, or int64 [N]. Of an environment the policy's own order breaks ties; of an observation
        the lowest index, for the rest of the order is not in it."""
        envs = _envs_of(seen)
        if envs is not None:
            return envs.expert_action(self)
        scores = self.score(seen)
        return int(scores.argmax()) if scores.ndim == 1 else scores.argmax(axis=1)

    def explain(self, env: Environment, action: int | None = None, index: int = 0) -> str:
        """Why a tree gives a candidate its score, in words: what it chooses itself, or ``action``. ``index`` is the environment of N."""
        envs = _envs_of(env)
        if envs is None:
            raise ValueError("explain: allowed is an environment, for an observation does not say what its candidates do")
        index = checked_whole("index", index, 0, _num_envs(envs) - 1)
        if action is not None:
            action = checked_whole("action", action, 0, envs._envs.sizes()[1] - 1)
        return str(envs._envs.explain(index, self._inner, action))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a tree's file."""
        text = self._inner.json
        if text is None:
            raise ValueError(f"{self.name} is a {self.kind}: allowed is a tree")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._place is None:
            raise TypeError(f"policy {self.name} was made of a function: pickle the function")
        return _reload, (self._place, self.name)

    def __repr__(self) -> str:
        return f"<pleach.Policy {self.name} ({self.kind})>"


def load(place: str | os.PathLike[str]) -> Policy:
    """A policy by the name of a heuristic or a planner, or by the path of a network, a tree or a run's folder."""
    place = os.fspath(place)
    return Policy(_pleach.Policy.load(place), place)


def _reload(place: str, name: str) -> Policy:
    return load(place).named(name)


@lru_cache(maxsize=64)
def _by_name(name: str) -> Policy:
    return load(name)


def as_inner(policy: PolicyLike, name: str | None = None) -> _pleach.Policy:
    """The policy in Rust of anything that stands for one."""
    if isinstance(policy, Policy):
        inner = policy._inner
    elif isinstance(policy, str):
        inner = (_by_name(policy) if policy in _known() else load(policy))._inner
    elif isinstance(policy, os.PathLike):
        inner = load(policy)._inner
    elif callable(policy):
        return Policy.of(policy, name)._inner
    else:
        raise ValueError(f"a policy is a {type(policy).__name__}: allowed are names, paths, policies and functions")
    return inner if name is None else inner.named(name)


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return frozenset(names())


def _envs_of(seen: Any) -> Any:
    """The environment itself below its wrappers; None for an observation."""
    if isinstance(seen, Mapping):
        return None
    envs = getattr(seen, "unwrapped", seen)
    if not hasattr(envs, "_envs"):
        raise ValueError(f"a {type(seen).__name__}: allowed are an observation (a dict) and environments of this package")
    return envs


def _num_envs(envs: Any) -> int:
    return int(getattr(envs, "num_envs", 1))


def _checked_observation(seen: Any) -> Observation:
    for key, dtype in (("global", np.float32), ("candidates", np.float32), ("mask", None)):
        if key not in seen:
            raise ValueError(f"the observation has {sorted(seen)}: allowed are global, candidates and mask")
        array = np.asarray(seen[key])
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"{key} has dtype {array.dtype}: allowed is float32, as in observation_space")
    return {key: np.asarray(seen[key]) for key in ("global", "candidates", "mask")}
