"""When a job would start: the same as the command says."""

import json

import pytest

import pleach
from pleach._pleach import command_line


@pytest.fixture(scope="module")
def jobs():
    """A list of some days; the policy plays it first."""
    return pleach.workload("philly-like", num_jobs=150, load=1.2, seed=3)


def test_an_answer_is_that_of_the_command(jobs, tmp_path):
    path = tmp_path / "list.csv"
    jobs.write(path)
    out = tmp_path / "answer.json"
    words = ["pleach", "when", str(path), "--gpus", "8", "--time", "12h", "--policy", "easy", "--seed", "5"]
    assert command_line([*words, "--json", str(out), "--quiet"]) == 0
    job = {"gpus": 8, "time_s": 43200.0}
    for site in (path, jobs):
        answer = pleach.when(site, job, policy="easy", seed=5)
        assert answer == json.loads(out.read_text())
    low, high = answer["forecast"]["within_s"]
    assert 0.0 <= low <= answer["forecast"]["median_s"] <= high and set(answer) == set(pleach.starts.Answer.__annotations__)


def test_alternatives_that_are_named_are_all_answered(jobs):
    answer = pleach.when(jobs, {"gpus": 8}, [{"gpus": 4}, {"time_s": 3600.0}], policy="easy")
    assert [one["what"] for one in answer["alternatives"]] == ["4 GPUs", "8 GPUs for 1.0 h"]
    assert pleach.when(jobs, {"gpus": 8}, (), policy="easy")["alternatives"] == []


def test_what_cannot_be_is_refused(jobs):
    for job, words in (({"gpus": 0}, "gpus"), ({"gpu": 1}, "gpu"), ("no-such-job", "wait")):
        with pytest.raises(ValueError, match=words):
            pleach.when(jobs, job, policy="easy")
    with pytest.raises(ValueError, match="method"):
        pleach.when(jobs, {"gpus": 1}, method="guess")
    with pytest.raises(ValueError, match="gpus"):
        pleach.when(jobs, {"gpus": 1}, [{"gpus": 1 << 30}], policy="easy")
