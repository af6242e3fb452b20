#!/usr/bin/env python3
"""Sweep @LABEL@: @NUM_UNITS@ units on Ray. Written by `pleach sweep emit ray`.

To run it, in the folder from which its relative paths count, with the results and the program where every node sees them:
    python3 @FILE@                  on this machine, or on the cluster that RAY_ADDRESS names
    python3 @FILE@ --address auto   on the cluster that runs here
It needs `pip install ray` on every node. Units that are done are left out, so it may be killed and started again at any time.
When every unit is done it merges the results.

Exit codes of a unit, and what the driver does:
    0          done; the result is in units/K/result.json
    75         worth another try: run again, at most @RETRIES@ times
    above 128  killed by a signal: likewise; and so is a unit whose worker or node is lost
    2          its configuration or an input cannot be used: not tried again
    1, others  failed, see units/K/error.json: not tried again
Its own exit code: 0 all done, 75 what failed is worth another try, 1 a unit failed, 2 the sweep cannot be used.
"""

import argparse
import os
import subprocess
import sys
import time

SETTINGS = @SETTINGS@

AGAIN = 75
WORDS_MAX = 400


def call(settings, step, *words):
    """The command line of a step of the sweep."""
    place = ["--manifest", settings["manifest"], "--out", settings["out"]]
    return [settings["program"], "sweep", step, *place, *words]


def run_unit(settings, index):
    """Runs one unit on whatever node this is: its index, its exit code, seconds, and the last words of its errors."""
    began = time.monotonic()
    environment = dict(os.environ, RAYON_NUM_THREADS=str(settings["num_cpus"]))
    done = subprocess.run(
        call(settings, "unit", "--index", str(index)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    # A process that a signal ended has a negative code here, 128 and the signal in a shell.
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    words = done.stdout.decode(errors="replace").strip()[-WORDS_MAX:]
    return index, code, time.monotonic() - began, words


def expand(array):
    """The indexes of a list such as 0-3,7."""
    indexes = []
    for part in filter(None, array.strip().split(",")):
        first, _, last = part.partition("-")
        indexes.extend(range(int(first), int(last or first) + 1))
    return indexes


def is_worth_another_try(code):
    return code == AGAIN or code > 128


def say(words):
    print(words, flush=True)


def drive(ray, settings, indexes):
    """Runs the units, so many at a time; the units that failed with their last exit codes."""
    task = ray.remote(run_unit).options(num_cpus=settings["num_cpus"], max_retries=0)
    waiting, running, tries, failed = list(reversed(indexes)), {}, {}, {}
    num_done = 0
    while waiting or running:
        while waiting and len(running) < settings["num_parallel"]:
            index = waiting.pop()
            running[task.remote(settings, index)] = index
        ready, _ = ray.wait(list(running), num_returns=1)
        for reference in ready:
            index = running.pop(reference)
            try:
                _, code, seconds, words = ray.get(reference)
            except Exception as error:  # The worker or its node is gone, in one of several classes of Ray.
                code, seconds, words = AGAIN, 0.0, f"{type(error).__name__}: {error}"[:WORDS_MAX]
            state = f"{num_done + (code == 0)} of {len(indexes)} done, {len(failed)} failed"
            if code == 0:
                num_done += 1
                say(f"{state}: unit {index} took {seconds:.1f} s")
            elif is_worth_another_try(code) and tries.get(index, 0) < settings["num_retries"]:
                tries[index] = tries.get(index, 0) + 1
                waiting.append(index)
                say(f"{state}: unit {index} ended with {code}, try {tries[index] + 1}: {words}")
            else:
                failed[index] = code
                say(f"{state}: unit {index} FAILED with {code}: {words}")
    return failed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.replace("%", "%%"), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="the cluster [default: RAY_ADDRESS, else a Ray of its own on this machine]")
    arguments = parser.parse_args(arguments)
    settings = dict(SETTINGS)
    for key in ("manifest", "out"):
        settings[key] = os.path.abspath(settings[key])
    # A name with a folder counts from here; one without is looked for on each node.
    if os.path.dirname(settings["program"]):
        settings["program"] = os.path.abspath(settings["program"])
    try:
        status = subprocess.run(call(settings, "gather", "--missing"), stdout=subprocess.PIPE, text=True)
    except OSError as error:
        print(f"{settings['program']}: {error}; install it, or emit again with --program", file=sys.stderr)
        return 2
    if status.returncode != 0:
        return status.returncode
    indexes = expand(status.stdout)
    say(f"{len(indexes)} of {settings['num_units']} units to run")
    failed = {}
    if indexes:
        import ray

        ray.init(address=arguments.address, log_to_driver=False)
        try:
            failed = drive(ray, settings, indexes)
        finally:
            ray.shutdown()
    if not failed:
        return subprocess.run(call(settings, "gather")).returncode
    listed = ", ".join(f"{index} ({code})" for index, code in sorted(failed.items())[:20])
    say(f"{len(failed)} units failed, with exit codes: {listed}{', ...' if len(failed) > 20 else ''}")
    return AGAIN if all(map(is_worth_another_try, failed.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
