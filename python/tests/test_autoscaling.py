"""The environment in which a service leases GPUs beside training, as Gymnasium wants it."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pleach

ID = "Pleach/Mixed-v2"
SHORT = {"hours": 0.25, "rate_per_s": 60}


def play(env, choose, seed):
    observation, info = env.reset(seed=seed)
    ended, total, steps = False, 0.0, 0
    while not ended:
        assert env.observation_space.contains(observation)
        observation, reward, ended, truncated, info = env.step(choose(env, observation))
        assert not truncated
        total, steps = total + reward, steps + 1
    return total, steps, info["metrics"]


def fewest(env, observation):
    return 0


def enough(env, observation):
    _, rows = env.unwrapped.columns(observation)
    serves = (observation["mask"] == 1) & (rows["load_share"] < 0.7)
    return int(serves.argmax()) if serves.any() else int(observation["mask"].sum()) - 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_accepts_it():
    assert ID in pleach.serving_ids()
    env = gymnasium.make(ID, **SHORT).unwrapped

    class Offered(gymnasium.spaces.Discrete):
        """Draws a row that the mask allows: the checker knows no masks."""

        def sample(self, *_args, **_kwargs):
            return np.int64(np.flatnonzero(env.action_masks())[0])

    env.action_space = Offered(env.action_space.n)
    check_env(env)


def test_the_return_is_training_less_the_price_of_misses():
    env = gymnasium.make(ID, price_gpu_s=36, **SHORT)
    total, steps, metrics = play(env, enough, 3)
    assert steps == 59 == metrics["l"]
    assert total == pytest.approx(metrics["training_gpu_h"] - metrics["missed_requests"] / 100)
    assert play(env, enough, 3)[0] == total
    with pytest.raises(ValueError, match="Reset it"):
        env.unwrapped.step(0)


def test_more_replicas_serve_more_and_hold_more():
    env = gymnasium.make(ID, **SHORT)
    few, many = play(env, fewest, 5)[2], play(env, enough, 5)[2]
    assert many["hits_pct"] > few["hits_pct"] and many["serving_gpu_h"] > few["serving_gpu_h"]
    # A quarter of an hour has few jobs: nobody is displaced.
    assert many["training_gpu_h"] <= few["training_gpu_h"]


def test_a_row_that_is_not_offered_is_refused_and_a_copy_begins_anew():
    env = pleach.ServingEnv(ID, **SHORT)
    observation, _ = env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    assert type(copy) is pleach.ServingEnv
    np.testing.assert_array_equal(copy.reset(seed=1)[0]["candidates"], observation["candidates"])
    with pytest.raises(ValueError, match="mask"):
        env.step(9)
    with pytest.raises(TypeError, match="rate_per_s"):
        pleach.ServingEnv(ID, rate=3)
    with pytest.raises(ValueError, match="price_gpu_s = -1"):
        pleach.ServingEnv(ID, price_gpu_s=-1)
