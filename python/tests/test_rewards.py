"""What rewards are made of: integrals over the simulated time of a step, of all jobs and of each tenant."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import pleach

ID = "Pleach/Philly-v0"


def played(env, policy="fifo"):
    """What each step of an episode gained, and its figures."""
    env.reset(seed=3)
    gained, ended, info = [], False, {}
    while not ended:
        _, _, terminated, truncated, info = env.step(env.expert_action(policy))
        gained.append({**env.gained(), "dt_s": info["dt_s"]})
        ended = terminated or truncated
    return gained, info["metrics"]


def test_integrals_of_an_episode_are_its_figures():
    gained, figures = played(pleach.PleachEnv(ID, num_jobs=150, load=3.0))
    totals = {name: sum(one[name] for one in gained) for name in pleach.INTEGRALS}
    assert totals["jobs_s"] == pytest.approx(150 * figures["avg_jct_s"], rel=1e-6)
    assert totals["waiting_s"] == pytest.approx(150 * figures["avg_wait_s"], rel=1e-6)
    assert 0 < totals["held_gpu_s"] and 150 <= totals["slowdown"] < totals["jobs_s"]
    assert set(gained[0]) == {*pleach.INTEGRALS, "dt_s"}


def test_those_of_tenants_add_up_and_are_those_of_their_jobs():
    jobs = pleach.workload(ID, num_jobs=150, load=3.0, seed=2)
    env = pleach.PleachEnv(ID, jobs=jobs, by_tenant=True)
    gained, figures = played(env)
    assert env.tenants == tuple(tenant["name"] for tenant in jobs.cluster["tenants"]) and len(env.tenants) == 5
    for one in gained:
        assert tuple(one) == (*pleach.INTEGRALS, *pleach.TENANT_INTEGRALS, "dt_s")
        assert one["tenant_waiting_s"].shape == one["tenant_held_gpu_s"].shape == (5,)
        assert one["tenant_waiting_s"].sum() == pytest.approx(one["waiting_s"])
        assert one["tenant_held_gpu_s"].sum() == pytest.approx(one["held_gpu_s"])
    outcome = pleach.simulate(jobs, "fifo", preemption=False)
    assert outcome.metrics["avg_jct_s"] == pytest.approx(figures["avg_jct_s"])
    waited_s, held_gpu_s = (sum(one[name] for one in gained) for name in pleach.TENANT_INTEGRALS)
    for place, name in enumerate(env.tenants):
        own = np.array([tenant == name for tenant in outcome.jobs["tenant"]])
        assert waited_s[place] == pytest.approx(outcome.jobs["wait_s"][own].sum(), abs=1e-3)
        held = outcome.jobs["held_s"][own] * outcome.jobs["num_gpus"][own]
        assert held_gpu_s[place] == pytest.approx(held.sum(), abs=1e-3)
    assert (waited_s > 0).all()


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_a_fair_reward_of_n_environments(mode):
    seen = []

    def fair(gained, decision):
        seen.append(gained)
        return -gained["tenant_waiting_s"].max(axis=1) / 3600

    envs = pleach.PleachVectorEnv(ID, 3, autoreset_mode=mode, num_jobs=60, load=3.0, by_tenant=True, reward_fn=fair, max_episode_steps=80)
    again = pickle.loads(pickle.dumps(pleach.PleachVectorEnv(ID, 3, num_jobs=30, by_tenant=True)))
    again.reset(seed=1)
    assert again.gained()["tenant_waiting_s"].shape == (3, 5) and not again.gained()["tenant_waiting_s"].any()
    envs.reset(seed=1)
    assert envs.tenants[0] == envs.tenants[2] and len(envs.tenants[0]) == 5
    ends, rewards = 0, []
    for _ in range(250):
        _, reward, terminated, truncated, info = envs.step(envs.random_actions())
        np.testing.assert_allclose(seen[-1]["tenant_waiting_s"].sum(axis=1), seen[-1]["waiting_s"], atol=1e-6)
        ends += int((terminated | truncated).sum())
        rewards.append(reward)
    assert ends >= 3 and np.min(rewards) < 0 == np.max(rewards)


def test_tenants_are_known_once_an_episode_has_begun_and_kept_only_where_asked():
    env = gymnasium.make(ID, num_jobs=20)
    with pytest.raises(ValueError, match="call reset first"):
        env.unwrapped.tenants
    env.reset(seed=1)
    assert tuple(env.unwrapped.gained()) == pleach.INTEGRALS
    with pytest.raises(KeyError, match="tenant_waiting_s"):
        needy = pleach.PleachEnv(ID, reward_fn=lambda gained, decision: gained["tenant_waiting_s"].sum(axis=1))
        needy.reset(seed=1)
        needy.step(needy.random_action())


@pytest.mark.parametrize("env_id", ["Pleach/GavelMulti-v1", "Pleach/PhillyPreempt-v0", "Pleach/PhillyShare-v0"])
def test_what_decisions_commit_and_what_waits_are_the_delay(env_id):
    waited = []

    def delay(gained, decision):
        waited.append(gained["waiting_s"][0])
        return -(gained["waiting_s"] + decision["committed_s"])

    own = pleach.PleachEnv(env_id, num_jobs=60, load=2.0, reward_fn=delay)
    words = pleach.PleachEnv(env_id, num_jobs=60, load=2.0, reward="-waiting_jobs_s - excess_run_s")
    own.reset(seed=4)
    words.reset(seed=4)
    ended, committed = False, 0.0
    while not ended:
        action = own.random_action()
        _, reward, ended, _, _ = own.step(action)
        _, paid, _, _, _ = words.step(action)
        assert reward == pytest.approx(paid, rel=1e-5, abs=1e-2)
        committed -= reward + waited[-1]
    assert committed > 1000


def test_a_reward_function_is_told_what_was_decided():
    told = []

    def count(gained, decision):
        told.append({name: value[0] for name, value in decision.items()})
        return (decision["kind"] == pleach.CANDIDATE_KINDS.index("start")).astype(float)

    jobs = pleach.workload("Pleach/GavelMulti-v1", num_jobs=25, load=3.0, seed=2)
    env = pleach.PleachEnv("Pleach/GavelMulti-v1", jobs=jobs, reward_fn=count, candidate_info=True)
    _, info = env.reset(seed=1)
    ended, starts = False, 0.0
    while not ended:
        action = env.expert_action("sjf-best-type")
        before, mask = info["candidates"], info["action_mask"]
        assert (before["kind"][1:] >= 0).tolist() == mask[1:].tolist()
        _, reward, ended, _, info = env.step(action)
        assert {name: before[name][action] for name in before} == {name: told[-1][name] for name in before}
        starts += reward
    started = [one for one in told if pleach.CANDIDATE_KINDS[one["kind"]] == "start"]
    assert starts == len(started) == 25 and sorted(one["job"] for one in started) == list(range(25))
    # As many GPUs as the jobs of the list ask for, in their rows.
    assert all(one["num_gpus"] == jobs.columns["num_gpus"][one["job"]] and one["node"] >= 0 <= one["gpu_type"] for one in started)
    held = [one for one in told if pleach.CANDIDATE_KINDS[one["kind"]] == "hold"]
    assert all((one["job"], one["gpu_type"], one["node"], one["num_gpus"]) == (-1, -1, -1, 0) for one in held)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_of_n_environments_the_step_that_begins_an_episode_decides_nothing(mode):
    told = []

    def none(gained, decision):
        told.append(decision)
        return np.zeros(2)

    envs = pleach.PleachVectorEnv(ID, 2, autoreset_mode=mode, reward_fn=none, max_episode_steps=3, candidate_info=True)
    _, info = envs.reset(seed=1)
    for number in range(12):
        actions, before = envs.random_actions(), info["candidates"]
        info = envs.step(actions)[-1]
        begins = mode == AutoresetMode.NEXT_STEP and number % 4 == 3
        expected = [-1, -1] if begins else before["kind"][np.arange(2), actions].tolist()
        assert told[-1]["kind"].tolist() == expected and info["candidates"]["job"].shape == info["action_mask"].shape


def test_a_reward_function_of_one_argument_is_answered_with_its_new_form():
    for make in (pleach.PleachEnv, pleach.PleachVectorEnv):
        with pytest.raises(TypeError, match=r"reward_fn\(gained, decision\).*lambda gained, decision"):
            make(ID, reward_fn=lambda gained: -gained["jobs_s"])
