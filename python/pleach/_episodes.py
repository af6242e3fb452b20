"""An episode is its seed and its actions: what copies it, writes it down and goes on from there."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pleach._settings import are_same, checked_seed, checked_whole, kept

Own = TypeVar("Own", bound="Episodes")
#: What an episode is made of, beside the settings.
_STATE = ("options", "seed", "actions", "return", "length")


class Episodes:
    """``fork``, ``save_state`` and ``load_state`` of a single environment."""

    _made_of: tuple[Any, ...]
    _options: dict[str, Any]
    #: The seed of the present episode and its actions, None where a random one was drawn.
    _seed: int | None
    _taken: list[int | None]
    _return: float
    _length: int

    def _open(self, options: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError

    def _play_again(self, seed: int, actions: Sequence[int | None]) -> None:
        """Begins the episode of a seed and takes its actions."""
        raise NotImplementedError

    def _present_step(self) -> tuple[Any, Any]:
        """What ``reset`` returns, of the present step."""
        raise NotImplementedError

    def _forget(self) -> None:
        self._seed, self._taken, self._return, self._length = None, [], 0.0, 0

    def fork(self: Own) -> Own:
        """An environment of its own that goes on from here, as ``copy.deepcopy`` makes it: the same jobs or requests, the same
        fates, so that only actions differ."""
        self._check_open()
        return copy.deepcopy(self)

    def save_state(self) -> dict[str, Any]:
        """The present episode as plain data: its seed and its actions, which JSON can hold where the options of ``reset`` can."""
        self._check_open()
        if self._seed is None:
            raise ValueError("no episode has begun: call reset first")
        values = (kept(self._options), self._seed, list(self._taken), self._return, self._length)
        return {"env_id": self._made_of[0], **dict(zip(_STATE, values))}

    def load_state(self, state: Mapping[str, Any]) -> tuple[Any, Any]:
        """Goes on with an episode of :meth:`save_state`, from an environment of the same id and settings; returns what ``reset``
        returns. The episode is played again, so that this takes as long as its steps did."""
        self._check_open()
        missing = [name for name in ("env_id", *_STATE) if name not in state]
        if missing:
            raise ValueError(f"state without {', '.join(missing)}: allowed is what save_state returns")
        if state["env_id"] != self._made_of[0]:
            raise ValueError(f"a state of {state['env_id']}: allowed is one of {self._made_of[0]}; make that environment")
        options, seed, actions, total, length = (state[name] for name in _STATE)
        seed = checked_seed(seed)
        actions = [None if one is None else checked_whole("an action of the state", one, 0, 2**63 - 1) for one in actions]
        if not are_same(options, self._options):
            self._open(options)
        self._forget()
        self._play_again(seed, actions)
        self._seed, self._taken, self._return, self._length = seed, actions, float(total), int(length)
        return self._present_step()
