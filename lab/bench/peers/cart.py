"""Our tree learner beside scikit-learn's: the same table, the same limits, one after the other.

    cargo build --release --workspace --example fit_table
    python lab/bench/peers/cart.py            processor time of both, what both explain, and where their splits part
    python lab/bench/peers/cart.py --mint     scikit-learn's trees of small tables, for distill/tests/scikit_learn.txt
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import sklearn
from sklearn.tree import DecisionTreeRegressor

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "target/release/examples/fit_table"
TESTED = ROOT / "distill/tests/scikit_learn.txt"
MASK = (1 << 64) - 1


def mixed(number):
    """One step of SplitMix64, as the test in Rust has it."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def small_table(seed, rows, width):
    """Integers below 64, and targets of which sums are exact in any order."""
    at = lambda row, column: mixed(seed << 32 | row << 8 | column)
    features = numpy.array([[at(row, column) >> 58 for column in range(width)] for row in range(rows)], numpy.float32)
    noise = numpy.array([(at(row, 255) >> 54) / 1024 for row in range(rows)])
    target = 4.0 * (features[:, 0] > 31) + features[:, 1] / 16 + 2.0 * (features[:, 2] > features[:, 0]) + noise
    return features, target


def fitted(features, target, leaves, depth, leaf_rows):
    learner = DecisionTreeRegressor(max_leaf_nodes=leaves, max_depth=depth, min_samples_leaf=leaf_rows, random_state=0)
    return learner.fit(features, target)


def outline(tree, node=0):
    """Splits and leaves, depth first, left before right."""
    if tree.children_left[node] < 0:
        return [f"leaf {tree.n_node_samples[node]} {tree.value[node][0][0]!r}"]
    split = [f"split {tree.feature[node]} {tree.threshold[node]!r}"]
    return split + outline(tree, tree.children_left[node]) + outline(tree, tree.children_right[node])


def mint():
    lines = [f"scikit-learn {sklearn.__version__}, DecisionTreeRegressor; made by lab/bench/peers/cart.py --mint"]
    for seed, rows, width, leaves, depth, leaf_rows in CASES:
        lines.append(f"table {seed} {rows} {width} {leaves} {depth} {leaf_rows}")
        features, target = small_table(seed, rows, width)
        lines += outline(fitted(features, target, leaves, depth, leaf_rows).tree_)
    TESTED.write_text("\n".join(line.replace("np.float64(", "").replace(")", "") for line in lines) + "\n")


CASES = [
    (1, 200, 4, 4, 16, 1),
    (2, 500, 6, 8, 16, 5),
    (3, 1000, 8, 16, 16, 10),
    (4, 1000, 8, 32, 5, 10),
    (5, 2000, 12, 32, 16, 20),
    (6, 3000, 16, 64, 10, 7),
]


def large_table(rows, width, seed):
    """A third continuous, a third with few values, a third flags: about what a decision point has."""
    draw = numpy.random.default_rng(seed)
    features = draw.random((rows, width), numpy.float32)
    third = width // 3
    features[:, third : 2 * third] = numpy.floor(features[:, third : 2 * third] * 64) / 64
    features[:, 2 * third :] = features[:, 2 * third :] < 0.3
    target = 3 * features[:, 0] * features[:, third] + numpy.sin(6 * features[:, 1]) + 2 * features[:, 2 * third]
    target += features[:, 2] * (features[:, third + 1] > 0.5) + 0.3 * draw.standard_normal(rows, numpy.float32)
    return features, target.astype(numpy.float32)


def ours(features, target, leaves, depth, leaf_rows):
    with tempfile.NamedTemporaryFile(suffix=".f32") as table:
        features.astype("<f4").tofile(table)
        target.astype("<f4").tofile(table)
        table.flush()
        command = [PROGRAM, table.name, *features.shape, leaves, depth, leaf_rows]
        answer = subprocess.run([str(part) for part in command], capture_output=True, check=True, text=True)
    return json.loads(answer.stdout)


def answers(nodes, features):
    """What a tree of ours answers for each row."""
    at = numpy.zeros(len(features), numpy.int64)
    is_split = numpy.array(["feature" in node for node in nodes])
    column = lambda key: numpy.array([node.get(key, 0) for node in nodes])
    feature, threshold, left, right = map(column, ("feature", "threshold", "left", "right"))
    while is_split[at].any():
        value = features[numpy.arange(len(features)), feature[at]]
        step = numpy.where(value <= threshold[at].astype(numpy.float32), left[at], right[at])
        at = numpy.where(is_split[at], step, at)
    return column("score")[at]


def explained(target, answer):
    return 1 - ((target - answer) ** 2).sum() / ((target - target.mean()) ** 2).sum()


def compare(args):
    features, target = large_table(args.rows, args.features, args.seed)
    sizes = (args.leaves, args.depth, args.leaf_rows)
    rounds = []
    for _ in range(args.rounds):
        mine = ours(features, target, *sizes)
        before = time.process_time()
        theirs = fitted(features, target, *sizes)
        rounds.append((mine["processor_s"], time.process_time() - before))
        print(f"processor time: ours {rounds[-1][0]:.2f} s, scikit-learn {rounds[-1][1]:.2f} s", flush=True)
    ratio = numpy.median([mine / other for mine, other in rounds])
    print(f"ours takes {ratio:.3f} of scikit-learn's processor time (median of {len(rounds)})")
    print(f"explained: ours {explained(target, answers(mine['nodes'], features)):.6f}, "
          f"scikit-learn {explained(target, theirs.predict(features)):.6f}")
    same = sum(1 for one, other in zip(mine["nodes"], outline(theirs.tree_)) if is_same(one, other))
    print(f"the first {same_until(mine['nodes'], outline(theirs.tree_))} nodes are the same, depth first; {same} of "
          f"{len(mine['nodes'])} in their places")


def is_same(mine, other):
    kind, first, second = other.replace("np.float64(", "").replace(")", "").split()
    if kind == "leaf":
        return mine.get("samples") == int(first)
    return mine.get("feature") == int(first) and abs(mine["threshold"] - float(second)) < 1e-6


def same_until(mine, others):
    return next((index for index, pair in enumerate(zip(mine, others)) if not is_same(*pair)), len(mine))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mint", action="store_true", help="write scikit-learn's trees of small tables for the test")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--leaves", type=int, default=256)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--leaf-rows", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.exit(mint() if args.mint else compare(args))


if __name__ == "__main__":
    main()
