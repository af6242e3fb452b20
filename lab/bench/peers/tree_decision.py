"""One decision of a tree over 64 candidates: ours beside ONNX Runtime, in turn, on one thread.

    cargo build --release --workspace --example tree_cost && cargo build --release --workspace --bin pleach
    python lab/bench/peers/tree_decision.py TREE.json
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[3]
CANDIDATES = 64


def per_call_ns(work, seconds=0.2):
    work()
    num, start = 0, time.perf_counter_ns()
    while time.perf_counter_ns() - start < seconds * 1e9:
        for _ in range(20):
            work()
        num += 20
    return (time.perf_counter_ns() - start) / num


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release = ROOT / "target/release"
        export = [release / "pleach", "export", args.tree, "--to", "onnx", "--out", folder]
        subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
        files = {path.name: path for path in pathlib.Path(folder).rglob("*")}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(files["tree.onnx"]), options)
        width = session.get_inputs()[0].shape[1]
        rows = numpy.random.default_rng(1).random((CANDIDATES, width), numpy.float32)
        runs = {"ours": [], "ONNX Runtime": []}
        for _ in range(args.rounds):
            ours = subprocess.run([release / "examples/tree_cost", args.tree, "1"], capture_output=True, check=True)
            answer = json.loads(ours.stdout)
            runs["ours"] += answer["decision_ns"]
            runs["ONNX Runtime"].append(per_call_ns(lambda: session.run(["score"], {"rows": rows})))
    medians = {name: numpy.median(times) for name, times in runs.items()}
    print(f"{answer['leaves']} leaves, {CANDIDATES} candidates, median of {args.rounds} rounds in turn")
    for name, median in medians.items():
        low, high = min(runs[name]), max(runs[name])
        print(f"{name}: {median:,.0f} ns ({low:,.0f} to {high:,.0f}), {median / medians['ours']:.1f} times ours")


if __name__ == "__main__":
    main()
