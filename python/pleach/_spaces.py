"""What one environment and N of them have in common: spaces from the feature schema, settings, views of the buffers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from inspect import signature
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.wrappers import TimeLimit

from pleach._pleach import Envs, Serving, setting_names
from pleach._settings import are_same, checked_num_threads, checked_whole, merged, nearest, to_json
from pleach.workloads import as_workload

# Encoded values may differ from the encoded ends of their range in the last bits.
SLACK = np.float32(1e-4)
OBSERVATION = ("global", "candidates", "mask")


def open_envs(
    env_id: str,
    settings: Mapping[str, Any],
    num_envs: int,
    mode: str,
    num_threads: int,
    arguments: Mapping[str, Any],
) -> Envs:
    """The environments in Rust; ``columns`` among the settings names the view that they show."""
    unknown = [name for name in settings if name not in _known()]
    if unknown:
        # In the words of Python, which libraries look for when they try keywords.
        allowed = ", ".join(_known()) + nearest(unknown[0], _known())
        raise TypeError(f"an environment got an unexpected keyword argument '{unknown[0]}': allowed are the settings {allowed}")
    num_envs, num_threads = checked_whole("num_envs", num_envs, 1, 65_536), checked_num_threads(num_threads)
    with with_jobs(settings) as settings:
        envs = Envs(env_id, to_json(settings), num_envs, mode, arguments["inadmissible"], num_threads)
    if arguments["by_tenant"]:
        envs.record_tenants()
    if arguments["reward_fn"] is not None:
        envs.record_decided()
    return envs


@lru_cache(maxsize=1)
def _known() -> tuple[str, ...]:
    return (*setting_names(), "jobs", "cluster")


@contextmanager
def with_jobs(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Settings whose ``jobs``, a workload, a table or a path, are in a file as long as the context lasts."""
    settings = dict(settings)
    jobs = settings.pop("jobs", None)
    if jobs is None:
        yield settings
        return
    if "workload" in settings or "load" in settings:
        raise ValueError("jobs beside workload or load: give one of them")
    jobs = as_workload(jobs, settings.pop("cluster", None))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "jobs.csv")
        jobs.write(path)
        file = {"path": path, "num_jobs": settings.pop("num_jobs", len(jobs))}
        settings["workload"] = {"file": file}
        yield settings


def made_of_settings(env: Any) -> tuple[str, dict[str, Any]] | None:
    """The id and the present settings of an environment, below its wrappers; None for what is none of ours."""
    own: Any = getattr(env, "unwrapped", None)
    if not hasattr(own, "_made_of"):
        return None
    if not hasattr(own, "_present"):
        raise ValueError(f"{own._made_of[0]} serves requests: allowed are environments of jobs; pleach evaluate compares what serves")
    if not all(one is own._present or are_same(one, own._present) for one in getattr(own, "_each", [])):
        raise ValueError("environments with settings of their own each: allowed are those that have the same; give one of them")
    place = own._made_of[0]
    return (place[0] if isinstance(place, tuple) else place), dict(own._present)


def check_whole_episodes(what: str, env: Any, settings: Mapping[str, Any]) -> None:
    """Refuses an environment that ends episodes early, where lists are played to their end."""
    if (most := settings.get("max_steps")) is not None:
        raise ValueError(f"max_steps = {most!r} of the environment: allowed is none, for {what} plays lists to their end; make it without")
    while (inside := getattr(env, "env", None)) is not None:
        if isinstance(env, TimeLimit):
            raise ValueError(f"a TimeLimit around the environment: allowed is none, for {what} plays lists to their end; give it unwrapped")
        env = inside


def spaces_of(envs: Envs | Serving) -> tuple[Any, Any, dict[str, list[tuple[str, str]]]]:
    """Observation space, action space, and the names and units of features."""
    _, num_candidates, _ = envs.sizes()
    rows = envs.features()
    bounds = []
    for features in rows:
        low, high = np.array([feature[2:] for feature in features], np.float32).T
        # Rows without a candidate are zero.
        bounds.append((np.minimum(low, 0) - SLACK, np.maximum(high, 0) + SLACK))
    (global_low, global_high), (low, high) = bounds
    observation = Dict(
        {
            "global": Box(global_low, global_high, dtype=np.float32),
            "candidates": Box(np.tile(low, (num_candidates, 1)), np.tile(high, (num_candidates, 1)), dtype=np.float32),
            "mask": MultiBinary(num_candidates),
        }
    )
    names = {key: [(feature[0], feature[1]) for feature in row] for key, row in zip(("global", "candidates"), rows)}
    return observation, Discrete(num_candidates), names


def views_of(envs: Envs | Serving, num_envs: int) -> dict[str, npt.NDArray[Any]]:
    """Views of the buffers in their shapes, which nobody can make writeable; the mask as int8, as ``Discrete.sample`` asks."""
    _, num_candidates, num_features = envs.sizes()
    shapes: dict[str, tuple[int, ...]] = {"global": (num_envs, -1), "candidates": (num_envs, num_candidates, num_features), "mask": (num_envs, num_candidates)}
    views = {}
    for name, array in envs.arrays().items():
        views[name] = np.frombuffer(memoryview(cast(Any, array)).toreadonly(), array.dtype).reshape(shapes[name])
    return views


def changed(settings: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the options of a reset change them."""
    unknown = [name for name in options if name not in _known()]
    if unknown:
        raise ValueError(f"options {', '.join(unknown)}: allowed are the settings {', '.join(_known())}{nearest(unknown[0], _known())}")
    if "columns" in options:
        raise ValueError("options columns: allowed is the view that the environment was made with, for its spaces stay: make another one")
    if "jobs" in options:
        # A list takes the place of whatever else said which jobs.
        settings = {key: value for key, value in settings.items() if key not in ("workload", "num_jobs", "load", "jobs", "cluster")}
    return merged(settings, options)


def checked_actions(actions: Any, num_envs: int) -> npt.NDArray[np.int64]:
    """``num_envs`` whole numbers as int64; nothing is cast that loses something."""
    if type(actions) is np.ndarray and actions.dtype == np.int64 and actions.shape == (num_envs,) and actions.flags.c_contiguous:
        return actions
    array = np.asarray(actions)
    if array.shape != (num_envs,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"actions have shape {array.shape} and dtype {array.dtype}: allowed are whole numbers of shape ({num_envs},)"
        )
    return np.ascontiguousarray(array, np.int64)


def checked_action(action: Any) -> int:
    """One whole number; an array of one of them is taken too."""
    if type(action) is int:
        return action
    array = np.asarray(action)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"action = {action!r}: allowed is a whole number, the index of a candidate")
    return int(array.item())


def check_reward_fn(function: Callable[..., Any] | None) -> None:
    """Refuses what cannot be called with two arguments, before an episode begins."""
    try:
        if function is not None:
            signature(function).bind({}, {})
    except TypeError as error:
        raise TypeError(
            f"reward_fn: {error}: allowed is reward_fn(gained, decision), with what the step has gained and what was decided; "
            "a function of gained alone becomes `lambda gained, decision: ...`"
        ) from None
    except ValueError:
        # What is written in C may not tell its arguments.
        return


def checked_reward(function: Callable[..., Any], envs: Envs, dt_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """What a reward function makes of what a step has gained and decided, float32 [N]."""
    num_envs = len(dt_s)
    reward = np.asarray(function({**envs.gained(), "dt_s": dt_s}, envs.decided()), np.float32)
    if reward.shape != (num_envs,) or not np.isfinite(reward).all():
        raise ValueError(f"reward_fn returned {reward!r}: allowed are {num_envs} finite numbers, shape ({num_envs},)")
    return reward
