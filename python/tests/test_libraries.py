"""What other libraries do with environments, unmodified: CleanRL's loop, TorchRL, Stable-Baselines3 over the vector in Rust.

Gymnasium is always here; the others where they are installed (PLEACH_CHECK_PYTHON_LIBS=1 makes it a failure where they are not)."""

import importlib.util
import os

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import pleach

ID = "Pleach/GavelMulti-v1"


def need(module):
    if importlib.util.find_spec(module) is None:
        if os.environ.get("PLEACH_CHECK_PYTHON_LIBS") == "1":
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"{module} is not installed")


def firsts(mask):
    return mask.argmax(axis=-1)


def make_env(env_id, idx, capture_video, run_name):
    """As in CleanRL's ppo.py."""

    def thunk():
        if capture_video and idx == 0:
            env = gymnasium.make(env_id, render_mode="rgb_array")
            env = gymnasium.wrappers.RecordVideo(env, f"videos/{run_name}")
        else:
            env = gymnasium.make(env_id)
        env = gymnasium.wrappers.RecordEpisodeStatistics(env)
        return env

    return thunk


def test_cleanrls_make_env_and_its_loop():
    envs = gymnasium.vector.SyncVectorEnv([make_env(ID, index, False, "run") for index in range(2)])
    observation, _ = envs.reset(seed=1, options={"num_jobs": 5})
    returns, sums = [], np.zeros(2)
    for _ in range(200):
        observation, reward, terminated, truncated, infos = envs.step(firsts(observation["mask"][:, ::-1]) * -1 + 63)
        sums += reward
        if "episode" in infos:
            ended = infos["_episode"]
            np.testing.assert_allclose(infos["episode"]["r"][ended], sums[ended], rtol=1e-5)
            np.testing.assert_allclose(infos["metrics"]["r"][ended], sums[ended], rtol=1e-5)
            assert (infos["metrics"]["num_jobs"][ended] == 5).all() and (infos["episode"]["l"][ended] >= 5).all()
            returns.extend(infos["episode"]["r"][ended])
            break
    assert returns


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_the_statistics_of_gymnasium_around_the_vector_in_rust(mode):
    own = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="vector_entry_point", autoreset_mode=mode, num_jobs=5)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(own)
    observation, _ = envs.reset(seed=1)
    for _ in range(200):
        observation, _, terminated, _, infos = envs.step(own.random_actions())
        if terminated.any():
            break
    np.testing.assert_allclose(infos["episode"]["r"], infos["metrics"]["r"], rtol=1e-5)
    assert infos["episode"]["l"].tolist() == infos["metrics"]["l"].tolist()


def test_torchrl_makes_and_plays_an_environment_by_its_name():
    need("torchrl")
    from torchrl.envs.libs.gym import GymEnv, GymWrapper

    env = GymEnv("Pleach/GavelMulti-v1", num_jobs=5)
    assert env.num_envs == 1 if hasattr(env, "num_envs") else True
    first = env.reset()
    assert first["candidates"].shape == env.observation_spec["candidates"].shape
    with_mask = GymWrapper(gymnasium.make(ID, num_jobs=5, inadmissible="first"))
    played = with_mask.rollout(10)
    assert played["next", "reward"].shape == (len(played), 1) and played["candidates"].shape[1:] == first["candidates"].shape


def test_torchrl_wraps_the_vector():
    need("torchrl")
    from torchrl.envs.libs.gym import GymWrapper

    mode = AutoresetMode.SAME_STEP
    envs = pleach.PleachVectorEnv(ID, 2, autoreset_mode=mode, inadmissible="first", num_jobs=5)
    played = GymWrapper(envs).rollout(30, break_when_any_done=False)
    assert played.batch_size[:2] == (2, 30)


def vector(num_envs=2, **settings):
    mode = AutoresetMode.SAME_STEP
    return gymnasium.make_vec(ID, num_envs=num_envs, vectorization_mode="vector_entry_point", autoreset_mode=mode, num_jobs=5, **settings)


def test_stable_baselines3_sees_the_vector_as_it_sees_its_own():
    need("stable_baselines3")
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    from pleach.sb3 import SB3VecEnv

    ours = SB3VecEnv(vector(), is_flat=True)
    make = lambda: Monitor(pleach.wrappers.FlatObservation(gymnasium.make(ID, num_jobs=5)))
    theirs = DummyVecEnv([make, make])
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    for envs in (ours, theirs):
        envs.seed(3)
    seen = [ours.reset(), theirs.reset()]
    for _ in range(200):
        np.testing.assert_array_equal(*seen)
        masks = [np.stack(envs.env_method("action_masks")) for envs in (ours, theirs)]
        np.testing.assert_array_equal(*masks)
        (one, reward, ended, infos), (other, rewards, ends, others) = (envs.step(firsts(masks[0])) for envs in (ours, theirs))
        np.testing.assert_array_equal(reward, rewards)
        np.testing.assert_array_equal(ended, ends)
        seen = [one, other]
        if ended.any():
            break
    place = int(np.flatnonzero(ended)[0])
    np.testing.assert_array_equal(infos[place]["terminal_observation"], others[place]["terminal_observation"])
    assert infos[place]["episode"]["l"] == others[place]["episode"]["l"]
    assert infos[place]["episode"]["r"] == pytest.approx(others[place]["episode"]["r"], abs=1e-5)
    assert infos[place]["TimeLimit.truncated"] == others[place]["TimeLimit.truncated"]
    assert ours.env_is_wrapped(Monitor) == [True, True] and ours.has_attr("action_masks")
    # A curriculum: each environment its own list.
    ours.set_options([{"num_jobs": 3}, {"num_jobs": 4}])
    ours.reset()


def test_stable_baselines3_learns_over_the_vector():
    need("sb3_contrib")
    from sb3_contrib import MaskablePPO

    from pleach.sb3 import SB3VecEnv

    for policy, is_flat in (("MlpPolicy", True), ("MultiInputPolicy", False)):
        model = MaskablePPO(policy, SB3VecEnv(vector(), is_flat=is_flat), n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu")
        model.learn(128)
        assert model.num_timesteps == 128 and len(model.ep_info_buffer) > 0


def test_what_stable_baselines3_could_not_keep_is_refused():
    need("stable_baselines3")
    from pleach.sb3 import SB3VecEnv

    with pytest.raises(ValueError, match="SAME_STEP"):
        SB3VecEnv(pleach.PleachVectorEnv(ID, 2))
    with pytest.raises(ValueError, match="copy=True"):
        SB3VecEnv(vector(copy=False))
    assert SB3VecEnv(vector(copy=False), is_flat=True).num_envs == 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_minari_keeps_episodes_and_finds_the_environment_again(tmp_path, monkeypatch):
    for module in ("minari", "h5py", "jax"):
        need(module)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari

    env = minari.DataCollector(gymnasium.make(ID, num_jobs=5))
    rule, rewards = pleach.load("sjf-best-type"), []
    for seed in range(2):
        env.reset(seed=seed)
        ended = False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(rule.act(env))
            rewards.append(reward)
            ended = terminated or truncated
    env.create_dataset("pleach/gavelmulti/sjf-best-type-v0")
    dataset = minari.load_dataset("pleach/gavelmulti/sjf-best-type-v0")
    episodes = list(dataset.iterate_episodes())
    assert len(episodes) == 2 and np.concatenate([one.rewards for one in episodes]) == pytest.approx(rewards)
    again = dataset.recover_environment()
    first, _ = again.reset(seed=0)
    assert again.spec.kwargs["num_jobs"] == 5
    for key, value in episodes[0].observations.items():
        np.testing.assert_array_equal(value[0], first[key])
        assert len(value) == len(episodes[0].actions) + 1
