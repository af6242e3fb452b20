"""Networks of PyTorch as files that decide everywhere: in comparisons, as teachers, in both daemons."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import Any, Iterator

import numpy as np

from pleach import _pleach
from pleach._libraries import needed
from pleach._settings import checked_whole, merged, to_json
from pleach._spaces import made_of_settings, with_jobs
from pleach.env import PleachEnv
from pleach.policies import Environment, Observation, Policy, load

#: Operators are written in this set, in which ``LayerNormalization`` is one.
OPSET = 17
#: Scores of the file and of the network differ by rounding alone.
TOLERANCE = 1e-3


def export_onnx(
    network: Any,
    path: str | os.PathLike[str],
    env: str | Environment = "Pleach/GavelMulti-v1",
    *,
    num_checked: int = 64,
    settings: Mapping[str, Any] | None = None,
) -> Policy:
    """Writes a network of PyTorch as an ONNX file, and opens it: a policy wherever a path is one, as ``pleach evaluate --policy
    sjf,net.onnx``, as a teacher, in ``pleach-scheduler`` and ``pleach-kubernetes``, none of which needs PyTorch.

    ``network`` is a ``torch.nn.Module`` whose ``forward`` takes one observation (a dict of tensors with a first axis of 1), or
    ``(candidates [1, N, F], global [1, G])``, or these and ``mask`` (bool, [1, N]). It returns N scores, or a tuple that begins with
    them. N is free and is the number of admissible candidates, so the mask is all true. The file says what ``env`` shows and
    offers: its columns, and its candidates, which the policy chooses among wherever it decides. ``num_checked`` decisions of it are
    scored by both; another score is an error, and so is an operator that Pleach does not run. ``settings`` as in :func:`distill`.
    """
    # PyTorch writes the file with the package onnx.
    torch, _ = needed("export_onnx", "torch", "torch", "onnx")
    num_checked = checked_whole("num_checked", num_checked, 1, 100_000)
    env_id, own = (env, {}) if isinstance(env, str) else made_of_settings(env) or (None, {})
    if env_id is None:
        raise ValueError(f"env is a {type(env).__name__}: allowed are an id and an environment of this package")
    if not isinstance(network, torch.nn.Module):
        raise ValueError(f"network is a {type(network).__name__}: allowed is a torch.nn.Module")
    own = merged(own, dict(settings or {}))
    with with_jobs(own) as changes:
        contract = _pleach.contract(env_id, to_json(changes))
    path, shown = os.fspath(path), PleachEnv(env_id, **own)
    part = f"{path}.tmp"
    with _deployed(torch, network):
        score, names = _scorer(torch, network)
        try:
            _write(torch, score, names, shown, part)
            with open(part, "ab") as file:
                file.write(_remark(b"contract", contract.encode()))
            policy = _read(part)
            _check(torch, score, names, shown, policy, num_checked)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)
    return load(path)


def _read(part: str) -> Policy:
    try:
        return load(part)
    except ValueError as error:
        hint = "Where shapes do not go together, the number of candidates was traced as a constant (nn.MultiheadAttention does so): "
        raise ValueError(f"{error}. {hint}write such a part with products of matrices") from None


@contextmanager
def _deployed(torch: Any, network: Any) -> Iterator[None]:
    """The network as it is used and not trained: without dropout, on the CPU, without gradients."""
    was_training, parameter = network.training, next(network.parameters(), None)
    device = None if parameter is None else parameter.device
    network.eval()
    if device is not None:
        network.to("cpu")
    # The fused attention of encoders is no operator of ONNX.
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        network.train(was_training)
        if device is not None:
            network.to(device)


def _scorer(torch: Any, network: Any) -> tuple[Any, list[str]]:
    """The network with the inputs of the file, and their names."""
    taken = inspect.signature(network.forward).parameters.values()
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in taken) or not 1 <= len(taken) <= 3:
        raise ValueError(
            f"forward{inspect.signature(network.forward)}: allowed is one observation, or candidates and global, or these and mask"
        )
    count = len(taken)

    class Scorer(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, candidates: Any, context: Any, mask: Any = None) -> Any:
            if count == 1:
                found = self.network({"candidates": candidates, "global": context, "mask": mask})
            else:
                found = self.network(candidates, context, *([mask.bool()] if count == 3 else []))
            # The exporter drops an input that is not read.
            return (found[0] if isinstance(found, tuple) else found).reshape(1, -1) + 0 * context.sum()

    return Scorer().eval(), ["candidates", "global", "mask"][: 2 if count == 2 else 3]


def _inputs(torch: Any, names: list[str], observation: Observation) -> dict[str, Any]:
    """What the network sees of an observation: the admissible candidates alone."""
    admissible = observation["mask"].astype(bool)
    rows = {"candidates": observation["candidates"][admissible], "global": observation["global"], "mask": observation["mask"][admissible]}
    return {name: torch.from_numpy(np.ascontiguousarray(rows[name][None])) for name in names}


def _write(torch: Any, score: Callable[..., Any], names: list[str], env: PleachEnv, path: str) -> None:
    observation, _ = env.reset(seed=0)
    inputs = _inputs(torch, names, {**observation, "mask": (np.arange(len(observation["mask"])) < 5).astype(np.int8)})
    found = score(*inputs.values())
    if tuple(found.shape) != (1, 5):
        raise ValueError(f"the network gives {found.numel()} scores for 5 candidates: allowed is one for each")
    free = {name: {1: "N"} for name in (*names, "scores") if name != "global"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            score, tuple(inputs.values()), path, input_names=names, output_names=["scores"], dynamic_axes=free, opset_version=OPSET, dynamo=False
        )


def _check(torch: Any, score: Callable[..., Any], names: list[str], env: PleachEnv, policy: Policy, num_checked: int) -> None:
    """Plays the file's choices, and has both score the decisions on the way."""
    observation, _ = env.reset(seed=1)
    for _ in range(num_checked):
        admissible = observation["mask"].astype(bool)
        ours = policy.score(observation)
        theirs = score(*_inputs(torch, names, observation).values()).double().numpy().ravel()
        apart = np.abs(ours[admissible] - theirs) / np.maximum(1, np.abs(theirs))
        if not (apart <= TOLERANCE).all():
            raise ValueError(
                f"the file scores {ours[admissible]}, the network {theirs}: a number of candidates that was traced as a constant, or "
                "a choice by the values, are usual reasons"
            )
        observation, _, terminated, truncated, _ = env.step(int(ours.argmax()))
        if terminated or truncated:
            observation, _ = env.reset()


def _remark(key: bytes, value: bytes) -> bytes:
    """A remark of an ONNX model (``metadata_props``), which may stand behind the rest of its file."""
    entry = b"\x0a" + _length(key) + key + b"\x12" + _length(value) + value
    return b"\x72" + _length(entry) + entry


def _length(part: bytes) -> bytes:
    number, out = len(part), bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
