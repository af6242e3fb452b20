"""Whole workloads as tables: drawn, read, written, simulated."""

from __future__ import annotations

import csv
import datetime
import json
import math
import os
import tempfile
from typing import Any, Mapping, Union

import numpy as np
import numpy.typing as npt

from pleach import _pleach, gantt
from pleach._html import html_table
from pleach._libraries import needed
from pleach._settings import checked_seed, checked_whole, to_json
from pleach.policies import PolicyLike, as_inner

Columns = dict[str, Any]
#: A path, a workload, or a table: a dict of columns, a DataFrame of pandas or Polars, a table of Arrow or what exports one, a
#: structured array.
Jobs = Union["Workload", str, "os.PathLike[str]", Any]
#: A dict, nodes x GPUs : type as ``27x4:V100,4x8:A100``, the path of a description in TOML or JSON, or the workload that has it.
Cluster = Union[Mapping[str, Any], str, "os.PathLike[str]", "Workload"]

#: Columns that a table of jobs must have.
REQUIRED = ("submit_s", "num_gpus", "run_time_s")
#: Columns that it may have.
OPTIONAL = ("job_id", "estimate_s", "tenant", "class", "user", "outcome", "gpu_milli", "gpu_memory_gib", "cpu_cores", "memory_gib",
            "gpus_per_task", "tasks_per_node_max", "nodes_max")


class Workload:
    """Jobs and the cluster they run on. Made by :func:`pleach.workload`, :func:`pleach.read` and :meth:`Workload.from_table`."""

    def __init__(self, inner: _pleach.Workload, report: str = "") -> None:
        self._inner = inner
        #: What the importer mended and left out.
        self.report = report

    @classmethod
    def from_table(cls, table: Any, cluster: Cluster | None) -> Workload:
        """Jobs of a table: columns ``submit_s`` (s), ``num_gpus`` and ``run_time_s`` (s), and any of those that :attr:`columns` gives.

        ``cluster`` is a dict as :attr:`cluster` gives it, nodes x GPUs : type as ``27x4:V100,4x8:A100``, the path of a description, or
        the workload whose cluster and classes of models are meant.
        """
        columns = _columns_of(table)
        if cluster is None:
            raise ValueError("a table of jobs needs a cluster: give cluster=, for example '27x4:V100' or pleach.workload('philly-like').cluster")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.csv")
            options: dict[str, Any] = {}
            if isinstance(cluster, Workload):
                # What lies beside its jobs says more than a cluster: which classes of models they are.
                cluster.write(path)
            else:
                options["cluster"] = cluster
            with open(path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values()))
            try:
                return read(path, format="canonical", **options)
            except ValueError as error:
                raise ValueError(str(error).replace(folder + os.sep, "")) from None

    @property
    def name(self) -> str:
        """Name in reports."""
        return self._inner.name

    @property
    def num_gpus(self) -> int:
        """GPUs of the cluster."""
        return self._inner.num_gpus

    @property
    def offered_load(self) -> float:
        """GPU time asked for over GPU time there is, while jobs arrive."""
        return self._inner.offered_load

    @property
    def columns(self) -> Columns:
        """The jobs column by column, each of ``len(workload)``: ``pandas.DataFrame(workload.columns)``."""
        return self._inner.columns()

    @property
    def cluster(self) -> dict[str, Any]:
        """The cluster: types of GPUs, groups of nodes, tenants."""
        return json.loads(self._inner.cluster())  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """The jobs as a DataFrame, a row per job."""
        return as_pandas(self.columns)

    def to_arrow(self) -> Any:
        """The jobs as a table of Arrow, a row per job."""
        return as_arrow(self.columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the jobs as CSV, gzipped CSV or Parquet by the ending of ``path``, and the cluster beside them."""
        self._inner.write(os.fspath(path))

    def __len__(self) -> int:
        return len(self._inner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self._inner.to_json() == other._inner.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._inner.to_json(), self.report)

    def __repr__(self) -> str:
        return f"<pleach.Workload {self.name}: {len(self)} jobs on {self.num_gpus} GPUs>"

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.columns)


def _unpickled(text: str, report: str) -> Workload:
    return Workload(_pleach.Workload.from_json(text), report)


def workload(name: str, *, num_jobs: int | None = None, load: float | None = None, seed: int = 0) -> Workload:
    """Draws the workload of a generator (``pleach.workload_names()``) or of an environment; the same seed draws the same one."""
    if num_jobs is not None:
        num_jobs = checked_whole("num_jobs", num_jobs, 1, 2**32 - 1)
    return Workload(_pleach.Workload.generate(name, num_jobs, load, checked_seed(seed)))


def read(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> Workload:
    """Reads a list of jobs in our own format or a published one, which is recognised where ``format`` is None.

    ``options`` are ``cluster`` (a dict, the short form ``27x4:V100``, a file), ``virtual_clusters``, ``from_s``, ``to_s`` and
    ``max_jobs``.
    """
    assumed = ""
    if isinstance(cluster := options.get("cluster"), (str, os.PathLike)):
        described, assumed = _pleach.cluster(os.fspath(cluster))
        options["cluster"] = json.loads(described)
    elif isinstance(cluster, Mapping):
        options["cluster"] = dict(cluster)
    inner, report = _pleach.Workload.read(os.fspath(path), to_json({"format": format, **options}))
    return Workload(inner, "\n".join(filter(None, (report, assumed))))


class Simulation:
    """What became of a workload."""

    def __init__(self, found: dict[str, Any], cluster: dict[str, Any]) -> None:
        #: The description of the cluster.
        self.cluster = cluster
        #: One row per job, column by column, in the order of the workload; times in s. ``nodes`` are those of its last start, as
        #: ``3:8 4:8`` for eight GPUs on each of the nodes 3 and 4, counted from 0 over the groups of the cluster.
        self.jobs: Columns = found["jobs"]
        #: Who ran where and when: one row per segment, column by column, as in the record of a schedule (docs/schedule-record.md).
        self.segments: Columns = found["segments"]
        #: Figures over all jobs, as ``info["metrics"]`` of an environment.
        self.metrics: dict[str, float] = found["metrics"]
        #: Held GPUs from each time on: ``time_s``, ``held_gpus``.
        self.utilisation: dict[str, npt.NDArray[np.float64]] = found["utilisation"]

    def to_pandas(self) -> Any:
        """What became of the jobs as a DataFrame, a row per job."""
        return as_pandas(self.jobs)

    def to_arrow(self) -> Any:
        """What became of the jobs as a table of Arrow, a row per job."""
        return as_arrow(self.jobs)

    def gantt(self, axes: Any = None) -> Any:
        """Draws who ran where and when on matplotlib's ``axes``, new ones where there are none, and returns them: GPUs by node and type
        over hours, jobs in colours."""
        return gantt.draw(self.segments, self.cluster, axes)

    def __repr__(self) -> str:
        return f"<pleach.Simulation {self.metrics['num_jobs']:.0f} jobs, average JCT {self.metrics['avg_jct_s']:.0f} s>"

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.jobs)


def simulate(
    jobs: Jobs,
    policy: PolicyLike,
    *,
    cluster: Cluster | None = None,
    seed: int = 0,
    **scheduling: Any,
) -> Simulation:
    """Runs a policy on a workload to the end. Jobs in a table need a ``cluster``, as in :meth:`Workload.from_table`.

    ``scheduling`` is what the cluster can do and the scheduler knows: ``preemption``, ``restart_cost_s``, ``estimates``, ``sharing``,
    ``node_mtbf_days``, ``checkpoint_interval_s``, ``outcomes``, ``capacity``, ``mixed_types``, ``overheads``, and ``actions``, a list of names.
    """
    whole = as_workload(jobs, cluster)
    found = _pleach.simulate(whole._inner, as_inner(policy), to_json(scheduling), checked_seed(seed))
    return Simulation(found, whole.cluster)


def as_workload(jobs: Jobs, cluster: Cluster | None = None) -> Workload:
    """A workload of anything that stands for one."""
    if isinstance(jobs, Workload):
        if cluster is not None:
            raise ValueError("cluster beside a workload, which has its own: leave it out, or give workload.columns as jobs")
        return jobs
    if isinstance(jobs, (str, os.PathLike)):
        if isinstance(cluster, Workload):
            cluster = cluster.cluster
        return read(jobs) if cluster is None else read(jobs, cluster=cluster)
    return Workload.from_table(jobs, cluster)


def as_pandas(columns: Mapping[str, Any]) -> Any:
    """Columns as a DataFrame of pandas."""
    (pandas,) = needed("to_pandas", "pandas", "pandas")
    return pandas.DataFrame(dict(columns))


def as_arrow(columns: Mapping[str, Any]) -> Any:
    """Columns as a table of Arrow."""
    (pyarrow,) = needed("to_arrow", "pandas", "pyarrow")
    return pyarrow.table(dict(columns))


def _columns_of(table: Any) -> dict[str, list[Any]]:
    """Checked columns of a table as lists; nothing is cast."""
    dtype = getattr(table, "dtype", None)
    if dtype is not None and getattr(dtype, "names", None):
        columns = {name: table[name] for name in dtype.names}
    elif isinstance(table, Mapping):
        columns = dict(table)
    elif hasattr(table, "to_pydict"):
        columns = table.to_pydict()
    elif hasattr(table, "to_dict") and hasattr(table, "columns"):
        columns = {str(name): table[name] for name in table.columns}
    elif hasattr(table, "__arrow_c_stream__"):
        (pyarrow,) = needed("a table of Arrow", "pandas", "pyarrow")
        columns = pyarrow.table(table).to_pydict()
    else:
        raise ValueError(f"a table is a {type(table).__name__}: allowed are a dict of columns, a DataFrame, a table of Arrow")
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise ValueError(f"the table lacks {', '.join(missing)}: it needs {', '.join(REQUIRED)}, and has {', '.join(columns)}")
    unknown = [name for name in columns if name not in (*REQUIRED, *OPTIONAL)]
    if unknown:
        raise ValueError(f"columns {', '.join(unknown)}: allowed are {', '.join((*REQUIRED, *OPTIONAL))}")
    for name, column in columns.items():
        _check_no_times(name, column)
    lists = {name: np.asarray(column).tolist() if not isinstance(column, list) else column for name, column in columns.items()}
    lengths = {name: len(column) for name, column in lists.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns of different lengths: {lengths}")
    for name, column in lists.items():
        for row, value in enumerate(column):
            is_missing = _is_missing(value)
            if is_missing and name != "estimate_s":
                raise ValueError(f"column {name}, row {row} is {value}: allowed are values; leave the row or the column out")
            if is_missing:
                lists[name] = ["" if _is_missing(other) else other for other in column]
                break
            if name == "num_gpus" and not isinstance(value, int):
                raise ValueError(f"column num_gpus, row {row} is {value!r}: allowed are whole numbers")
    return lists


def _check_no_times(name: str, column: Any) -> None:
    """Refuses points in time and durations, which would be read as whole numbers of nanoseconds."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    first = next((value for value in column if not _is_missing(value)), None)
    if kind == "M" or isinstance(first, (datetime.date, np.datetime64)):
        raise ValueError(
            f"column {name} holds points in time ({first}): allowed are seconds, for example "
            f"(frame.{name} - frame.{name}.min()).dt.total_seconds()"
        )
    if kind == "m" or isinstance(first, (datetime.timedelta, np.timedelta64)):
        raise ValueError(f"column {name} holds durations ({first}): allowed are seconds, for example frame.{name}.dt.total_seconds()")


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them; without asking for pandas."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in ("NAType", "NaTType")
