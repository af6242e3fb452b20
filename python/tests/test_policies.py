"""Policies both ways: ours asked from Python, functions of Python compared and distilled."""

import json
import pickle
import re

import gymnasium
import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
SMALL = {"num_jobs": 30, "load": 1.5}
SCORE = r"-?[0-9.]+(e-?[0-9]+)?"


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
    assert pleach.load("sjf").kind == "heuristic" and pleach.load("allox").kind == "planner"
    for expert in ("sjf", "allox"):
        env = gymnasium.make(ID, num_jobs=15)
        observation, _ = env.reset(seed=1)
        ended = False
        while not ended:
            action = env.unwrapped.expert_action(expert)
            action = int(np.flatnonzero(observation["mask"])[-1]) if action is None else action
            assert observation["mask"][action]
            observation, _, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
        assert info["metrics"]["num_jobs"] == 15
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
    assert policy.kind == "tree" and policy.text == found.text
    assert re.match(r".*: \d leaves, depth \d; tier 1 first, inside a tier by [a-z-]+\n", policy.text)
    env = pleach.PleachEnv(ID, **SMALL)
    observation, _ = env.reset(seed=5)
    for _ in range(10):
        by_numbers, by_env = policy.score(observation), policy.score(env)
        np.testing.assert_array_equal(by_numbers, by_env)
        assert (np.isneginf(by_numbers) == (observation["mask"] == 0)).all()
        action = policy.act(env)
        assert by_numbers[action] == by_numbers.max()
        why = policy.explain(env)
        assert re.search(rf": tier \d of \d \(leaf \d+, score {SCORE}\)\n", why) and "not chosen" not in why
        assert policy.explain(env) == policy.explain(env, action)
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
    asked = []
    copy = pleach.Policy.of(lambda seen: asked.append(1) or policy.score(seen), "copy", candidates=policy)
    both = pleach.evaluate({"tree": policy, "copy": copy, "fifo": "fifo"}, ID, num_jobs=150, load=3.0, seeds=2)
    jct_s = both.table["avg_jct_s"]
    assert jct_s[0] == jct_s[1] != jct_s[2] and len(asked) > 60


def test_explain_and_copies_hear_the_weighted_key_of_a_tree(tree, tmp_path):
    document = json.loads(tree[2].file)
    del document["thresholds_hash"]
    # One leaf: all candidates are equal, and the key alone decides.
    document["nodes"] = [{**next(node for node in document["nodes"] if "feature" not in node), "node": 0}]
    policies = {}
    for name, key in (("plain", {}), ("weighted", {"version": 2, "key_weights": [{"feature": "num_gpus", "weight": -1.0}]})):
        (tmp_path / name).write_text(json.dumps({**document, **key}))
        policies[name] = pleach.load(tmp_path / name)
    plain, weighted = policies["plain"], policies["weighted"]
    copy = pleach.Policy.of(weighted.score, "copy", candidates=weighted)
    other = pleach.Policy.of(weighted.score, "other", candidates=weighted, tie_key="index")
    env = pleach.PleachEnv(ID, num_jobs=150, load=3.0)
    env.reset(seed=5)
    num_apart = num_other = 0
    for _ in range(200):
        action = weighted.act(env)
        assert weighted.explain(env) == weighted.explain(env, action)
        num_apart += weighted.explain(env) != weighted.explain(env, plain.act(env))
        assert copy.act(env) == action
        num_other += other.act(env) != action
        env.step(action)
    assert num_apart and num_other


def test_arrays_of_another_width_are_refused(tree):
    env = pleach.PleachEnv(ID, **SMALL)
    observation, _ = env.reset(seed=5)
    width, copy = observation["candidates"].shape[1], pleach.Policy.of(tree[0].score, "copy", candidates=tree[0])
    many = {"candidates": np.zeros((65, width), np.float32), "mask": np.ones(65, np.int8)}
    for change, words in (
        ({"candidates": observation["candidates"][:, :-1]}, f"width of candidates = {width - 1}.*{width}"),
        ({"candidates": np.zeros((64, 0), np.float32)}, f"width of candidates = 0.*{width}"),
        ({"global": observation["global"][:-1]}, "length of global"),
        (many, "number of candidates = 65.*1 to 64"),
        ({key: value[:0] for key, value in many.items()}, "number of candidates = 0.*1 to 64"),
        ({"mask": observation["mask"][:-1]}, "length of mask = 63.*64"),
    ):
        for policy in (tree[0], copy):
            with pytest.raises(ValueError, match=words):
                policy.score({**observation, **change})
    few = {**observation, **{key: observation[key][:40] for key in ("candidates", "mask")}}
    np.testing.assert_array_equal(copy.score(few), copy.score(observation)[:40])


def test_actions_and_environments_that_are_not_there_cannot_be_explained(tree):
    env = pleach.PleachEnv(ID, **SMALL)
    env.reset(seed=5)
    with pytest.raises(ValueError, match="action = -1: allowed is a whole number from 0 to 63"):
        tree[0].explain(env, -1)
    with pytest.raises(ValueError, match=r"action = 63: allowed is 0 to \d+"):
        tree[0].explain(env, 63)
    with pytest.raises(ValueError, match="index = -1: allowed is a whole number from 0 to 0"):
        tree[0].explain(env, index=-1)


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
    # The same entry point as the program; run apart, for it is made for one call a process.
    import subprocess
    import sys

    words = ["distill", "--teacher", str(path), "--workload", ID, "--num-jobs", "30", "--load", "1.5", "--leaves", "2,4"]
    words += ["--rounds", "1", "--episodes", "2", "--test-seeds", "1", "--out", str(tmp_path / "run"), "--quiet"]
    done = subprocess.run([sys.executable, "-m", "pleach", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
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
