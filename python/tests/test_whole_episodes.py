"""What plays lists to their end refuses environments that end them early, instead of leaving that out."""

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

import pleach

ID = "Pleach/GavelMulti-v1"
CALLS = {
    "evaluate": lambda env: pleach.evaluate(["sjf"], env, seeds=1),
    "distill": lambda env: pleach.distill("sjf", env, leaves=[2], rounds=0, episodes=1),
    "train": lambda env: pleach.train(env, num_updates=0, num_validation=2),
}


@pytest.mark.parametrize("call", CALLS)
def test_max_steps_and_time_limits_are_refused_where_whole_lists_are_played(call):
    with pytest.raises(ValueError, match=f"max_steps = 10 of the environment: allowed is none, for {call} plays lists to their end"):
        CALLS[call](pleach.PleachEnv(ID, num_jobs=10, max_steps=10))
    for env in (TimeLimit(pleach.PleachEnv(ID, num_jobs=10), 10), gymnasium.make(ID, num_jobs=10, max_episode_steps=10)):
        with pytest.raises(ValueError, match=f"a TimeLimit around the environment: allowed is none, for {call} plays"):
            CALLS[call](env)
    CALLS[call](gymnasium.make(ID, num_jobs=10))


def test_max_steps_among_the_settings_of_a_call_are_refused_too():
    with pytest.raises(ValueError, match="max_steps = 3"):
        pleach.distill("sjf", ID, settings={"max_steps": 3})
    with pytest.raises(ValueError, match="max_steps = 3"):
        pleach.train(ID, settings={"max_steps": 3})


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("env_id", pleach.serving_ids())
def test_environments_that_serve_are_refused_in_words(call, env_id):
    with pytest.raises(ValueError, match=f"{env_id} serves requests: allowed are environments of jobs"):
        CALLS[call](gymnasium.make(env_id))
