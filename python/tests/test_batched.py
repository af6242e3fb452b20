"""Functions of N decisions: one question for all lists that play, and the runs of the same function of one."""

import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
SMALL = {"num_jobs": 30, "load": 1.5}


@pleach.by_name
def shortest(seen):
    return -seen.candidates["remaining_s"]


def counted(asked):
    """The same for N, which notes of how many it was asked."""

    @pleach.batched
    @pleach.by_name
    def many(seen):
        scores = -seen.candidates["remaining_s"]
        asked.append(scores.shape)
        return scores

    return many


def runs(comparison, name):
    return [row for row in zip(*(comparison.runs[key] for key in comparison.runs)) if row[0] == name]


@pytest.mark.parametrize("where", ["environment", "name", "generator", "lists"])
def test_runs_are_those_of_the_function_of_one_decision(where):
    workload, more = {
        "environment": (pleach.PleachEnv(ID, **SMALL), {}),
        "name": (ID, SMALL),
        "generator": ("philly-like", {"num_jobs": 30}),
        "lists": ([pleach.workload("philly-like", num_jobs=30, seed=seed) for seed in range(4)], {}),
    }[where]
    asked = []
    policies = {"sjf": "sjf", "many": counted(asked), "fifo": "fifo", "one": shortest}
    found = pleach.evaluate(policies, workload, seeds=4, **more)
    assert found.table["policy"] == ["sjf", "many", "fifo", "one"]
    for key in set(found.runs) - {"policy"}:
        of = {name: [value for who, value in zip(found.runs["policy"], found.runs[key]) if who == name] for name in ("many", "one")}
        assert of["many"] == of["one"], key
    assert len(runs(found, "many")) == 4
    # All play until the first list has ended, and the last alone.
    nums = [shape[0] for shape in asked]
    assert nums[0] == 4 and nums == sorted(nums, reverse=True) and nums[-1] >= 1


def test_who_is_asked_together_depends_on_the_lists_alone():
    def shapes(num_threads):
        asked = []
        found = pleach.evaluate({"many": counted(asked)}, ID, seeds=5, num_threads=num_threads, **SMALL)
        return asked, found.runs

    assert shapes(1) == shapes(2)


def test_indices_are_answers_and_elsewhere_n_is_one():
    nums = []

    @pleach.batched
    def first(observation):
        nums.append(len(observation["mask"]))
        return observation["mask"].argmax(axis=1)

    found = pleach.evaluate({"many": first, "one": lambda seen: int(seen["mask"].argmax())}, ID, seeds=3, **SMALL)
    assert found.runs["avg_jct_s"][0::2] == found.runs["avg_jct_s"][1::2] and nums[0] == 3
    nums.clear()
    env = pleach.PleachEnv(ID, **SMALL)
    observation, _ = env.reset(seed=1)
    policy = pleach.Policy.of(first)
    assert policy.act(observation) == observation["mask"].argmax() and policy.act(env) == observation["mask"].argmax()
    pleach.distill(counted([]), ID, settings=SMALL, leaves=[2], rounds=0, episodes=1)
    assert set(nums) == {1}


def test_what_a_function_does_wrong_reaches_the_caller():
    @pleach.batched
    def raises(observation):
        raise KeyError("mine")

    @pleach.batched
    def one_row(observation):
        return np.zeros(observation["mask"].shape[1])

    @pleach.batched
    def masked(observation):
        return np.full(len(observation["mask"]), 63)

    with pytest.raises(KeyError, match="mine"):
        pleach.evaluate({"sjf": "sjf", "mine": raises}, ID, seeds=3, **SMALL)
    with pytest.raises(ValueError, match=r"one_row returned shape \[64\] for 3 decisions"):
        pleach.evaluate([one_row], ID, seeds=3, **SMALL)
    with pytest.raises(ValueError, match="63, which is not admissible"):
        pleach.evaluate([masked], ID, seeds=3, **SMALL)
