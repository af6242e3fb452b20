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

    def fair(gained):
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
        needy = pleach.PleachEnv(ID, reward_fn=lambda gained: gained["tenant_waiting_s"].sum(axis=1))
        needy.reset(seed=1)
        needy.step(needy.random_action())
