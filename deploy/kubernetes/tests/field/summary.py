"""Tables of the field test: means over runs, and ratios of paired runs with intervals."""

import json
import math
import statistics

# Two-sided 95 % points of Student's t by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def read(paths):
    """Cells of files; a line that was cut off is passed over."""
    found = []
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def by_run(cells, place):
    return {cell["run"]: cell for cell in cells if (cell["list"], cell["mode"], cell["system"]) == place}


def ratio(cells, others, name):
    """The geometric mean of the ratios of runs that both have, and its interval of 95 %; none without such runs."""
    logs = [math.log(cells[run][name] / others[run][name]) for run in sorted(cells.keys() & others.keys())]
    if not logs:
        return None
    middle = statistics.fmean(logs)
    if len(logs) == 1:
        return math.exp(middle), None
    half = T.get(len(logs) - 1, 1.96) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), (math.exp(middle - half), math.exp(middle + half))


def shown(value):
    if value is None:
        return "-"
    middle, interval = value
    return f"{middle:.2f}" if interval is None else f"{middle:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def row(place, runs, all_cells, against):
    cells = list(runs.values())

    def mean(of):
        return statistics.fmean(of(cell) for cell in cells)
    left = sum(cell["num_left"] for cell in cells)
    own = [name for name in ("kube-scheduler", "kueue", "pleach") if name in cells[0]["cpu_s"]]
    words = [str(place[0]), place[1], f"`{place[2]}`", str(len(cells)),
             ("at least " if left else "") + f"{mean(lambda cell: cell['mean_s']):.1f}",
             f"{mean(lambda cell: cell['median_s']):.1f}", f"{mean(lambda cell: cell['p99_s']):.0f}",
             f"{mean(lambda cell: cell['makespan_s']):.0f}", f"{mean(lambda cell: cell['useful']):.2f}", str(left),
             f"{mean(lambda cell: cell['num_partial']):.1f}", f"{mean(lambda cell: sum(cell['calls'].values())):.0f}",
             f"{mean(lambda cell: sum(cell['cpu_s'][name] for name in own)):.1f}",
             f"{mean(lambda cell: cell['cpu_s']['kube-apiserver']):.1f}"]
    for other in against:
        others = by_run(all_cells, (place[0], place[1], other)) if other != place[2] else {}
        words += [shown(ratio(runs, others, "mean_s")), shown(ratio(runs, others, "p99_s"))]
    return "| " + " | ".join(words) + " |"


def text(cells, against, scale=None):
    """A table in Markdown; ratios below 1 are better than the other system."""
    cells = [cell for cell in cells if scale in (None, cell["scale"])]
    head = ["list", "mode", "system", "runs", "mean", "median", "p99", "makespan", "useful", "left", "partial", "calls", "CPU s",
            "API s"]
    head += [word for other in against for word in (f"mean / {other}", f"p99 / {other}")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for place in sorted({(cell["list"], cell["mode"], cell["system"]) for cell in cells}):
        lines.append(row(place, by_run(cells, place), cells, against))
    return "\n".join(lines)
