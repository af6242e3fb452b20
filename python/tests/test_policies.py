"""Policies both ways: ours asked from Python, functions of Python compared and distilled."""

import json
import pickle

import gymnasium
import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
SMALL = {"num_jobs": 30, "load": 1.5}


def shortest(observation):
    """Shortest believed run first, as far as the features say; never holds where something can start."""
    names = [name for name, _ in pleach.PleachEnv(ID).features["candidates"]]
    column = names.index("remaining_s")
    scores = -observation["candidates"][:, column].astype(np.float64)
    scores[0] -= 1e3
    return scores


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A small tree of a heuristic."""
    found = pleach.distill("sjf-best-type", ID, settings=SMALL, leaves=[4], rounds=0, episodes=2)
    path = tmp_path_factory.mktemp("tree") / "tree.json"
    return found.save(path), path, found


def test_names_are_those_of_heuristics_and_planners():
    names = pleach.policies.names()
    assert {"fifo", "sjf-best-type", "tiresias"} <= set(names)
    assert {pleach.load(name).kind for name in names} == {"heuristic", "planner"}
    with pytest.raises(ValueError, match="Did you mean sjf"):
        pleach.load("sjff")


def test_experts_choose_what_is_admissible_and_schedule_to_the_end():
    for expert in ("sjf", "allox" if "allox" in pleach.policies.names() else "fifo"):
        env = gymnasium.make(ID, num_jobs=15)
        observation, _ = env.reset(seed=1)
        ended = False
        while not ended:
            action = env.unwrapped.expert_action(expert)
            action = int(np.flatnonzero(observation["mask"])[-1]) if action is None else action
            assert observation["mask"][action]
            observation, _, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
        assert info["episode"]["num_jobs"] == 15
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="vector_entry_point", num_jobs=15)
    observation, _ = envs.reset(seed=1)
    for _ in range(20):
        actions = envs.expert_action("sjf")
        assert actions.dtype == np.int64 and observation["mask"][np.arange(3), actions].all()
        observation, *_ = envs.step(actions)
    with pytest.raises(ValueError, match="sjff"):
        envs.expert_action("sjff")


def test_a_tree_scores_the_same_of_numbers_and_of_the_environment_and_says_why(tree):
    policy, path, found = tree
    assert policy.kind == "tree" and "tier" in policy.text + found.text or policy.text
    env = pleach.PleachEnv(ID, **SMALL)
    observation, _ = env.reset(seed=5)
    for _ in range(10):
        by_numbers, by_env = policy.score(observation), policy.score(env)
        np.testing.assert_array_equal(by_numbers, by_env)
        assert (np.isneginf(by_numbers) == (observation["mask"] == 0)).all()
        action = policy.act(env)
        assert by_numbers[action] == by_numbers.max()
        assert "score" in policy.explain(env) or policy.explain(env)
        observation, *_ = env.step(action)
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.score(observation), policy.score(observation))
    batch = {key: np.stack([value, value]) for key, value in observation.items()}
    assert policy.score(batch).shape == (2, 64) and policy.act(batch).shape == (2,)


def test_what_reads_the_cluster_asks_for_the_environment():
    env = pleach.PleachEnv(ID)
    observation, _ = env.reset(seed=1)
    sjf = pleach.load("sjf")
    with pytest.raises(ValueError, match="give the environment"):
        sjf.score(observation)
    assert np.isfinite(sjf.score(env)).any() and sjf.act(env) == env.expert_action("sjf")
    with pytest.raises(ValueError, match="pleach.distill"):
        sjf.explain(env)
    with pytest.raises(ValueError, match="float32"):
        pleach.load("sjf").score({**observation, "global": observation["global"].astype(float)})


def test_a_function_is_compared_with_ours_and_pairs_are_pairs():
    comparison = pleach.evaluate({"mine": shortest, "sjf": "sjf", "fifo": "fifo"}, "philly-like", num_jobs=30, seeds=4)
    assert comparison.table["policy"] == ["mine", "sjf", "fifo"] and comparison.reference == "mine"
    assert len(comparison.runs["avg_jct_s"]) == 12 and len(set(comparison.runs["seed"])) == 4
    for place in (1, 2):
        low, mean, high = (comparison.table[key][place] for key in ("ratio_low", "ratio", "ratio_high"))
        assert low <= mean <= high and comparison.table["num_pairs"][place] == 4
    frame = comparison.to_pandas()
    assert frame.loc["fifo", "avg_jct_s"] > 0
    one = pleach.evaluate(["sjf", "fifo"], "philly-like", num_jobs=30, seeds=4, num_threads=1)
    two = pleach.evaluate(["sjf", "fifo"], "philly-like", num_jobs=30, seeds=4, num_threads=2)
    assert one.runs == two.runs


def test_a_function_that_copies_a_tree_is_that_tree(tree):
    policy, _, _ = tree
    copy = pleach.Policy.of(policy.score, "copy")
    both = pleach.evaluate({"tree": policy, "copy": copy}, ID, num_jobs=20, seeds=2)
    jct_s = both.table["avg_jct_s"]
    assert jct_s[0] > 0 and jct_s[1] > 0


def test_what_a_function_raises_or_gets_wrong_reaches_its_caller():
    def broken(observation):
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        pleach.evaluate([broken], "philly-like", num_jobs=10, seeds=2)
    for wrong, words in ((lambda _: 63, "not admissible"), (lambda _: np.zeros(3), "3 numbers"), (lambda _: np.full(64, np.nan), "NaN")):
        with pytest.raises(ValueError, match=words):
            pleach.simulate(pleach.workload("philly-like", num_jobs=10), wrong)
    with pytest.raises(ValueError, match="0.01 to 10"):
        pleach.evaluate(["fifo"], "philly-like", load=100)
    with pytest.raises(ValueError, match="unknown field `preemptions`"):
        pleach.evaluate(["fifo"], "philly-like", preemptions=True)
    with pytest.raises(ValueError, match="no policies"):
        pleach.evaluate([])


def test_a_function_is_distilled_into_the_same_file_as_the_command_line_makes_of_the_same_teacher(tree, tmp_path):
    policy, path, _ = tree
    config = {"leaves": [2, 4], "rounds": 1, "episodes": 2}
    ours = pleach.distill(policy, ID, settings=SMALL, **config)
    code = pleach._pleach.command_line  # The same entry point as the program; run apart, for it is made for one call a process.
    import subprocess
    import sys

    words = ["distill", "--teacher", str(path), "--workload", ID, "--num-jobs", "30", "--load", "1.5", "--leaves", "2,4"]
    words += ["--rounds", "1", "--episodes", "2", "--test-seeds", "1", "--out", str(tmp_path / "run"), "--quiet"]
    done = subprocess.run([sys.executable, "-m", "pleach", *words], capture_output=True, text=True)
    assert code is not None and done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "tree.json").read_text() == ours.file
    # A function with the scores of that teacher, its name and its candidates, which is asked through Python.
    asked = []
    same = pleach.Policy.of(lambda seen: asked.append(1) or policy.score(seen), policy.name, candidates=policy)
    assert same.kind == "callable"
    assert pleach.distill(same, ID, settings=SMALL, **config).file == ours.file and len(asked) > 100
    function = pleach.distill(shortest, ID, settings=SMALL, **config)
    assert json.loads(function.file)["trained_by"]["teacher"] == "shortest"
    assert function.save(tmp_path / "mine.json").kind == "tree"


def test_a_function_chooses_among_the_candidates_of_the_environment_it_is_distilled_on():
    needs = {}
    for env_id in ("Pleach/Philly-v0", "Pleach/PhillyPreempt-v0"):
        tree = pleach.distill(shortest, env_id, settings={"num_jobs": 15}, leaves=[2], rounds=0, episodes=1)
        needs[env_id] = json.loads(tree.file)["needs"]
    assert [need["preemption"] for need in needs.values()] == [False, True]
