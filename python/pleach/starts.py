"""When a job would start."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Iterable, Mapping, TypedDict, Union

from pleach import _pleach
from pleach._settings import checked_seed, to_json
from pleach.workloads import Workload


class Forecast(TypedDict):
    """A forecast of a wait, s."""

    #: What is asked, in words.
    what: str
    #: The chance to start at once, 0 to 1.
    at_once: float
    #: Median.
    median_s: float
    #: Ends of the 80 % interval.
    within_s: list[float]
    #: Waits at the answer's ``levels``.
    quantiles_s: list[float]


class Answer(TypedDict):
    """What ``pleach when --json`` writes."""

    #: The instant, s of the list.
    as_of_s: float
    #: The job.
    forecast: Forecast
    #: What could be asked for instead.
    alternatives: list[Forecast]
    #: Parts of the distribution at which quantiles are stated.
    levels: list[float]
    #: What answers: ``history``, ``trees`` or ``replay``; whether it was asked for.
    method: str
    is_forced: bool
    #: Earlier forecasts that are resolved.
    num_resolved: int
    #: Part of the last ``num_held`` of them whose 80 % interval held.
    held: float
    num_held: int
    #: The policy that is replayed.
    policy: str
    #: Root of all draws.
    seed: int
    #: Jobs that run, jobs that wait, and GPUs that these ask for.
    queue: list[float]
    #: GPUs that are free, and all.
    gpus: list[float]
    #: Whether the job waits already.
    is_of_waiting: bool
    #: What is not known and may change the answer.
    not_known: list[str]


#: A job by what it asks for: ``gpus`` and, as wanted, ``time_s`` (its limit), ``nodes``, ``partition``, ``gpu_type``, ``user``.
Job = Mapping[str, Any]


def when(
    site: Union[str, "os.PathLike[str]", Workload],
    job: Job | str,
    alternatives: Iterable[Job] | None = None,
    *,
    at_s: float | None = None,
    policy: str | None = None,
    method: str = "auto",
    seed: int = 0,
    **scheduling: Any,
) -> Answer:
    """When a job would start: a dict as ``pleach when --json`` writes it.

    ``site`` is a ``site.toml``, a list or a workload; ``job`` what is asked for, or the id of a job that waits. ``alternatives`` are
    changes of the job (``[{"gpus": 4}]``), all of which are answered; None tries the usual ones and answers those that gain. ``at_s``
    is the instant, s of the list; None its end. ``method`` is ``auto``, ``replay`` or ``history``, ``scheduling`` as in
    :func:`pleach.simulate`.
    """
    asked: dict[str, Any] = {"job": job} if isinstance(job, str) else dict(job)
    if alternatives is not None:
        asked["instead"] = [{**asked, **change} for change in alternatives]
    if method not in ("auto", "replay", "history"):
        raise ValueError(f"method = {method!r}: allowed are auto, replay and history")
    asks: dict[str, Any] = {
        "job": asked,
        "at_s": at_s,
        "method": method,
        "policy": policy,
        "scheduling": scheduling,
        "seed": checked_seed(seed),
    }
    if not isinstance(site, Workload):
        return _answer({"list": os.fspath(site), **asks})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.csv")
        site.write(path)
        return _answer({"list": path, **asks})


def _answer(asks: dict[str, Any]) -> Answer:
    answer: Answer = json.loads(_pleach.when(to_json(asks)))
    return answer
