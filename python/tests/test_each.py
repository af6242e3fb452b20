"""Settings of each environment of a vector: curricula, one list each, and what is refused."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import pleach

ID = "Pleach/GavelMulti-v1"
OBSERVATION = ("global", "candidates", "mask")


def vector(num_envs=3, mode=AutoresetMode.SAME_STEP, **settings):
    return gymnasium.make_vec(ID, num_envs=num_envs, vectorization_mode="vector_entry_point", autoreset_mode=mode, **settings)


def sizes(envs, num_steps=400):
    """Jobs in the first episode of each environment that ends."""
    found = np.zeros(envs.num_envs)
    for _ in range(num_steps):
        *_, info = envs.step(envs.random_actions())
        if "metrics" in info:
            ended = info["_metrics"] & (found == 0)
            found[ended] = info["metrics"]["num_jobs"][ended]
        if found.all():
            break
    return found.tolist()


@pytest.mark.parametrize("num_threads", [1, 2])
def test_each_environment_is_the_single_one_with_its_settings(num_threads):
    envs = vector(num_threads=num_threads)
    options = [{"num_jobs": 4}, {"num_jobs": 6, "load": 3.0}, {"jobs": pleach.workload("philly-like", num_jobs=5)}]
    seen, _ = envs.reset(seed=5, options=options)
    singles = [gymnasium.make(ID) for _ in options]
    alone = [single.reset(seed=5 + index, options=one)[0] for index, (single, one) in enumerate(zip(singles, options))]
    over = np.zeros(3, bool)
    for _ in range(60):
        for index in np.flatnonzero(~over):
            for name in OBSERVATION:
                np.testing.assert_array_equal(seen[name][index], alone[index][name])
        actions = seen["mask"].argmax(1)
        seen, _, terminated, truncated, _ = envs.step(actions)
        over |= terminated | truncated
        for index in np.flatnonzero(~over):
            alone[index] = singles[index].step(int(actions[index]))[0]
        if over.all():
            break
    assert over.all()


def test_settings_of_each_stay_until_others_are_given():
    envs = vector(num_jobs=3)
    envs.reset(seed=1, options=[{"num_jobs": 4}, {"num_jobs": 5}, None])
    assert sizes(envs) == [4, 5, 3]
    # Episodes that begin by themselves have them too.
    assert sizes(envs) == [4, 5, 3]
    envs.reset(seed=2)
    assert sizes(envs) == [4, 5, 3]
    envs.reset(seed=2, options=[None, {"num_jobs": 7}, None])
    assert sizes(envs) == [4, 7, 3]
    envs.reset(seed=2, options={"num_jobs": 6})
    assert sizes(envs) == [6, 6, 6]
    envs.reset(seed=2, options=[{}, None, {}])
    assert sizes(envs) == [3, 6, 3]
    envs.reset(seed=2, options={"num_jobs": 6})
    assert sizes(envs) == [6, 6, 6]


def test_integrals_of_tenants_are_kept_where_settings_change():
    envs = vector(by_tenant=True)
    envs.reset(seed=1, options=[None, {"jobs": pleach.workload("philly-like", num_jobs=5)}, {"num_jobs": 4}])
    envs.step(envs.action_masks().argmax(axis=1))
    assert envs.gained()["tenant_waiting_s"].shape == (3, max(len(tenants) for tenants in envs.tenants))


def test_what_does_not_fit_is_refused_and_nothing_has_changed():
    envs = vector(num_jobs=3)
    envs.reset(seed=1)
    for options, words in (
        ([{}, {}], "2 options: allowed is one dict for all, or 3"),
        ([{"num_jobs": 9}, {"speed": 2}, None], "options speed: allowed are the settings [^?]*$"),
        ([{"num_jobs": 9}, {"num_job": 2}, None], "options num_job: .*Did you mean num_jobs"),
        ([{"num_jobs": 9}, {"load": -1}, None], "load = -1"),
        ([{"columns": "decision-2"}, None, None], "options columns"),
    ):
        with pytest.raises(ValueError, match=words):
            envs.reset(options=options)
    assert sizes(envs) == [3, 3, 3]


def test_a_setting_that_nobody_knows_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_job': .*Did you mean num_jobs"):
        vector(num_job=3)


def test_a_comparison_in_environments_that_differ_is_refused():
    envs = vector()
    envs.reset(seed=1, options=[{"num_jobs": 4}, None, None])
    for call in (lambda: pleach.evaluate(["sjf"], envs), lambda: pleach.distill("sjf", envs), lambda: pleach.train(envs)):
        with pytest.raises(ValueError, match="settings of their own each"):
            call()
    envs.reset(options=[{"num_jobs": 4}] * 3)
    assert pleach.evaluate(["sjf"], envs, seeds=1).runs == pleach.evaluate(["sjf"], ID, num_jobs=4, seeds=1).runs
