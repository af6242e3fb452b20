"""Exports for Python's own runtimes: scikit-learn and ONNX answer as the tree, bit for bit."""

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
    words = ["export", "tree.json", "--to", "onnx,sklearn,python"]
    done = subprocess.run([sys.executable, "-m", "pleach", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def module(folder, name):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def boundary_rows(arrays):
    """Rows that meet thresholds exactly and miss them by one bit either way."""
    rng = np.random.default_rng(5)
    rows = rng.random((NUM_ROWS, len(arrays["features"])), np.float32)
    for feature, threshold in zip(arrays["feature"], arrays["threshold"]):
        if feature < 0:
            continue
        bound, infinity = np.float32(threshold), np.float32(np.inf)
        values = np.array([bound, bound, np.nextafter(bound, infinity), np.nextafter(bound, -infinity)], np.float32)
        chosen = rng.random(NUM_ROWS) < 0.7
        rows[chosen, feature] = rng.choice(values, chosen.sum())
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


def test_scikit_learn_predicts_the_score_bit_for_bit(exported):
    arrays = json.loads((exported / "tree_sklearn.json").read_text())
    loader = module(exported, "tree_sklearn")
    regressor = loader.load(exported / "tree_sklearn.json")
    rows = boundary_rows(arrays)
    scores, keys = expected(exported, rows)
    same_bits(regressor.predict(rows), scores.astype(np.float64))
    same_bits(loader.key(regressor, rows), keys)
    assert len(set(scores)) > 4 and regressor.get_n_leaves() == arrays["children_left"].count(-1)
    assert regressor.get_depth() == arrays["max_depth"]


def test_onnx_computes_score_and_key_bit_for_bit(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    arrays = json.loads((exported / "tree_sklearn.json").read_text())
    session = onnxruntime.InferenceSession(exported / "tree.onnx", providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map["features"].split(",") == arrays["features"]
    rows = boundary_rows(arrays)
    scores, keys = expected(exported, rows)
    for some in (rows, rows[:1]):
        score, key = session.run(["score", "key"], {"rows": some})
        same_bits(score, scores[: len(some), None])
        same_bits(key, keys[: len(some), None])
    # What is no number goes right at every split.
    place = 0
    while arrays["children_left"][place] != -1:
        place = arrays["children_right"][place]
    (score,) = session.run(["score"], {"rows": np.full((1, rows.shape[1]), np.nan, np.float32)})
    assert score[0, 0] == arrays["value"][place]
