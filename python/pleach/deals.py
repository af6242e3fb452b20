"""Jobs whose GPUs are dealt: a score for each job on each GPU type."""

from __future__ import annotations

import copy
from typing import Any, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, MultiBinary, Space

from pleach._pleach import DealsOfJobs, deal_setting_names
from pleach._settings import checked_seed, nearest, to_json
from pleach._spaces import SLACK

Info = dict[str, Any]
Deal = dict[str, npt.NDArray[Any]]


class DealEnv(gymnasium.Env[Deal, Any]):
    """All jobs, waiting and running, are dealt GPUs at events by a score for each on each type (``pleach.deal_ids()``).

    Observation: ``rows`` float32 [R, F], ``mask`` int8 [R]. A row is a job on a GPU type, and for an elastic job one step of its size
    there; ``features`` names its columns, whose values are not scaled. Rows that there are not are zero.
    Action: a score for each row, [R]; larger ones are dealt first, minus infinity gets no GPUs, and scores of masked rows are not
    read. Then the same deal as that of ``pleach evaluate`` and of the daemons seats gangs, stops, moves and shares.
    The reward is minus the jobs in the system times h until the next deal, so that a return is minus the sum of all JCTs, h.
    ``settings`` are those that ``pleach workload settings deals`` lists; ``expert`` names the dealer of ``expert_scores``.
    """

    metadata = {"render_modes": []}

    def __init__(self, env_id: str = "Pleach/Deals-v0", *, render_mode: None = None, **settings: Any) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode = {render_mode!r}: allowed is None")
        known = deal_setting_names()
        for name in settings:
            if name not in known:
                allowed = ", ".join(known) + nearest(name, known)
                raise TypeError(f"an environment got an unexpected keyword argument '{name}': allowed are the settings {allowed}")
        self.render_mode = render_mode
        self._made_of = (env_id, settings)
        self._deals = DealsOfJobs(env_id, to_json(settings))
        of_row = self._deals.features()
        self.features = [(name, unit) for name, unit, *_ in of_row]
        num_rows = len(self._deals.rows()[1])
        low, high = np.array([ends for _, _, *ends in of_row], np.float32).T
        low, high = np.minimum(low, 0) - SLACK, np.maximum(high, 0) + SLACK
        rows = Box(np.tile(low, (num_rows, 1)), np.tile(high, (num_rows, 1)), dtype=np.float32)
        self.observation_space: Space[Deal] = cast("Space[Deal]", Dict({"rows": rows, "mask": MultiBinary(num_rows)}))
        self.action_space = Box(-np.inf, np.inf, (num_rows,), np.float32)
        self._begin(None)

    def _begin(self, seed: int | None) -> None:
        self._seed = seed
        self._taken: list[npt.NDArray[np.float64]] = []
        self._return = 0.0

    def _observation(self) -> Deal:
        rows, mask = self._deals.rows()
        return {"rows": rows.reshape(len(mask), -1), "mask": mask}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Deal, Info]:
        """Begins an episode: a list of jobs that is drawn with the seed. There are no options."""
        if options:
            raise ValueError(f"options = {options}: allowed is none, settings are given where the environment is made")
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        own = int(self.np_random.integers(2**63)) if seed is None else seed
        self._begin(own)
        self._deals.reset(own)
        return self._observation(), {"dt_s": 0.0}

    def step(self, action: Any) -> tuple[Deal, float, bool, bool, Info]:
        """Deals. ``info`` has ``dt_s`` (s until the next deal), and in the last step ``metrics``: the figures of the episode, and
        ``r`` and ``l``, return and steps."""
        scores = np.array(action, np.float64).reshape(-1)
        reward, terminated, dt_s = self._deals.step(scores)
        self._taken.append(scores)
        self._return += reward
        info: Info = {"dt_s": dt_s}
        if terminated:
            info["metrics"] = {**(self._deals.episode() or {}), "r": self._return, "l": len(self._taken)}
        return self._observation(), reward, terminated, False, info

    def expert_scores(self) -> npt.NDArray[np.float64]:
        """The scores that the dealer named by ``expert`` gives these rows, [R]; minus infinity where the mask is 0."""
        return self._deals.expert_scores()

    def fork(self) -> DealEnv:
        """An environment of its own that goes on from here, as ``copy.deepcopy`` makes it; the episode is played again."""
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: getattr(self, name) for name in ("_seed", "_taken", "_return", "_np_random", "_np_random_seed")}
        return _remake, self._made_of, state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["_seed"] is not None:
            self._deals.reset(state["_seed"])
            for scores in state["_taken"]:
                if self._deals.step(scores)[1]:
                    self._deals.episode()
        self.__dict__.update(state)


def _remake(env_id: str, settings: dict[str, Any]) -> DealEnv:
    return DealEnv(env_id, **settings)
