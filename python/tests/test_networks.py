"""Networks of PyTorch as files that decide everywhere: the file scores as the network does, and its decisions are the function's."""

import json
import subprocess
import sys

import numpy as np
import pytest

import pleach

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

ID = "Pleach/GavelMulti-v1"
LISTS = {"num_jobs": 20, "load": 2.0}
SPACE = pleach.PleachEnv(ID, **LISTS).observation_space
NUM_GLOBAL, NUM_FEATURES = SPACE["global"].shape[0], SPACE["candidates"].shape[1]


class OfRows(nn.Module):
    """Every candidate by itself, by many kinds of units; the global row is not read."""

    def __init__(self):
        super().__init__()
        units = [nn.GELU(), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 16), nn.ELU(), nn.LeakyReLU(), nn.Softplus(), nn.Dropout(0.5)]
        self.net = nn.Sequential(nn.Linear(NUM_FEATURES, 16), *units, nn.Linear(16, 1))

    def forward(self, candidates, context):
        return self.net(candidates).squeeze(-1)


class OfASet(nn.Module):
    """The network of examples/clean_ppo.py in form: a mean over what the mask admits, and minus infinity beyond it."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(NUM_FEATURES + NUM_GLOBAL, 16), nn.ReLU())
        self.score = nn.Linear(32, 1)

    def forward(self, seen):
        rows, mask = seen["candidates"], seen["mask"].bool()
        rows = self.encode(torch.cat([rows, seen["global"].unsqueeze(1).expand(-1, rows.shape[1], -1)], 2))
        pooled = (rows * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        scores = self.score(torch.cat([rows, pooled.unsqueeze(1).expand_as(rows)], 2)).squeeze(2)
        return scores.masked_fill(~mask, -torch.inf), pooled.sum()


class OfAttention(nn.Module):
    """Attention over the candidates, of which the mask admits some."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(NUM_FEATURES + NUM_GLOBAL, 16)
        self.mix, self.norm, self.score = nn.Linear(16, 48), nn.LayerNorm(16), nn.Linear(16, 1)

    def forward(self, candidates, context, mask):
        rows = self.embed(torch.cat([candidates, context[:, None].expand(-1, candidates.shape[1], -1)], 2))
        asked, known, told = self.mix(rows).chunk(3, dim=-1)
        weights = (asked @ known.transpose(1, 2) / 4).masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        return self.score(self.norm(rows + weights @ told)).squeeze(-1)


def made(kind):
    torch.manual_seed(3)
    network = kind()
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return network


def as_function(network, num):
    """The network as a function of Python, asked with all candidates at once."""

    def scored(observation):
        network.eval()
        rows = {key: torch.from_numpy(np.ascontiguousarray(value))[None] for key, value in observation.items()}
        with torch.no_grad():
            if num == 1:
                return network(rows)[0][0]
            inputs = [rows["candidates"], rows["global"], rows["mask"].bool()][:num]
            return network(*inputs)[0]

    return scored


@pytest.mark.parametrize("kind, num", [(OfRows, 2), (OfASet, 1), (OfAttention, 3)])
def test_a_network_of_pytorch_decides_as_its_file_does(tmp_path, kind, num):
    network = made(kind).train()
    policy = pleach.export_onnx(network, tmp_path / "net.onnx", ID, settings=LISTS)
    assert network.training and policy.kind == "network"
    function = as_function(network, num)
    found = pleach.evaluate({"function": function, "file": tmp_path / "net.onnx", "sjf": "sjf"}, ID, seeds=3, **LISTS)
    own = [run for run in zip(found.runs["policy"], found.runs["avg_jct_s"])]
    assert [jct_s for name, jct_s in own if name == "file"] == [jct_s for name, jct_s in own if name == "function"]
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    env = pleach.PleachEnv(ID, **LISTS)
    observation, _ = env.reset(seed=5)
    for _ in range(30):
        mask = observation["mask"].astype(bool)
        rows = {key: value[mask][None] if key != "global" else value[None] for key, value in observation.items()}
        wanted = {one.name: rows[one.name].astype(bool) if "bool" in one.type else rows[one.name] for one in session.get_inputs()}
        (theirs,) = session.run(["scores"], wanted)
        np.testing.assert_allclose(policy.score(observation)[mask], theirs.ravel(), rtol=1e-3, atol=1e-3)
        observation, _, ended, _, _ = env.step(policy.act(observation))
        if ended:
            observation, _ = env.reset()


def run(folder, *words):
    done = subprocess.run([sys.executable, "-m", "pleach", *words], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_is_a_policy_in_every_command(tmp_path):
    pleach.export_onnx(made(OfASet), tmp_path / "net.onnx", ID, settings=LISTS)
    small = ["--num-jobs", "20", "--seeds", "2", "--policy", "sjf,mine=net.onnx"]
    assert "mine" in run(tmp_path, "evaluate", "--workload", ID, *small)
    words = ["--teacher", "net.onnx", "--workload", ID, "--num-jobs", "20", "--rounds", "1", "--leaves", "2", "--episodes", "2"]
    run(tmp_path, "distill", *words, "--out", "run")
    assert (tmp_path / "run" / "tree.json").exists()
    tree = pleach.distill(tmp_path / "net.onnx", ID, settings=LISTS, rounds=1, leaves=[2], episodes=2)
    assert json.loads(tree.file)["format"]


def test_a_file_says_what_it_sees_and_chooses_among(tmp_path):
    """A network of an environment with preemption stops jobs wherever it plays; one without never does."""
    env = pleach.PleachEnv("Pleach/MixedIdeal-v0", num_jobs=20)

    class Stops(nn.Module):
        def forward(self, candidates, context):
            return candidates.sum(-1)

    policy = pleach.export_onnx(Stops(), tmp_path / "net.onnx", env)
    name = "Pleach/MixedIdeal-v0"
    found = pleach.evaluate({"file": policy, "function": lambda seen: seen["candidates"].sum(-1)}, env, seeds=2)
    jct_s = dict(zip(found.table["policy"], found.table["avg_jct_s"]))
    assert jct_s["file"] == jct_s["function"], name
    text = (tmp_path / "net.onnx").read_bytes()
    contract = json.loads(text[text.rindex(b'{"spaces"') :])
    assert contract["trained_on"] == f"{name}, from Python"
    other = text.replace(contract["schema_hash"].encode(), contract["schema_hash"][::-1].encode())
    (tmp_path / "other.onnx").write_bytes(other)
    with pytest.raises(ValueError, match=contract["schema_hash"]):
        pleach.load(tmp_path / "other.onnx")


def test_what_cannot_be_a_file_is_refused_in_words(tmp_path):
    class Sorts(nn.Module):
        def forward(self, candidates, context):
            return candidates[..., 0].cumsum(-1)

    class Pools(nn.Module):
        def forward(self, candidates, context):
            return candidates.mean()

    class Counts(nn.Module):
        def forward(self, candidates, context):
            return candidates[..., 0] * float(candidates.shape[1])

    class Bakes(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(NUM_FEATURES, 1, batch_first=True)

        def forward(self, candidates, context):
            return self.attention(candidates, candidates, candidates, need_weights=False)[0][..., 0]

    class Narrow(nn.Module):
        def forward(self, candidates, context, mask, more):
            return candidates[..., 0]

    place = tmp_path / "net.onnx"
    for network, words in [
        (Sorts(), "operator CumSum is not understood"),
        (Pools(), "1 scores for 5 candidates"),
        (Counts(), "the file scores"),
        (Bakes(), "nn.MultiheadAttention does so"),
        (Narrow(), "allowed is one observation"),
        (lambda observation: 0, "allowed is a torch.nn.Module"),
    ]:
        with pytest.raises(ValueError, match=words):
            pleach.export_onnx(network, place, ID, settings=LISTS)
        assert not list(tmp_path.iterdir()), words
