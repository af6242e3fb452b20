"""Policies compared on the same workloads with the same seeds, and policies distilled into trees."""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping, Union

from pleach import _pleach
from pleach._html import html_table
from pleach._settings import checked_num_threads, checked_seed, checked_whole, merged, to_json
from pleach._spaces import check_whole_episodes, made_of_settings, with_jobs
from pleach.policies import Environment, Policy, PolicyLike, as_inner, load
from pleach.workloads import Cluster, Jobs, Workload, as_arrow, as_pandas, as_workload

Policies = Union[Mapping[str, PolicyLike], Iterable[PolicyLike]]


class Comparison:
    """What a comparison found. ``pandas.DataFrame(comparison.table)`` has a row per policy, ``comparison.runs`` one per run."""

    def __init__(self, results: dict[str, Any], runs: list[dict[str, Any]], reference: str) -> None:
        #: The file that ``pleach evaluate --json`` writes, as a dict.
        self.results = results
        #: Policy that the others are measured against.
        self.reference = reference
        order = list(dict.fromkeys(run["policy"] for run in runs))
        rows = [_row(name, results["policies"][name]) for name in order]
        #: A row per policy: means of all metrics, and the paired ratio to the reference with its 95 % interval.
        self.table: dict[str, list[Any]] = _columns(rows)
        #: A row per policy, workload and seed: all metrics.
        self.runs: dict[str, list[Any]] = _columns(
            [{**{key: run[key] for key in ("policy", "workload", "seed")}, **run["metrics"]} for run in runs]
        )

    def to_pandas(self) -> Any:
        """The table as a DataFrame, indexed by policy."""
        return as_pandas(self.table).set_index("policy")

    def to_arrow(self) -> Any:
        """The table as one of Arrow."""
        return as_arrow(self.table)

    def __repr__(self) -> str:
        lines = []
        for place, name in enumerate(self.table["policy"]):
            jct_s = self.table["avg_jct_s"][place]
            ratio, low, high = (self.table[key][place] for key in ("ratio", "ratio_low", "ratio_high"))
            beside = "" if ratio is None else f"  {ratio:.3f} of {self.reference} [{low:.3f}, {high:.3f}]"
            lines.append(f"{name:20} average JCT {jct_s:12.1f} s{beside}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = ("policy", "avg_jct_s", "p99_jct_s", "avg_slowdown", "utilisation", "ratio", "ratio_low", "ratio_high")
        return html_table(f"ratios to {self.reference}", {key: self.table[key] for key in shown})


def _row(name: str, summary: dict[str, Any]) -> dict[str, Any]:
    ratio = summary.get("ratio_vs_reference") or {}
    metrics = {key: value for key, value in summary.items() if key != "ratio_vs_reference"}
    paired = {
        "ratio": ratio.get("mean"),
        "ratio_low": ratio.get("low"),
        "ratio_high": ratio.get("high"),
        "num_pairs": ratio.get("num_pairs"),
    }
    return {"policy": name, **metrics, **paired}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: [row.get(key) for row in rows] for key in keys}


def evaluate(
    policies: Policies,
    workload: str | Environment | Jobs | list[Workload] = "Pleach/Philly-v0",
    *,
    seeds: int = 10,
    seed: int = 0,
    num_jobs: int | None = None,
    load: float | None = None,
    metric: str = "avg_jct_s",
    reference: str | None = None,
    cluster: Cluster | None = None,
    num_threads: int = 0,
    **scheduling: Any,
) -> Comparison:
    """Compares policies, each a name, a path, a :class:`pleach.Policy` or a function ``observation -> scores or index``.

    ``policies`` is a list, or a dict with the names to show. ``workload`` is the name of a generator or an environment, or an
    environment with settings of its own, drawn with ``seeds`` seeds of the test stream; or jobs (a path, a table with ``cluster``, a
    :class:`pleach.Workload`, a list of these; those of one name have seeds ``seed``, ``seed`` + 1, ...). A function chooses among the
    candidates that the environment shows; on generators and jobs among the default ones, and shares of GPUs where ``sharing`` says so.
    The first policy is the reference unless another is named. ``scheduling`` as in :func:`pleach.simulate`. The same bytes at any
    ``num_threads``.
    """
    named = policies.items() if isinstance(policies, Mapping) else ((None, policy) for policy in policies)
    inner = [as_inner(policy, name) for name, policy in named]
    if not inner:
        raise ValueError("no policies: give at least one")
    seed, num_threads = checked_seed(seed), checked_num_threads(num_threads)
    config: dict[str, Any] = {"seeds": seeds, "seed": seed, "metric": metric, "scheduling": scheduling}
    if reference is not None:
        config["reference"] = reference
    first = reference or inner[0].name
    if (made_of := made_of_settings(workload)) is not None:
        own = {"num_jobs": num_jobs, "load": load, "cluster": cluster, **scheduling}
        beside = [name for name, value in own.items() if value is not None]
        if beside:
            raise ValueError(f"{', '.join(beside)} beside an environment, which has its own: make it with these settings")
        check_whole_episodes("evaluate", workload, made_of[1])
        config["seeds"] = checked_whole("seeds", seeds, 1, 10_000)
        with with_jobs(made_of[1]) as settings:
            found = _pleach.evaluate(inner, to_json(config), [], (made_of[0], to_json(settings)), num_threads)
        return _comparison(found, first)
    lists: list[_pleach.Workload] = []
    # Beside a cluster a string is the path of jobs.
    names = (*_pleach.workload_names(), *_pleach.env_ids())
    if isinstance(workload, str) and (cluster is None or workload in names):
        if cluster is not None:
            raise ValueError("cluster is for jobs that are given: a workload by name has its own")
        config["workload"] = {"workload": [workload], "num_jobs": num_jobs, "load": load}
    else:
        if num_jobs is not None or load is not None:
            raise ValueError("num_jobs and load are for workloads by name: jobs that are given stay as they are")
        given = workload if isinstance(workload, list) else [workload]
        lists = [as_workload(one, cluster)._inner for one in given]
    return _comparison(_pleach.evaluate(inner, to_json(config), lists, None, num_threads), first)


def _comparison(found: tuple[str, str], reference: str) -> Comparison:
    return Comparison(json.loads(found[0]), json.loads(found[1]), reference)


class Distilled:
    """A tree, and how it came about."""

    def __init__(self, file: str, text: str, report: dict[str, Any]) -> None:
        #: The policy file, as ``pleach distill`` writes ``tree.json``.
        self.file = file
        #: The tree in words.
        self.text = text
        #: Students, fidelity, pruning.
        self.report = report

    def save(self, path: Any) -> Policy:
        """Writes the policy file, and opens it."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.file)
        return load(path)

    def __repr__(self) -> str:
        return self.text


def distill(
    teacher: PolicyLike,
    env: str | Environment = "Pleach/GavelMulti-v1",
    *,
    seed: int = 0,
    num_threads: int = 0,
    settings: Mapping[str, Any] | None = None,
    **config: Any,
) -> Distilled:
    """Distils a teacher, of ours or a function, into a tree: the same file as ``pleach distill`` for the same teacher.

    A function chooses among the candidates that the environment shows; :meth:`Policy.of` can give it others.
    ``env`` is an id or an environment; ``settings`` are its settings (``num_jobs``, ``load``, ``sim``, ...). ``config`` is what
    ``pleach distill --config`` takes: ``leaves``, ``rounds``, ``episodes``, ``cart``, ``target``, ``prune``, ...
    """

    seed, num_threads = checked_seed(seed), checked_num_threads(num_threads)
    env_id, own = (env, {}) if isinstance(env, str) else made_of_settings(env) or (None, {})
    if env_id is None:
        raise ValueError(f"env is a {type(env).__name__}: allowed are an id and an environment of this package")
    own = merged(own, dict(settings or {}))
    check_whole_episodes("distill", env, own)
    with with_jobs(own) as changes:
        found = _pleach.distill(as_inner(teacher), env_id, to_json(changes), to_json(config), seed, num_threads)
    return Distilled(found[0], found[1], json.loads(found[2]))
