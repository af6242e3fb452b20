"""Trainings of the built-in learners."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pleach import _pleach
from pleach._settings import checked_num_threads, checked_seed, checked_whole, merged, to_json
from pleach._spaces import check_whole_episodes, made_of_settings, with_jobs
from pleach.policies import Environment, Policy, load


class Trained:
    """What a training found."""

    def __init__(self, policy: Policy, found: dict[str, Any], folder: str | None) -> None:
        #: The network that was best on the validation lists.
        self.policy = policy
        #: The folder of the run, as ``pleach train`` leaves it; None where none was named.
        self.folder = folder
        #: The best heuristic on the validation lists, against which ratios are.
        self.best_heuristic: str = found["best_heuristic"]
        #: Geometric mean of the objective (average JCT if nothing else is said) over that of the best heuristic; below 1 is better.
        self.best_ratio: float = found["best_ratio"]
        #: Updates or generations after which the network that was kept was judged.
        self.best_update: int = found["best_update"]
        #: Who was imitated first, if anybody.
        self.teacher: str | None = found["teacher"]
        self._num_lists = found["num_validation"]
        points = found["validation"]
        #: A row for each validation: ``update``, ``num_frames``, ``ratio``.
        self.curve: dict[str, list[Any]] = {key: [point[key] for point in points] for key in ("update", "num_frames", "ratio")}

    def __repr__(self) -> str:
        word = f"{self.best_ratio:.3f} of {self.best_heuristic}"
        if self.best_ratio >= 1.0:
            word = f"nothing was won over {self.best_heuristic}: {word}"
        return f"<pleach.Trained {word} on {self._num_lists} validation lists, after {self.best_update} updates>"


def train(
    env: str | Environment = "Pleach/GavelMulti-v1",
    *,
    learner: Literal["evolution", "ppo"] = "evolution",
    num_updates: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    existing: Literal["refuse", "resume", "replace"] = "refuse",
    num_threads: int = 0,
    settings: Mapping[str, Any] | None = None,
    tell: Callable[[int, int, str], Any] | None = None,
    **config: Any,
) -> Trained:
    """Trains a network by a built-in learner: the same bytes as ``pleach train --learner LEARNER --env ID --seed SEED --out OUT``.

    ``env`` is an id or an environment; ``settings`` are its settings (``num_jobs``, ``load``, ``sim``, ...). ``num_updates`` are
    generations of evolution (240 in minutes) or updates of PPO. ``config`` has the keys of the file that ``pleach train --config``
    takes, merged at any depth over what is built in for the learner: ``num_validation``, ``objective``, ``constraint``, ``prior``,
    ``warm_start``, ``fine_tune``, ``train={"evolution": {"num_pairs": 24}}``, ... ``tell`` is called with updates done, updates in
    all and a word on them. Ctrl-C, or an exception of ``tell``, ends the training after the present update; with ``out`` it is kept,
    and ``existing="resume"`` goes on.
    """
    seed, num_threads = checked_seed(seed), checked_num_threads(num_threads)
    env_id, own = (env, {}) if isinstance(env, str) else made_of_settings(env) or (None, {})
    if env_id is None:
        raise ValueError(f"env is a {type(env).__name__}: allowed are an id and an environment of this package")
    own = merged(own, dict(settings or {}))
    # PPO collects episodes that end early; evolution judges whole ones.
    check_whole_episodes("train", env, {} if learner == "ppo" else own)
    if num_updates is not None:
        config = merged(config, {"train": {"num_updates": checked_whole("num_updates", num_updates, 0, 2**63 - 1)}})
    with tempfile.TemporaryDirectory() as folder, with_jobs(own) as changes:
        place = os.path.join(folder, learner) if out is None else os.fspath(out)
        found = _pleach.train(env_id, to_json(changes), to_json(config), learner, seed, num_threads, place, existing, tell)
        return Trained(load(place), json.loads(found), None if out is None else place)
