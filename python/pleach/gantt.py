"""A schedule as a labelled picture, drawn by matplotlib (``pip install matplotlib``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pleach._libraries import needed

#: Colours of jobs, which repeat.
NUM_COLOURS = 20
#: Labels of nodes, at most: beyond, those of the types alone.
NODES_LABELLED = 40


def draw(segments: Mapping[str, Any], cluster: Mapping[str, Any], axes: Any = None) -> Any:
    """Draws the segments of a record on matplotlib's ``axes``, new ones where there are none, and returns them.

    A row is a GPU, from the first node up, and a bar a time on it in the colour of its job; a share of a GPU is as high as it is large.
    """
    matplotlib, pyplot = needed("gantt", "plot", "matplotlib", "matplotlib.pyplot")
    first, of_type = rows_of(cluster)
    num_gpus = first[-1]
    if axes is None:
        _, axes = pyplot.subplots(figsize=(10, min(2 + 0.08 * num_gpus, 14)))
    colours, of_job = matplotlib.colormaps["tab20"], {job: place for place, job in enumerate(dict.fromkeys(segments["job_id"]))}
    shares: dict[str, list[tuple[float, float]]] = {}
    for place, words in enumerate(segments["nodes"]):
        begin_h, end_h = segments["from_s"][place] / 3600, segments["to_s"][place] / 3600
        height, colour = int(segments["gpu_milli"][place]) / 1000, colours(of_job[segments["job_id"][place]] % NUM_COLOURS)
        for node, gpus in held(words):
            for gpu in gpus:
                level = 0.0
                if height < 1:
                    # Shares of a GPU lie above those that began before them and have not ended.
                    beside = [one for one in shares.get(f"{node}:{gpu}", []) if one[0] > begin_h]
                    level = min(sum(one[1] for one in beside), 1 - height)
                    shares[f"{node}:{gpu}"] = [*beside, (end_h, height)]
                axes.broken_barh([(begin_h, end_h - begin_h)], (first[node] + gpu + level, 0.9 * height), facecolor=colour)
    names = [f"{kind}, node {node}" for node, kind in enumerate(of_type)]
    marked = list(range(len(names)))
    if len(names) > NODES_LABELLED:
        marked = [node for node in marked if node == 0 or of_type[node] != of_type[node - 1]]
    axes.set_yticks([first[node] for node in marked], [names[node] for node in marked], fontsize="small", va="bottom")
    axes.set_ylim(0, num_gpus)
    axes.set_xlabel("simulated time, h")
    axes.set_ylabel(f"{num_gpus} GPUs by type and node")
    axes.set_title(f"{len(of_job)} jobs, each in its colour")
    return axes


def rows_of(cluster: Mapping[str, Any]) -> tuple[list[int], list[str]]:
    """The row of the first GPU of each node, and behind them the number of all; the type of each node."""
    first, of_type = [0], []
    for group in cluster["node_groups"]:
        for _ in range(group["count"]):
            first.append(first[-1] + group["gpus_per_node"])
            of_type.append(str(group["gpu_type"]))
    return first, of_type


def held(words: str) -> Iterator[tuple[int, list[int]]]:
    """Nodes and their GPUs of the words of a record: ``3:0-7 4:0,2`` are all eight GPUs of node 3, and two of node 4."""
    for word in words.split():
        nodes, gpus = word.split(":")
        numbers = [gpu for part in gpus.split(",") for gpu in _range(part)]
        for node in _range(nodes):
            yield node, numbers


def _range(part: str) -> range:
    begin, _, end = part.partition("-")
    return range(int(begin), int(end or begin) + 1)
