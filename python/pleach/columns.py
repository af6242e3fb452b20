"""Observations whose columns have names, with *hold* apart, and functions that see them so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from pleach._pleach import columns_of
from pleach._settings import nearest
from pleach.policies import Observation


class Columns(Mapping[str, Any]):
    """Columns of an array [..., F] by name, each [...]: views, no copies."""

    def __init__(self, array: Any, places: Mapping[str, int]) -> None:
        self._array, self._places = array, places

    def __getitem__(self, name: str) -> Any:
        place = self._places.get(name)
        if place is None:
            raise KeyError(f"column {name}: allowed are {', '.join(self._places)}{nearest(name, self._places)}")
        return self._array[..., place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Named:
    """An observation, or one of N, with names; values are scaled as they are in observations (docs of the features say how)."""

    def __init__(self, observation: Observation) -> None:
        cluster, rows, mask = observation["global"], observation["candidates"], observation["mask"]
        of_cluster, of_row = _places(cluster.shape[-1], rows.shape[-1])
        #: Of the cluster and its queue: a number for each name, [N] of N.
        self.cluster = Columns(cluster, of_cluster)
        #: Of the candidates but *hold*: [C - 1], [N, C - 1] of N, zero where there is none.
        self.candidates = Columns(rows[..., 1:, :], of_row)
        #: Of *hold*: a number for each name, [N] of N.
        self.hold = Columns(rows[..., 0, :], of_row)
        #: Where there is an admissible candidate, bool [C - 1] or [N, C - 1].
        self.admissible = mask[..., 1:] == 1
        #: Whether *hold* is admissible, bool or bool [N].
        self.may_hold = mask[..., 0] == 1
        self._mask = mask == 1

    def scores(self, of_candidates: Any, of_hold: Any = -np.inf) -> npt.NDArray[np.float32]:
        """Scores as policies return them, float32 [C] or [N, C], of those of the candidates but *hold* and of *hold* itself.

        Minus infinity stands for never: where every candidate has it, *hold* is taken if it is admissible.
        """
        scores = np.empty(self._mask.shape, np.float32)
        scores[..., 0], scores[..., 1:] = of_hold, of_candidates
        if np.isnan(scores[self._mask]).any():
            raise ValueError("a score is NaN: allowed are numbers, and minus infinity for never")
        # Minus infinity is for what is masked.
        return np.where(self._mask, np.maximum(scores, np.finfo(np.float32).min), np.float32(-np.inf))

    def choice(self, of_candidates: Any, of_hold: Any = -np.inf) -> Any:
        """The index of the largest of these scores, an int, or int64 [N] of N."""
        chosen = self.scores(of_candidates, of_hold).argmax(axis=-1)
        return int(chosen) if chosen.ndim == 0 else chosen


def named(observation: Observation) -> Named:
    """An observation, or one of N, whose columns have names: ``named(observation).candidates["remaining_s"]``."""
    return Named(observation)


def by_name(function: Callable[[Named], Any]) -> Callable[[Observation], npt.NDArray[np.float32]]:
    """Makes a policy of a function that sees a :class:`Named` and scores the candidates but *hold*, [C - 1] or [N, C - 1] of N.

    *Hold* is taken where every score is minus infinity, or where its own, the second of a pair that the function returns, is larger.
    """

    @wraps(function)
    def scored(observation: Observation) -> npt.NDArray[np.float32]:
        seen = Named(observation)
        answer = function(seen)
        return seen.scores(*answer) if isinstance(answer, tuple) else seen.scores(answer)

    return scored


@lru_cache(maxsize=16)
def _places(num_global: int, num_features: int) -> tuple[dict[str, int], dict[str, int]]:
    of_cluster, of_row = ({column[0]: place for place, column in enumerate(row)} for row in columns_of(num_global, num_features))
    return of_cluster, of_row
