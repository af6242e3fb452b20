"""Environments of work that serves, as Gymnasium wants them."""

import pickle

import gymnasium
import numpy as np
import pytest

import pleach

IDS = ["Pleach/LlmRouting-v2", "Pleach/ServingBursts-v2"]
ESG = ["Pleach/EsgSaturated-v0", "Pleach/EsgPublished-v0"]
SGPRS = "Pleach/Sgprs-v0"


def play(env, choose, seed):
    observation, info = env.reset(seed=seed)
    ended, total, steps, seconds = False, 0.0, 0, 0.0
    while not ended:
        observation, reward, ended, truncated, info = env.step(choose(observation, steps))
        assert not truncated
        total, steps, seconds = total + reward, steps + 1, seconds + info["dt_s"]
    return total, steps, seconds, info["metrics"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", [*ESG, SGPRS])
def test_rows_that_may_not_be_taken_are_masked_and_whoever_takes_others_ends_with_figures(env_id):
    assert {*IDS, *ESG, SGPRS} <= set(pleach.serving_ids())
    small = {"length_s": 0.5} if env_id == SGPRS else {"num_requests": 60}
    env = gymnasium.make(env_id, **small)

    def any_of_them(observation, step):
        assert env.observation_space.contains(observation)
        rows = observation["candidates"]
        assert env_id == SGPRS or not rows[observation["mask"] == 0].any()
        return int(np.flatnonzero(observation["mask"])[step % observation["mask"].sum()])

    total, steps, seconds, metrics = play(env, any_of_them, 3)
    num = metrics.get("num_requests", metrics.get("num_frames"))
    hits = metrics["hits_pct"] / 100 * num
    assert total == pytest.approx(hits - (num - hits)) == metrics["r"]
    assert steps >= num and seconds > 0
    assert play(env, any_of_them, 3)[0] == total
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action = 9999"):
        env.unwrapped.step(9999)


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_ends_with_its_figures_and_observations_are_within_their_bounds(env_id):
    env = gymnasium.make(env_id, num_requests=400, rate_per_s=300)

    def in_turn(observation, step):
        assert env.observation_space.contains(observation)
        return step % 16

    total, steps, seconds, metrics = play(env, in_turn, 3)
    assert steps == 400 == metrics["num_requests"] and seconds > 0
    hits = metrics["hits_pct"] / 100 * 400
    assert total == pytest.approx(hits - (400 - hits)) == metrics["r"]
    assert play(env, in_turn, 3)[0] == total
    with pytest.raises(ValueError, match="Reset it"):
        env.unwrapped.step(0)


def test_refusing_is_the_last_row_and_the_reward_is_a_setting():
    env = gymnasium.make(IDS[1], num_requests=100, reward={"hit": 1, "miss": 0, "refused": -2})
    assert env.action_space.n == 17
    total, _, _, metrics = play(env, lambda observation, step: 16, 1)
    assert total == -200 and metrics["refused_pct"] == 100
    observation, _ = env.reset(seed=1)
    context, rows = env.unwrapped.columns(observation)
    np.testing.assert_array_equal(rows["is_refuse"], [0] * 16 + [1])
    assert context["load"] >= 0 and rows["tpot_now_share"].shape == (17,)
    assert gymnasium.make(IDS[0]).action_space.n == 16


def test_who_sends_where_the_first_token_is_soonest_beats_who_sends_all_to_one():
    env = gymnasium.make(IDS[0], num_requests=2000, rate_per_s=50)
    place = [name for name, _ in env.unwrapped.features["candidates"]].index("ttft_share")
    least = play(env, lambda observation, step: int(observation["candidates"][:, place].argmin()), 5)[3]
    one = play(env, lambda observation, step: 0, 5)[3]
    assert least["hits_pct"] > one["hits_pct"] + 30


def test_vectors_of_gymnasium_step_it_and_copies_begin_anew():
    envs = gymnasium.make_vec(IDS[1], num_envs=2, vectorization_mode="sync", num_requests=50)
    observation, _ = envs.reset(seed=1)
    assert observation["candidates"].shape[:2] == (2, 17)
    single = pickle.loads(pickle.dumps(gymnasium.make(IDS[1], num_requests=50).unwrapped))
    np.testing.assert_array_equal(single.reset(seed=2)[0]["candidates"], observation["candidates"][1])


def test_what_cannot_be_used_is_refused_with_what_can():
    with pytest.raises(TypeError, match="rate_per_s"):
        pleach.ServingEnv(IDS[0], rate=3)
    with pytest.raises(ValueError, match="did you mean Pleach/LlmRouting-v2"):
        pleach.ServingEnv("Pleach/LlmRouting-v9")
    with pytest.raises(ValueError, match="num_replicas = 0"):
        pleach.ServingEnv(IDS[0], replicas=0)
    env = pleach.ServingEnv(IDS[0], num_requests=20)
    env.reset(seed=0, options={"refuse": True, "num_requests": 30})
    assert env.action_space.n == 17
    with pytest.raises(ValueError, match="allowed is 0 to 16"):
        env.step(17)
