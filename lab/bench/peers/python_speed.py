"""How fast the Python package steps beside Rust's own vector environment: random admissible actions, everything in one run.

Rounds alternate, and processor time is what counts (all threads of one process, without its start), so that what else the machine
does hits all alike. Prints a table of medians: the one in docs/python.md."""

import argparse
import os
import resource
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
from gymnasium.vector import AutoresetMode

import pleach

RUST = Path(os.environ.get("STEP_COST", Path(__file__).parents[3] / "target/release/examples/step_cost"))


def rust(args, num_envs):
    """Steps per second of Rust's loop."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(RUST), args.env, "1", str(args.seconds), str(num_envs)]
    done = subprocess.run(command, env={**os.environ, "RAYON_NUM_THREADS": str(args.threads)}, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(done.stdout.splitlines()[-1].split()[2]) / took_s


def python(args, num_envs, copy, single=False, drawing="rust"):
    """Steps per second of a loop in Python."""
    if single:
        env = pleach.PleachEnv(args.env, copy=copy)
        env.reset(seed=1)

        def step():
            _, _, terminated, truncated, _ = env.step(env.random_action())
            if terminated or truncated:
                env.reset()
    else:
        envs = pleach.PleachVectorEnv(
            args.env, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, copy=copy, num_threads=args.threads
        )
        observation, _ = envs.reset(seed=1)
        rng = np.random.default_rng(1)

        def step():
            if drawing == "rust":
                envs.step(envs.random_actions())
            else:
                envs.step((rng.random(mask.shape, np.float32) * mask).argmax(1))

        mask = envs._views["mask"]
    for _ in range(50):
        step()
    num, began, limit = 0, time.process_time(), time.perf_counter() + args.seconds
    while time.perf_counter() < limit:
        for _ in range(20):
            step()
        num += 20 * num_envs
    return num / (time.process_time() - began)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/Philly-v0")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rows = {}
    for _ in range(args.rounds):
        for num_envs in (1, 16, 64):
            found = {
                "Rust": rust(args, num_envs),
                "Python, copy=False": python(args, num_envs, False),
                "Python, copy=True": python(args, num_envs, True),
                "Python, copy=False, drawn by NumPy": python(args, num_envs, False, drawing="numpy"),
            }
            if num_envs == 1:
                found["Python, one environment, copy=True"] = python(args, 1, True, single=True)
                found["Python, one environment, copy=False"] = python(args, 1, False, single=True)
            for name, rate in found.items():
                rows.setdefault(name, {}).setdefault(num_envs, []).append(rate)
    print(f"{args.env}, {args.threads} threads, {args.rounds} rounds of {args.seconds:g} s; thousands of steps per second of processor time")
    print("| | N = 1 | N = 16 | N = 64 |\n|---|---:|---:|---:|")
    for name, columns in rows.items():
        cells = []
        for num_envs in (1, 16, 64):
            rates = columns.get(num_envs)
            if rates is None:
                cells.append("")
                continue
            ratio = statistics.median(own / other for own, other in zip(rates, rows["Rust"][num_envs]))
            cells.append(f"{statistics.median(rates) / 1e3:.0f}" + (f" ({100 * ratio:.0f} %)" if name != "Rust" else ""))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
