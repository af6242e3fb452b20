"""An export for Python's own runtime: ONNX answers as the tree, bit for bit."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
NUM_ROWS = 1000


def short_and_small(observation):
    """Weighs what is left of a job, its size and the speed that it would have; never holds where something can start."""
    names = [name for name, _ in pleach.PleachEnv(ID).features["candidates"]]
    remaining, num_gpus, speed = (
        observation["candidates"][:, names.index(name)].astype(np.float64) for name in ("remaining_s", "num_gpus", "speed_ratio")
    )
    scores = speed - remaining * (1.0 + num_gpus)
    scores[0] -= 1e3
    return scores


@pytest.fixture(scope="module", params=["plain", "weighted"])
def exported(request, tmp_path_factory):
    """A distilled tree, without and with a weighted key, and the folder of its exports."""
    # A teacher that no tie key says in a few leaves, and nothing pruned.
    config = {"leaves": [16], "rounds": 0, "episodes": 4, "tie_keys": ["index"], "prune": {"tries": 0}, "tolerance": 1.0}
    found = pleach.distill(short_and_small, ID, settings={"num_jobs": 30, "load": 1.5}, **config)
    document = json.loads(found.file)
    if request.param == "weighted":
        key = [{"feature": name, "weight": weight} for name, weight in (("num_gpus", 0.009), ("speed_ratio", 0.22), ("num_left", -0.73))]
        document.update(version=2, key_weights=key)
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "tree.json").write_text(json.dumps(document))
    words = ["export", "tree.json", "--to", "onnx,python"]
    done = subprocess.run([sys.executable, "-m", "pleach", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def module(folder, name):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def boundary_rows(nodes, names):
    """Rows that meet thresholds exactly and miss them by one bit either way."""
    rng = np.random.default_rng(5)
    rows = rng.random((NUM_ROWS, len(names)), np.float32)
    for node in nodes:
        if "threshold" not in node:
            continue
        bound, infinity = np.float32(node["threshold"]), np.float32(np.inf)
        values = np.array([bound, bound, np.nextafter(bound, infinity), np.nextafter(bound, -infinity)], np.float32)
        chosen = rng.random(NUM_ROWS) < 0.7
        rows[chosen, names.index(node["feature"])] = rng.choice(values, chosen.sum())
    return rows


def expected(folder, rows):
    """Scores by the scheduler, keys by the module of Python that is held to it elsewhere."""
    policy = pleach.load(folder / "tree.json")
    num_candidate = len(pleach.PleachEnv(ID).features["candidates"])
    alone = {"candidates": rows[:, None, :num_candidate].copy(), "global": rows[:, num_candidate:].copy()}
    scores = policy.score({**alone, "mask": np.ones((len(rows), 1), np.int8)})
    plain = module(folder, "tree")
    keys = np.array([plain.key([float(value) for value in row]) for row in rows])
    return np.asarray(scores, np.float32).reshape(-1), keys


def same_bits(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


def test_onnx_computes_score_and_key_bit_for_bit(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    nodes = json.loads((exported / "tree.json").read_text())["nodes"]
    session = onnxruntime.InferenceSession(exported / "tree.onnx", providers=["CPUExecutionProvider"])
    rows = boundary_rows(nodes, session.get_modelmeta().custom_metadata_map["features"].split(","))
    scores, keys = expected(exported, rows)
    assert len(set(scores)) > 4
    for some in (rows, rows[:1]):
        score, key = session.run(["score", "key"], {"rows": some})
        same_bits(score, scores[: len(some), None])
        same_bits(key, keys[: len(some), None])
    # What is no number goes right at every split.
    place = 0
    while "threshold" in nodes[place]:
        place = nodes[place]["right"]
    (score,) = session.run(["score"], {"rows": np.full((1, rows.shape[1]), np.nan, np.float32)})
    assert score[0, 0] == np.float32(nodes[place]["score"])
