"""The field test: lists of Jobs under several systems on fresh control planes, and what came out.

    field.py run RESULTS --program PLEACH_KUBERNETES --binaries FOLDER [--systems ...] [--runs 5] ...
    field.py summary RESULTS [--against kueue]
    field.py bursts RESULTS --program PLEACH_KUBERNETES --binaries FOLDER [--runs 3]
    field.py large RESULTS --program PLEACH_KUBERNETES --binaries FOLDER [--runs 1]

`run` appends one JSON line a cell to RESULTS and passes over cells that are there already, so it can be cut off and go on. Cells
of one list, mode and run stand one after the other: with `--parallel N` they share the load of the machine and form pairs.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import summary
from bursts import Burst
from cell import NUM_PORTS, Cell, System
from large_cluster import Large
from plane import Failed

KEYS = ("list", "system", "mode", "run", "scale")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="runs the cells that RESULTS lacks")
    run.add_argument("results", type=Path)
    run.add_argument("--program", type=Path, required=True, help="pleach-kubernetes")
    run.add_argument("--binaries", type=Path, required=True, help="what deploy/kubernetes/tests/plane/build.sh --field prints")
    run.add_argument("--lists", default="1,2,3", help="seeds of lists")
    run.add_argument("--systems", default="kube-scheduler kueue pleach:sjf", help="NAME[:POLICY[:KEY=VALUE,...]], by spaces")
    run.add_argument("--modes", default="free,barrier", help="free: each pod counts for itself; barrier: gangs wait for all pods")
    run.add_argument("--runs", type=int, default=5)
    run.add_argument("--first", type=int, default=1, help="number of the first run")
    run.add_argument("--scale", type=float, default=1.0, help="durations and arrivals are divided by this; results are not")
    run.add_argument("--limit", type=float, default=600.0, help="longest time for a cell, s of the list")
    run.add_argument("--parallel", type=int, default=1, help="planes at once")
    run.add_argument("--port-base", type=int, default=23000, help=f"the first of 64 times {NUM_PORTS} ports")
    run.add_argument("--stop-at", type=float, default=0, help="no cell begins that could end after this Unix time, s")
    for name, words, num_runs, num_nodes in (
            ("bursts", "how soon free GPUs are taken, by turns; RESULTS gets a line each", 3, 8),
            ("large", "how soon many Jobs start on many nodes, and what that costs; RESULTS gets a line each", 1, 1000)):
        turns = commands.add_parser(name, help=words)
        turns.add_argument("results", type=Path)
        turns.add_argument("--program", type=Path, required=True, help="pleach-kubernetes")
        turns.add_argument("--binaries", type=Path, required=True, help="what deploy/kubernetes/tests/plane/build.sh --field prints")
        turns.add_argument("--systems", default="kube-scheduler pleach:sjf", help="as for run")
        turns.add_argument("--runs", type=int, default=num_runs)
        turns.add_argument("--nodes", type=int, default=num_nodes, help="nodes of eight GPUs")
        turns.add_argument("--port-base", type=int, default=24000)
        if name == "bursts":
            turns.add_argument("--pods", type=int, default=64, help="pods of one GPU")
            turns.add_argument("--waiting", action="store_true", help="the nodes are closed until all pods wait")
        else:
            turns.add_argument("--jobs", type=int, default=5000, help="Jobs of one pod of two GPUs")
            turns.add_argument("--quiet", type=float, default=60, help="how long nothing happens afterwards, s")
    one = commands.add_parser("cell", help="one cell, for `run`")
    one.add_argument("text")
    show = commands.add_parser("summary", help="tables of RESULTS")
    show.add_argument("results", type=Path, nargs="+")
    show.add_argument("--against", default="kueue,kube-scheduler", help="systems that others are compared with")
    show.add_argument("--scale", type=float, default=None, help="only cells of this scale")
    return parser.parse_args()


def cells(words):
    """All cells of a run, those that are to be compared next to each other."""
    return [{"list": number, "system": system, "mode": mode, "run": run, "scale": words.scale}
            for run in range(words.first, words.first + words.runs)
            for number in map(int, words.lists.split(","))
            for mode in words.modes.split(",")
            for system in words.systems.split()]


def key(cell):
    return tuple(cell[name] for name in KEYS)


def run_all(words):
    for text in words.systems.split():
        System(text)
    there = {key(cell) for cell in summary.read([words.results])}
    left = [cell for cell in cells(words) if key(cell) not in there]
    print(f"field: {len(left)} cells, {len(there)} are there already", flush=True)
    running, number, num_failed = {}, 0, 0
    try:
        while left or running:
            while left and len(running) < words.parallel:
                if words.stop_at and time.time() + (words.limit / words.scale + 60) > words.stop_at:
                    print(f"field: {len(left)} cells are left to another time", flush=True)
                    left = []
                    break
                cell = left.pop(0)
                running[start(words, cell, number)] = cell
                number += 1
                # Planes that come up at the same moment slow each other down.
                time.sleep(2)
            for process in [process for process in running if process.poll() is not None]:
                num_failed += take(words, process, running.pop(process))
            time.sleep(0.2)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return 1 if num_failed else 0


def start(words, cell, number):
    """A cell as a process of its own; ports of one that has just ended are not taken again at once."""
    task = cell | {"program": str(words.program.resolve()), "binaries": str(words.binaries.resolve()), "limit": words.limit,
                   "port": words.port_base + NUM_PORTS * (number % 64)}
    return subprocess.Popen([sys.executable, __file__, "cell", json.dumps(task)], stdout=subprocess.PIPE, text=True)


def take(words, process, cell):
    """Writes what a cell said; whether it failed."""
    text = process.stdout.read()
    if process.returncode != 0 or not text.strip():
        print(f"field: {cell} failed", file=sys.stderr, flush=True)
        return True
    found = cell | json.loads(text.splitlines()[-1])
    with open(words.results, "a") as results:
        results.write(json.dumps(found) + "\n")
    shown = " ".join(f"{name} {found[name]:.1f}" for name in ("mean_s", "p99_s", "makespan_s", "num_left", "num_partial"))
    print(f"{time.strftime('%H:%M:%S')} {cell['list']} {cell['mode']} {cell['system']} {cell['run']}: {shown}", flush=True)
    return False


def run_turns(words):
    """Bursts or large clusters, one cell after the other."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if words.command == "bursts":
        kind, keys = Burst, ("half_s", "all_s", "per_s", "load")
        size = {"num_nodes": words.nodes, "num_pods": words.pods, "waits": words.waiting}
    else:
        kind, keys = Large, ("all_s", "per_s", "num_lists", "load")
        size = {"num_nodes": words.nodes, "num_jobs": words.jobs, "quiet_s": words.quiet}
    turns = [system for _ in range(words.runs) for system in words.systems.split()]
    num_failed = 0
    for number, system in enumerate(turns):
        port = words.port_base + NUM_PORTS * (number % 64)
        found = in_folder(lambda folder, system=system, port=port: kind(
            folder, str(words.binaries.resolve()), str(words.program.resolve()), port, System(system), **size))
        num_failed += not found
        if found:
            with open(words.results, "a") as results:
                results.write(json.dumps({"system": system} | size | found) + "\n")
            shown = " ".join(f"{name} {found[name]:.2f}" for name in keys)
            print(f"{time.strftime('%H:%M:%S')} {system}: {shown}", flush=True)
    return 1 if num_failed else 0


def run_cell(text):
    task = json.loads(text)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = in_folder(lambda folder: Cell(
        folder, task["binaries"], task["program"], task["port"], System(task["system"]), task["list"], task["mode"],
        task["scale"], task["limit"]))
    if found:
        print(json.dumps(found), flush=True)
    return 0 if found else 1


def in_folder(make):
    """Runs a cell in a folder of its own; what it found, none where it failed."""
    folder = tempfile.mkdtemp(prefix="pleach-field.")
    cell = None
    try:
        cell = make(folder)
        return cell.run()
    except Failed as error:
        print(f"field: {error}", file=sys.stderr)
        for path in sorted(Path(folder, "log").glob("*.log")):
            print(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-8:]), file=sys.stderr)
        return None
    finally:
        if cell:
            cell.plane.stop()
        if os.environ.get("PLEACH_KEEP", "0") != "1":
            shutil.rmtree(folder, ignore_errors=True)


def main():
    words = arguments()
    if words.command == "run":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return run_all(words)
    if words.command in ("bursts", "large"):
        return run_turns(words)
    if words.command == "cell":
        return run_cell(words.text)
    print(summary.text(summary.read(words.results), words.against.split(","), words.scale))
    return 0


if __name__ == "__main__":
    sys.exit(main())
