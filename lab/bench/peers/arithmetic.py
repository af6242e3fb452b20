"""One training step on one minibatch, ours and PyTorch's (padded, ragged), in turn; medians."""

import argparse
import json
import os
import statistics
import subprocess
import sys

from compare import FRAMES, HERE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--hidden", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--minibatch", type=int, nargs="+", default=[256, 4096])
    parser.add_argument("--ragged-only", action="store_true", help="leave out the padded network")
    parser.add_argument("--wait", choices=["passive", "active"], default="passive", help="what idle threads of PyTorch do")
    args = parser.parse_args()
    environment = {**os.environ, "OMP_WAIT_POLICY": args.wait.upper(), "RAYON_NUM_THREADS": str(args.threads)}
    print("| hidden | minibatch | learner | us per decision, wall | cpu | candidates |\n|---|---|---|---|---|---|")
    for hidden in args.hidden:
        for minibatch in args.minibatch:
            steps, rounds = minibatch // 16, {}
            ours = [str(FRAMES), "step", f"hidden={hidden}", f"steps={steps}", f"seconds={args.seconds}"]
            theirs = [sys.executable, str(HERE / "torch_ppo.py"), "--one-step", "--hidden", str(hidden), "--steps", str(steps),
                      "--seconds", str(args.seconds), "--threads", str(args.threads)]
            commands = [ours, [*theirs, "--ragged"], *([] if args.ragged_only else [theirs])]
            for _ in range(args.rounds):
                for command in commands:
                    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                    line = json.loads(run.stdout)
                    rounds.setdefault(line["who"], []).append(line)
            for who, lines in rounds.items():
                wall, cpu = (statistics.median(l["learn"][i] / l["learn"][0] * 1e6 for l in lines) for i in (1, 2))
                candidates = statistics.median(l["candidates_mean"] for l in lines)
                print(f"| {hidden} | {minibatch} | {who} | {wall:.2f} | {cpu:.2f} | {candidates:.1f} |", flush=True)


if __name__ == "__main__":
    main()
