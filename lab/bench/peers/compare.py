"""Runs every learner in turn, several rounds, and prints medians per frame: the table of README.md.

Rounds alternate, so that what else the machine does hits all alike. Processor time counts all threads and is what to trust on a
machine that is not idle; wall-clock time is what to trust on one that is."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FRAMES = Path(os.environ.get("FRAMES", HERE.parents[2] / "target/release/examples/frames"))
PARTS = ["update", "collect", "learn"]


def commands(args, hidden):
    sizes = {"env": args.env, "envs": args.envs, "steps": args.steps, "epochs": args.epochs, "minibatch": args.minibatch,
             "hidden": hidden, "seconds": args.seconds}
    pairs = [f"{key}={value}" for key, value in sizes.items()]
    flags = [word for key, value in sizes.items() for word in (f"--{key}", str(value))] + ["--threads", str(args.threads)]
    yield "pleach", [str(FRAMES), "update", *pairs]
    for name in ("torch", "sb3"):
        script = [sys.executable, str(HERE / f"{name}_ppo.py"), *flags]
        yield f"{name}-ragged", [*script, "--ragged"]
        if not args.ragged_only:
            yield name, script


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("envs", 16), ("steps", 256), ("epochs", 3), ("minibatch", 512), ("threads", 2), ("rounds", 5)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--env", default="Pleach/Philly-v0")
    parser.add_argument("--hidden", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--ragged-only", action="store_true", help="leave out the padded networks")
    parser.add_argument("--wait", choices=["passive", "active"], default="passive", help="what idle threads of PyTorch do")
    parser.add_argument("--jsonl", help="keeps every line")
    args = parser.parse_args()
    # Threads of PyTorch that wait go to sleep: spinning ones would be counted as work, and on a busy machine keep others out.
    # For wall-clock time on an idle one they may spin (`--wait active`).
    environment = {**os.environ, "OMP_WAIT_POLICY": args.wait.upper(), "RAYON_NUM_THREADS": str(args.threads)}
    kept = open(args.jsonl, "a") if args.jsonl else None
    for hidden in args.hidden:
        rounds = {}
        for _ in range(args.rounds):
            for name, command in commands(args, hidden):
                line = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
                rounds.setdefault(name, []).append(json.loads(line))
                if kept:
                    print(json.dumps({**json.loads(line), "threads": args.threads}), file=kept, flush=True)
        print_table(hidden, args.threads, rounds)


def per_frame(rounds, part, column):
    """Medians of microseconds per frame: column 1 is wall-clock time, 2 processor time."""
    return statistics.median(line[part][column] / line[part][0] * 1e6 for line in rounds)


def print_table(hidden, threads, rounds):
    print(f"\nhidden {hidden}, {threads} threads; us per frame, medians of {len(next(iter(rounds.values())))} rounds")
    head = [f"{kind} {part}" for kind in ("wall", "cpu") for part in PARTS]
    print(f"| {'learner':14} | {' | '.join(head)} | cpu over pleach's |")
    print("|---" * (len(head) + 2) + "|")
    base = per_frame(rounds["pleach"], "update", 2)
    for name, lines in rounds.items():
        cells = [f"{per_frame(lines, part, column):.1f}" for column in (1, 2) for part in PARTS]
        print(f"| {name:14} | {' | '.join(cells)} | {per_frame(lines, 'update', 2) / base:.2f} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
