"""Trainings from Python are those of the command line, byte by byte."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
SMALL = {"num_validation": 4, "validate_every": 2, "checkpoint_every": 2, "train": {"evolution": {"num_pairs": 2, "num_workloads": 1}}}
SET = ["num_validation=4", "validate_every=2", "checkpoint_every=2", "train.evolution.num_pairs=2", "train.evolution.num_workloads=1"]


def files(folder):
    """What the run's list of artefacts says of each file."""
    return (Path(folder) / "artefacts.json").read_text()


def test_a_training_is_that_of_the_command_line(tmp_path):
    told = []
    trained = pleach.train(
        ID, num_updates=4, seed=3, settings={"num_jobs": 15}, out=tmp_path / "own", tell=lambda *one: told.append(one), **SMALL
    )
    words = [word for one in [*SET, "train.num_updates=4"] for word in ("--set", one)]
    line = ["train", "--learner", "evolution", "--env", ID, "--num-jobs", "15", "--seed", "3", "--quiet", "--out", str(tmp_path / "line")]
    subprocess.run([sys.executable, "-m", "pleach", *line, *words], check=True, capture_output=True, timeout=300)
    assert files(tmp_path / "own") == files(tmp_path / "line")
    assert [one[:2] for one in told] == [(1, 4), (2, 4), (3, 4), (4, 4)] and "of " in told[-1][2]
    assert trained.curve["update"] == [0, 2, 4] and trained.best_ratio == min(trained.curve["ratio"])
    assert trained.policy.kind == "network" and trained.best_heuristic in pleach.policies.names()
    assert pleach.evaluate([trained.policy], ID, num_jobs=15, seeds=2).runs == pleach.evaluate([trained.folder], ID, num_jobs=15, seeds=2).runs
    with pytest.raises(ValueError, match="finished"):
        pleach.train(ID, num_updates=4, seed=3, settings={"num_jobs": 15}, out=tmp_path / "own", **SMALL)


def test_what_was_broken_off_goes_on_to_the_same_bytes(tmp_path):
    def stop(done, total, word):
        raise RuntimeError("enough")

    config = {"num_updates": 4, "settings": {"num_jobs": 15}, **SMALL}
    pleach.train(ID, out=tmp_path / "whole", **config)
    with pytest.raises(RuntimeError, match="enough"):
        pleach.train(ID, out=tmp_path / "parts", tell=stop, **config)
    assert not (tmp_path / "parts" / "artefacts.json").exists()
    pleach.train(ID, out=tmp_path / "parts", existing="resume", **config)
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


def test_an_environment_is_trained_in_as_it_is_and_ppo_too(tmp_path):
    env = gymnasium.make(ID, num_jobs=10)
    config = {"num_updates": 1, "num_validation": 2, "warm_start_steps": 20, "num_envs": 2, "train": {"num_steps": 32, "group_size": 1}}
    trained = pleach.train(env, learner="ppo", out=tmp_path / "run", **config)
    assert trained.teacher in pleach.policies.names() and trained.folder == str(tmp_path / "run")
    assert "num_jobs = 10" in (tmp_path / "run" / "settings.toml").read_text()
    assert f"of {trained.best_heuristic}" in repr(trained)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"learner": "dqn"}, "learner = dqn: allowed is evolution, ppo"),
        ({"existing": "delete"}, "existing = delete"),
        ({"num_updates": -1}, "num_updates = -1"),
        ({"train": {"evolution": {"num_pair": 2}}}, "unknown field `num_pair`"),
        ({"env": 3}, "env is a int"),
        ({"train": {"evolution": {"sigma": 0.0}}}, "sigma"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_made(own, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        pleach.train(**{"env": ID, "out": tmp_path / "run", "settings": {"num_jobs": 5}, **own})
    assert not (tmp_path / "run").exists()
