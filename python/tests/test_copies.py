"""Copies of an environment in the middle of an episode go on as it does, and leave it alone."""

import copy
import json
import pickle

import gymnasium
import numpy as np
import pytest

import pleach

WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def reward_of_waiting(gained, decision):
    return -gained["waiting_s"] / 3600


def one(env):
    """A drawn action and all that its step returns, as bytes."""
    action = env.random_action()
    observation, *rest = env.step(action)
    return action, [value.tobytes() for value in observation.values()], repr(rest)


@pytest.mark.parametrize("env_id", pleach.env_ids())
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_in_the_middle_of_an_episode_goes_on_bit_by_bit(way, env_id):
    env = pleach.PleachEnv(env_id, num_jobs=40, reward_fn=reward_of_waiting, by_tenant=True, render_mode="rgb_array")
    env.reset(seed=1)
    env.reset(options={"max_steps": 60})
    for _ in range(15):
        one(env)
    others = [WAYS[way](env), WAYS[way](env)]
    before = others[0].action_masks().tobytes(), others[0].render().tobytes()
    own = [one(env) for _ in range(15)]
    assert (others[0].action_masks().tobytes(), others[0].render().tobytes()) == before
    for other in others:
        assert [one(other) for _ in range(15)] == own
    np.testing.assert_array_equal(env.render(), others[0].render())
    # Also what follows is the same: the next list, and that the options hold.
    seen, _ = env.reset()
    for name, value in others[1].reset()[0].items():
        np.testing.assert_array_equal(seen[name], value)
    assert not others[1].step(others[1].random_action())[3]
    for _ in range(58):
        if any(others[1].step(others[1].random_action())[2:4]):
            return
    assert others[1].step(others[1].random_action())[3]


@pytest.mark.parametrize("way", WAYS)
def test_copies_before_an_episode_at_its_end_and_within_wrappers_are_what_they_copy(way):
    env = pleach.PleachEnv("Pleach/GavelMulti-v1", num_jobs=5)
    with pytest.raises(ValueError, match="no episode has begun"):
        WAYS[way](env).step(0)
    env.reset(seed=2)
    while not env.step(env.random_action())[2]:
        pass
    for other in (env, WAYS[way](env)):
        with pytest.raises(ValueError, match="the episode is over"):
            other.step(0)
    env.close()
    with pytest.raises(ValueError, match="closed"):
        WAYS[way](env).reset()
    wrapped = gymnasium.make("Pleach/GavelMulti-v1", num_jobs=5, max_episode_steps=3)
    wrapped.reset(seed=3)
    wrapped.step(wrapped.unwrapped.random_action())
    other = copy.deepcopy(wrapped)
    assert [other.step(other.unwrapped.random_action())[3] for _ in range(2)] == [False, True]
    assert not wrapped.step(wrapped.unwrapped.random_action())[3]


@pytest.mark.parametrize("mode", ["same-step", "next-step", "disabled"])
@pytest.mark.parametrize("env_id", ["Pleach/PhillyShare-v1", "Pleach/GavelMultiRealistic-v2", "Pleach/LlmSite-v1"])
def test_forks_of_a_vector_go_on_bit_by_bit_under_the_same_actions_and_part_under_others(env_id, mode):
    word = {"same-step": "SAME_STEP", "next-step": "NEXT_STEP", "disabled": "DISABLED"}[mode]
    envs = pleach.PleachVectorEnv(
        env_id, num_envs=4, num_jobs=30, autoreset_mode=gymnasium.vector.AutoresetMode[word], reward_fn=reward_of_waiting, by_tenant=True
    )
    envs.reset(seed=5)
    for _ in range(10):
        envs.step(envs.random_actions())
    observation = envs.fork(1, [0, 3, 1])
    seen = [b"".join(rows[place].tobytes() for rows in observation.values()) for place in range(4)]
    assert seen[0] == seen[1] == seen[3] != seen[2]
    tenants = envs.tenants
    assert tenants[0] == tenants[1] == tenants[3]
    same = True
    for step in range(60):
        actions = envs.random_actions()
        allowed = np.flatnonzero(envs.action_masks()[1])
        actions[[0, 1]] = actions[1]
        if same:
            actions[3] = allowed[-1] if step == 5 and allowed[-1] != actions[1] else actions[1]
            same = actions[3] == actions[1]
        observation, reward, terminated, truncated, info = envs.step(actions)
        for rows in (*observation.values(), reward, terminated, truncated, info["dt_s"], *envs.gained().values()):
            assert rows[0].tobytes() == rows[1].tobytes()
            if same:
                assert rows[3].tobytes() == rows[1].tobytes()
        if mode == "disabled" and (terminated | truncated).any():
            break
    assert not same
    with pytest.raises(IndexError, match="allowed is 0 to 3"):
        envs.fork(0, [4])
    with pytest.raises(ValueError, match="call reset first"):
        pleach.PleachVectorEnv(env_id, num_envs=2).fork(0, [1])


SERVING = {
    "Pleach/LlmRouting-v2": {"num_requests": 60},
    "Pleach/EsgPublished-v0": {"num_requests": 60},
    "Pleach/Sgprs-v0": {"length_s": 0.3},
    "Pleach/SparkGraph-v0": {"jobs": 10},
    "Pleach/Mixed-v2": {"hours": 0.25, "rate_per_s": 60},
}


def last_row(env):
    """The last row that may be taken, and all that its step returns, as bytes."""
    action = int(np.flatnonzero(env.action_masks())[-1])
    observation, *rest = env.step(action)
    return action, [value.tobytes() for value in observation.values()], repr(rest)


@pytest.mark.parametrize("env_id", SERVING)
@pytest.mark.parametrize("way", [*WAYS, "fork"])
def test_copies_of_what_serves_go_on_bit_by_bit(way, env_id):
    env = pleach.ServingEnv(env_id, **SERVING[env_id])
    env.reset(seed=4)
    for _ in range(6):
        last_row(env)
    other = env.fork() if way == "fork" else WAYS[way](env)
    seen = other.action_masks().tobytes()
    own = [last_row(env) for _ in range(6)]
    assert other.action_masks().tobytes() == seen
    assert [last_row(other) for _ in range(6)] == own
    # The list after this one is the same too.
    for value, also in zip(env.reset()[0].values(), other.reset()[0].values()):
        np.testing.assert_array_equal(value, also)


@pytest.mark.parametrize("env_id", ["Pleach/GavelMultiRealistic-v2", "Pleach/LlmRouting-v2"])
def test_a_saved_state_is_plain_data_and_goes_on_in_another_environment(env_id):
    serves = env_id in pleach.serving_ids()
    make, settings = (pleach.ServingEnv, {"num_requests": 60}) if serves else (pleach.PleachEnv, {"num_jobs": 30})
    step = last_row if serves else one
    env = make(env_id, **settings)
    with pytest.raises(ValueError, match="call reset first"):
        env.save_state()
    env.reset(seed=6, options={"num_requests": 50} if serves else {"num_jobs": 25})
    for _ in range(8):
        step(env)
    state = json.loads(json.dumps(env.save_state()))
    own = [step(env) for _ in range(8)]
    other = make(env_id, **settings)
    other.reset(seed=1)
    observation, info = other.load_state(state)
    assert observation["mask"].tobytes() == info["action_mask"].tobytes()
    assert [step(other) for _ in range(8)] == own
    # Back in the same environment: the state is no part of it.
    env.load_state(state)
    assert [step(env) for _ in range(8)] == own
    ended = False
    while not ended:
        action = int(np.flatnonzero(env.action_masks())[-1])
        *_, ended, _, ends = env.step(action)
        *_, also = other.step(action)
    assert ends["metrics"] == also["metrics"]
    for change, match in [
        ({"env_id": "Pleach/Other-v0"}, "allowed is one of"),
        ({"seed": -1}, "seed = -1"),
        ({"actions": [1.5]}, "an action of the state = 1.5"),
        ({"actions": [9_999]}, "9999"),
    ]:
        with pytest.raises(ValueError, match=match):
            other.load_state({**state, **change})
    with pytest.raises(ValueError, match="state without seed"):
        other.load_state({name: value for name, value in state.items() if name != "seed"})


def test_a_copy_of_a_vector_goes_on_bit_by_bit_and_a_pickle_begins_anew():
    envs = pleach.PleachVectorEnv("Pleach/GavelMulti-v1", num_envs=3, num_jobs=12, reward_fn=reward_of_waiting)
    envs.reset(seed=[1, 2, 3])
    for _ in range(20):
        envs.step(envs.random_actions())
    other = copy.deepcopy(envs)
    mask = other.action_masks().tobytes()
    for _ in range(60):
        actions = envs.random_actions()
        observation, *rest = envs.step(actions)
        if mask is not None:
            assert other.action_masks().tobytes() == mask
            mask = None
        seen, *also = other.step(other.random_actions())
        assert repr(rest) == repr(also)
        for name, value in observation.items():
            np.testing.assert_array_equal(value, seen[name])
    with pytest.raises(ValueError, match="call reset first"):
        pickle.loads(pickle.dumps(envs)).step(actions)
