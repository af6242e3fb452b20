"""Requests that are served, one choice at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium

from pleach._pleach import Serving, serving_setting_names
from pleach._episodes import Episodes
from pleach._settings import checked_seed, merged, nearest, to_json
from pleach._spaces import OBSERVATION, checked_action, spaces_of, views_of
from pleach.columns import Columns
from pleach.env import Info, Observation


class ServingEnv(Episodes, gymnasium.Env[Observation, Any]):
    """Work that serves (``pleach.serving_ids()``); a step takes one of the rows that the mask allows.

    Observation: ``global`` float32 [G], ``candidates`` float32 [C, F], ``mask`` int8 [C]; rows that there are not are zero.
    ``LlmRouting`` and ``ServingBursts``: rows are the replicas in their order and, with ``refuse=True``, refusing last. ``Esg``: a
    batch of a queue in a configuration, dropping a queue's first request, starting nothing more now. ``Sgprs``: the contexts, holding
    the stage back, giving its frame up. ``Mixed``: the numbers of replicas that are offered, fewest first; its reward, GPU h, is what
    trains until the next step, less what stopping jobs loses, less ``price_gpu_s`` (18) a miss (docs/serving-mixed.md).
    ``SparkGraph``: executors for a stage, none last; its reward is less the jobs in the system times s (``workload settings graphs``).
    The reward is what was booked since the last step: by default 1 for a request within its targets, -1 for one served later, refused
    or dropped (``reward={"hit": 1, "miss": -1, "refused": -1}``); the last step books all that is in the air. ``settings`` are those
    that ``pleach workload settings requests`` (``calls``, ``service``) lists, and those of the cameras (``cameras``,
    ``contexts``, ...); the error for an unknown one lists all there are.
    ``inadmissible="first"`` takes the first admissible row instead of one that is masked, as checkers ask.
    ``copy=False`` returns read-only views that the next step overwrites.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        env_id: str,
        *,
        inadmissible: Literal["raise", "first"] = "raise",
        render_mode: None = None,
        copy: bool = True,
        **settings: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"render_mode = {render_mode!r}: allowed is None")
        if inadmissible not in ("raise", "first"):
            hint = "first is for checkers, which draw without a mask."
            raise ValueError(f"config: inadmissible = {inadmissible}: allowed is raise, first. {hint}")
        self.render_mode, self._copy, self._takes_first = render_mode, copy, inadmissible == "first"
        self._made_of = (env_id, inadmissible, copy, settings)
        self._closed = False
        self._open({})

    def _open(self, options: Mapping[str, Any]) -> None:
        env_id, *_, settings = self._made_of
        known = serving_setting_names(env_id)
        unknown = [name for name in (*settings, *options) if name not in known]
        if unknown:
            allowed = ", ".join(known) + nearest(unknown[0], known)
            text = f"an environment got an unexpected keyword argument '{unknown[0]}': allowed are the settings {allowed}"
            raise TypeError(text) if unknown[0] in settings else ValueError(text)
        self._served = Serving(env_id, to_json(merged(settings, options)))
        self.observation_space, self.action_space, self.features = spaces_of(self._served)
        views = views_of(self._served, 1)
        self._rows = {name: views[name][0] for name in OBSERVATION}
        self._options = dict(options)
        self._forget()

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
        self._served.reset(seed)
        for action in actions:
            if action is None:
                raise ValueError("an action of the state = None: allowed is a row")
            if self._served.step(action)[1]:
                self._served.episode()

    def _present_step(self) -> tuple[Observation, Info]:
        observation = self._observation()
        return observation, {"dt_s": 0.0, "action_mask": observation["mask"]}

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the environment is closed: make another one")

    def _observation(self) -> Observation:
        rows = self._rows
        if not self._copy:
            return dict(rows)
        return {"global": rows["global"].copy(), "candidates": rows["candidates"].copy(), "mask": rows["mask"].copy()}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begins an episode. ``options`` are settings that hold until a later reset gives others."""
        self._check_open()
        seed = None if seed is None else checked_seed(seed)
        super().reset(seed=seed)
        if options is not None and options != self._options:
            self._open(options)
        seed = int(self.np_random.integers(2**63)) if seed is None else seed
        self._served.reset(seed)
        self._forget()
        self._seed = seed
        return self._present_step()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Takes a row. ``info`` has ``dt_s`` (s until the next choice), ``action_mask``, and in the last step ``metrics``:
        the figures of the episode, and ``r`` and ``l``, return and steps."""
        self._check_open()
        action = action if type(action) is int else checked_action(action)
        mask = self._rows["mask"]
        if self._takes_first and 0 <= action < len(mask) and not mask[action]:
            action = int(mask.argmax())
        try:
            reward, terminated, dt_s = self._served.step(action)
        except OverflowError:
            raise ValueError(f"action = {action}: allowed is 0 to {len(mask) - 1}") from None
        self._taken.append(action)
        self._return += reward
        self._length += 1
        observation = self._observation()
        info: Info = {"dt_s": dt_s, "action_mask": observation["mask"]}
        if terminated:
            info["metrics"] = {**(self._served.episode() or {}), "r": self._return, "l": self._length}
        return observation, reward, terminated, False, info

    def columns(self, observation: Observation) -> tuple[Columns, Columns]:
        """The context and the rows of an observation by name: ``rows["slack_share"]`` float32 [C]; views, no copies."""
        of_context, of_row = ({name: place for place, (name, _) in enumerate(self.features[key])} for key in OBSERVATION[:2])
        return Columns(observation["global"], of_context), Columns(observation["candidates"], of_row)

    def action_masks(self) -> Any:
        """The mask as bool [C], under the name that MaskablePPO asks for."""
        return self._rows["mask"] == 1

    def close(self) -> None:
        """Ends the environment. Arrays that were handed out stay good."""
        self._closed = True


def _remake(env_id: str, inadmissible: Literal["raise", "first"], copy: bool, settings: dict[str, Any]) -> ServingEnv:
    return ServingEnv(env_id, inadmissible=inadmissible, copy=copy, **settings)
