"""Deals as Gymnasium wants them."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pleach

SMALL = {"num_jobs": 20, "max_rows": 128}


def play(env, choose, seed):
    observation, _ = env.reset(seed=seed)
    ended, total = False, 0.0
    while not ended:
        assert env.observation_space.contains(observation)
        observation, reward, ended, truncated, info = env.step(choose(env, observation))
        assert not truncated
        total += reward
    return total, info["metrics"]


def by_index(env, _observation):
    return env.unwrapped.expert_scores()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", pleach.deal_ids())
def test_environments_pass_the_checker_and_returns_are_jcts(env_id):
    env = gymnasium.make(env_id, **SMALL)
    check_env(env.unwrapped, skip_render_check=True)
    total, metrics = play(env, by_index, 3)
    assert total == pytest.approx(-metrics["avg_jct_s"] * metrics["num_jobs"] / 3600) == metrics["r"]
    assert play(env, by_index, 3)[1] == metrics != play(env, by_index, 4)[1]


def test_a_function_of_rows_deals_and_another_expert_has_other_scores():
    env = pleach.DealEnv(**SMALL)
    names = [name for name, _ in env.features]

    def shortest(_env, observation):
        return -observation["rows"][:, names.index("rest")]

    _, short = play(env, shortest, 5)
    long = pleach.DealEnv(**SMALL)
    _, worst = play(long, lambda one, seen: -shortest(one, seen), 5)
    assert short["avg_jct_s"] < worst["avg_jct_s"]
    for one in (env, other := pleach.DealEnv(expert="las-deal", **SMALL)):
        one.reset(seed=1)
    mask = env._observation()["mask"] == 1
    mine, theirs = env.expert_scores(), other.expert_scores()
    assert np.isfinite(mine[mask]).all() and (mine[~mask] == -np.inf).all()
    assert (mine[mask] != theirs[mask]).any()


def test_copies_go_on_from_where_they_are():
    env = pleach.DealEnv(**SMALL)
    env.reset(seed=2)
    for _ in range(5):
        env.step(env.expert_scores())
    others = [env.fork(), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    while True:
        scores = env.expert_scores()
        observation, reward, ended, _, info = env.step(scores)
        for other in others:
            seen, gained, over, _, told = other.step(scores)
            assert (gained, over, told) == (reward, ended, info)
            assert (seen["rows"] == observation["rows"]).all()
        if ended:
            break


@pytest.mark.parametrize(
    ("action", "words"),
    [(np.zeros(3), "128 numbers"), (np.full(128, np.nan), "NaN")],
)
def test_scores_that_are_none_are_refused(action, words):
    env = pleach.DealEnv(**SMALL)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=words):
        env.step(action)
    with pytest.raises(TypeError, match="num_jobs"):
        pleach.DealEnv(num_job=3)
