"""Networks through ONNX: what is exported computes in onnxruntime what Pleach computes, and models of others decide in Pleach."""

import subprocess
import sys

import numpy as np
import pytest

import pleach
from test_environments import views

ID = "Pleach/GavelMulti-v1"
LISTS = {"num_jobs": 20, "load": 2.0}


def run(folder, *words):
    done = subprocess.run([sys.executable, "-m", "pleach", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def decisions(policy, num):
    """Observations on the way of a policy."""
    env = pleach.PleachEnv(ID, **LISTS)
    observation, _ = env.reset(seed=3)
    for _ in range(num):
        yield observation
        mask = observation["mask"].astype(bool)
        action = int(np.argmax(policy.score(observation)))
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()


def same_scores(policy, session, num):
    """Scores of admissible candidates: equal but for the order of sums."""
    num_choices = 0
    for observation in decisions(policy, num):
        mask = observation["mask"].astype(bool)
        ours = policy.score(observation)[mask]
        rows = {"candidates": observation["candidates"][mask][None], "global": observation["global"][None]}
        (theirs,) = session.run(["scores"], rows)
        np.testing.assert_allclose(ours, theirs.ravel(), rtol=2e-4, atol=2e-4)
        num_choices += mask.sum() > 2
    assert num_choices > num / 4


@pytest.mark.parametrize("architecture", ["set", "attention"])
def test_an_exported_network_scores_in_onnxruntime_as_in_pleach(tmp_path, architecture):
    onnxruntime = pytest.importorskip("onnxruntime")
    settings = {
        "prior": '"none"', "warm_start": '"none"', "train.num_updates": 1, "train.num_steps": 16, "num_envs": 16,
        "train.network.architecture": f'"{architecture}"', "train.network.heads": 1,
    }  # fmt: skip
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run(tmp_path, "train", "--env", ID, "--num-jobs", "20", "--out", "run", "--quiet", *words)
    run(tmp_path, "export", "run/network.ckpt", "--to", "onnx", "--out", "code")
    policy = pleach.load(str(tmp_path / "run/network.ckpt"))
    session = onnxruntime.InferenceSession(tmp_path / "code/network.onnx", providers=["CPUExecutionProvider"])
    same_scores(policy, session, 60)
    # The file is a policy as it is.
    again = pleach.load(str(tmp_path / "code/network.onnx"))
    for observation in decisions(policy, 30):
        np.testing.assert_allclose(policy.score(observation), again.score(observation), rtol=1e-5, atol=1e-6)


def test_a_model_as_pytorch_writes_it_decides_in_pleach(tmp_path):
    """A layer, a norm, attention over candidates, the global row repeated by Shape, Gather and Expand, a head; N is free."""
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    space = pleach.PleachEnv(ID, **LISTS).observation_space
    num_features, num_global = space["candidates"].shape[1], space["global"].shape[0]
    rng, width = np.random.default_rng(1), 24
    arrays = {
        "w1": rng.normal(0, 0.3, (num_features + num_global, width)), "b1": rng.normal(0, 0.3, width),
        "scale": rng.normal(1, 0.1, width), "bias": rng.normal(0, 0.1, width),
        "q": rng.normal(0, 0.3, (width, width)), "k": rng.normal(0, 0.3, (width, width)), "v": rng.normal(0, 0.3, (width, width)),
        "w2": rng.normal(0, 1, (1, width)), "b2": rng.normal(0, 1, 1),
    }  # fmt: skip
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    for name, numbers in {"one": [1], "index": 1, "num_global": [num_global], "flat": [-1, width], "row": [1, -1]}.items():
        weights.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
    weights.append(numpy_helper.from_array(np.array(width**0.5, np.float32), "root"))
    node = helper.make_node
    nodes = [
        node("Shape", ["candidates"], ["shape"]),
        node("Gather", ["shape", "index"], ["n"], axis=0),
        node("Unsqueeze", ["n", "zero"], ["n1"]),
        node("Unsqueeze", ["global", "one"], ["global1"]),
        node("Concat", ["one", "n1", "num_global"], ["repeated"], axis=0),
        node("Expand", ["global1", "repeated"], ["around"]),
        node("Concat", ["candidates", "around"], ["rows"], axis=-1),
        node("MatMul", ["rows", "w1"], ["product"]),
        node("Add", ["b1", "product"], ["sum"]),
        node("LayerNormalization", ["sum", "scale", "bias"], ["norm"], axis=-1, epsilon=1e-5),
        node("Relu", ["norm"], ["hidden"]),
        *(node("MatMul", ["hidden", which], [f"{which}s"]) for which in "qkv"),
        node("Transpose", ["ks"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["qs", "kt"], ["dots"]),
        node("Div", ["dots", "root"], ["scaled"]),
        node("Softmax", ["scaled"], ["shares"], axis=-1),
        node("MatMul", ["shares", "vs"], ["mixed"]),
        node("Add", ["hidden", "mixed"], ["both"]),
        node("Reshape", ["both", "flat"], ["table"]),
        node("Gemm", ["table", "w2", "b2"], ["column"], transB=1),
        node("Reshape", ["column", "row"], ["scores"]),
    ]
    weights.append(numpy_helper.from_array(np.array([0], np.int64), "zero"))
    inputs = [
        helper.make_tensor_value_info("candidates", TensorProto.FLOAT, [1, "N", num_features]),
        helper.make_tensor_value_info("global", TensorProto.FLOAT, [1, num_global]),
    ]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, "N"])]
    graph = helper.make_graph(nodes, "mine", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path = tmp_path / "mine.onnx"
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    same_scores(pleach.load(str(path)), session, 60)
    said = run(tmp_path, "evaluate", "--workload", ID, "--num-jobs", "20", "--seeds", "2", "--policy", "sjf,mine=mine.onnx")
    assert "mine" in said


def test_a_network_scores_what_environments_of_its_view_show(tmp_path):
    """Builds of tests have one more view than others."""
    for name in views():
        settings = {
            "prior": '"none"', "warm_start": '"none"', "train.num_updates": 1, "train.num_steps": 16, "num_envs": 16,
            "env.columns": name,
        }  # fmt: skip
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        run(tmp_path, "train", "--env", ID, "--num-jobs", "20", "--out", name, "--quiet", *words)
        run(tmp_path, "export", f"{name}/network.ckpt", "--to", "onnx", "--out", f"{name}-code")
        env = pleach.PleachEnv(ID, columns=name, **LISTS)
        observation, _ = env.reset(seed=3)
        own = pleach.load(str(tmp_path / name / "network.ckpt"))
        scores = own.score(observation)
        assert np.isfinite(scores[observation["mask"].astype(bool)]).all()
        np.testing.assert_array_equal(own.score(env), scores)
        np.testing.assert_allclose(pleach.load(str(tmp_path / f"{name}-code/network.onnx")).score(observation), scores, atol=1e-5)
