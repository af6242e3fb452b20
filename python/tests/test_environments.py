"""Environments as Gymnasium wants them: spaces, seeds, autoreset, refusals, copies."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import pleach

ID = "Pleach/GavelMulti-v1"
OBSERVATION = ("global", "candidates", "mask")


def vector(mode=AutoresetMode.NEXT_STEP, num_envs=3, **settings):
    return gymnasium.make_vec(
        ID, num_envs=num_envs, vectorization_mode="vector_entry_point", autoreset_mode=mode, **settings
    )


def last(mask):
    return int(np.flatnonzero(mask)[-1])


def lasts(observation):
    return np.array([last(mask) for mask in observation["mask"]])


def assert_same(left, right):
    for name in OBSERVATION:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


#: Short episodes, and pictures where there are some.
JOBS = {"num_jobs": 20, "render_mode": "rgb_array"}
REQUESTS = {"num_requests": 60}
SHORT = {**{env_id: REQUESTS for env_id in pleach.serving_ids()}, "Pleach/Sgprs-v0": {"length_s": 0.5}, "Pleach/SparkGraph-v0": {"jobs": 10}, "Pleach/Mixed-v2": {}, "Pleach/LlmServe-v1": {"hours": 1.0}}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("env_id", [*pleach.env_ids(), *pleach.serving_ids()])
def test_gymnasium_accepts_every_id_and_no_id_takes_what_it_cannot_use(env_id):
    env = gymnasium.make(env_id, inadmissible="first", **SHORT.get(env_id, JOBS)).unwrapped
    check_env(env, skip_render_check=not env.metadata["render_modes"])
    env.reset(seed=1)
    for action in (2**70, -(2**70), -1, env.action_space.n, 0.5, "0"):
        with pytest.raises(ValueError, match="action"):
            env.step(action)
    env.step(0)
    with pytest.raises(ValueError, match="inadmissible = last: allowed is raise, first"):
        gymnasium.make(env_id, inadmissible="last")
    env.close()
    for call in (env.reset, lambda: env.step(0)):
        with pytest.raises(ValueError, match="the environment is closed"):
            call()


def test_what_gymnasium_has_registered_is_what_the_two_lists_name():
    registered = [env_id for env_id in gymnasium.registry if env_id.startswith("Pleach/")]
    assert sorted(registered) == sorted([*pleach.env_ids(), *pleach.serving_ids(), *pleach.deal_ids()])


def test_an_episode_ends_with_its_figures_and_observations_are_within_their_bounds():
    env = gymnasium.make(ID, num_jobs=20, render_mode="ansi")
    observation, info = env.reset(seed=3)
    ended, seconds = False, 0.0
    while not ended:
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, info = env.step(last(observation["mask"]))
        ended, seconds = terminated or truncated, seconds + info["dt_s"]
    assert terminated and not truncated and type(reward) is float
    assert info["metrics"]["num_jobs"] == 20 and seconds > 0
    assert "0 jobs wait" in env.render()
    with pytest.raises(ValueError, match="call reset"):
        env.unwrapped.step(0)


def test_a_vector_is_its_single_environments_and_the_same_at_any_number_of_threads():
    envs = [vector(num_threads=threads, num_jobs=20) for threads in (1, 2)]
    singles = [gymnasium.make(ID, num_jobs=20) for _ in range(3)]
    observation, _ = envs[0].reset(seed=7)
    assert_same(observation, envs[1].reset(seed=7)[0])
    alone = [single.reset(seed=7 + index)[0] for index, single in enumerate(singles)]
    num_steps = 0
    for _ in range(400):
        assert_same(observation, {name: np.stack([one[name] for one in alone]) for name in OBSERVATION})
        actions = lasts(observation)
        results = [single.step(action) for single, action in zip(singles, actions)]
        alone = [result[0] for result in results]
        observation, reward, terminated, _, info = envs[0].step(actions)
        num_steps += 1
        assert_same(observation, envs[1].step(actions)[0])
        np.testing.assert_array_equal(reward, np.array([result[1] for result in results], np.float32))
        np.testing.assert_array_equal(info["dt_s"], [result[4]["dt_s"] for result in results])
        if terminated.any():
            ends = [result[4]["metrics"] if result[2] else {"r": 0.0, "l": 0} for result in results]
            np.testing.assert_allclose(info["metrics"]["r"], [end["r"] for end in ends], rtol=1e-6)
            np.testing.assert_array_equal(info["metrics"]["l"], [end["l"] for end in ends])
            assert max(info["metrics"]["l"]) == num_steps
            figures = [result[4].get("metrics", {}).get("avg_jct_s", 0.0) for result in results]
            np.testing.assert_array_equal(info["metrics"]["avg_jct_s"], figures)
            break
    assert terminated.any() and num_steps >= 20


def test_same_step_and_next_step_show_the_same_episodes():
    now, later = (vector(mode, 1, max_steps=2) for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP))
    first, _ = now.reset(seed=1)
    other, _ = later.reset(seed=1)
    for _ in range(2):
        actions = lasts(first)
        first, _, _, truncated, info = now.step(actions)
        other, _, _, also, same = later.step(actions)
    assert truncated[0] and also[0] and info["_final_obs"][0]
    assert_same(info["final_obs"][0], {name: other[name][0] for name in OBSERVATION})
    assert info["final_info"]["metrics"]["num_jobs"] == same["metrics"]["num_jobs"]
    begun, reward, _, truncated, info = later.step(np.array([63]))
    assert_same(begun, first)
    assert reward[0] == 0 and not truncated[0] and "metrics" not in info


def test_the_first_end_in_same_step_mode_is_that_of_gymnasiums_own_vector():
    ours = vector(AutoresetMode.SAME_STEP, 2, max_steps=3)
    kwargs = {"autoreset_mode": AutoresetMode.SAME_STEP}
    own = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", vector_kwargs=kwargs, max_steps=3)
    seen, _ = ours.reset(seed=4)
    own.reset(seed=4)
    for _ in range(3):
        actions = lasts(seen)
        seen, reward, terminated, truncated, info = ours.step(actions)
        _, other, *flags, theirs = own.step(actions)
        np.testing.assert_array_equal(reward, other.astype(np.float32))
        np.testing.assert_array_equal([terminated, truncated], flags)
        assert ("final_obs" in info) == ("final_obs" in theirs)
    for index in range(2):
        assert_same(info["final_obs"][index], theirs["final_obs"][index])
    for key in ("dt_s", "_dt_s", "action_mask", "_action_mask", "_metrics"):
        np.testing.assert_array_equal(info["final_info"][key], theirs["final_info"][key], err_msg=key)
    for key, value in theirs["final_info"]["metrics"].items():
        np.testing.assert_allclose(info["final_info"]["metrics"][key], value, rtol=1e-6, err_msg=key)


def test_disabled_begins_those_of_the_mask():
    envs = vector(AutoresetMode.DISABLED, 2, max_steps=1)
    observation, _ = envs.reset(seed=1)
    observation, *_ = envs.step(lasts(observation))
    with pytest.raises(ValueError, match="call reset"):
        envs.step(lasts(observation))
    begun, _ = envs.reset(seed=5, options={"reset_mask": np.array([False, True])})
    np.testing.assert_array_equal(begun["candidates"][0], observation["candidates"][0])
    assert (begun["candidates"][1] != observation["candidates"][1]).any()
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([False, False])})
    options = {"reset_mask": np.array([True, False])}
    envs.reset(seed=5, options=options)
    assert list(options) == ["reset_mask"]


def test_the_first_reset_begins_all():
    envs = vector(num_envs=2)
    options = {"reset_mask": np.array([False, True])}
    with pytest.raises(ValueError, match="call reset without a mask first"):
        envs.reset(seed=1, options=options)
    with pytest.raises(ValueError, match="call reset first"):
        envs.step(np.zeros(2, np.int64))
    envs.reset(seed=1)
    envs.reset(seed=1, options=options)
    vector(num_envs=2).reset(seed=1, options={"reset_mask": np.array([True, True])})


def test_views_are_read_only_and_outlive_their_environment():
    envs = vector(copy=False)
    observation, _ = envs.reset(seed=1)
    for view in observation.values():
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    kept = observation["candidates"].copy()
    envs.step(lasts(observation))
    assert (observation["candidates"] != kept).any()
    shared = np.from_dlpack(observation["candidates"])
    del envs
    np.testing.assert_array_equal(shared, observation["candidates"])


def test_a_refused_action_leaves_all_environments_where_they_were():
    envs = vector(num_envs=4)
    observation, _ = envs.reset(seed=1)
    actions = lasts(observation)
    actions[3] = 63
    with pytest.raises(ValueError, match="environment 3: action 63 is not admissible, for there are"):
        envs.step(actions)
    again = vector(num_envs=4)
    again.reset(seed=1)
    actions = lasts(observation)
    assert_same(envs.step(actions)[0], again.step(actions)[0])


@pytest.mark.parametrize("bad", [[0.0] * 3, [0, 0], [[0, 0, 0]], [True, True, True]])
def test_actions_of_another_kind_are_refused(bad):
    envs = vector()
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="whole numbers of shape"):
        envs.step(np.array(bad))


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"sim": {"job": 3}}, "unknown field `job`"),
        ({"jobs": 3}, "a table is a int"),
        ({"num_jobs": 0}, "at least 1"),
        ({"load": "high"}, "0.01 to 10"),
        ({"workload": "phily"}, "philly-like"),
        ({"inadmissible": "no"}, "raise, first"),
        ({"jobs": {"submit_s": [0.0]}}, "lacks num_gpus, run_time_s"),
        ({"max_steps": 0}, "at least 1"),
        ({"reward": {"jct": float("nan")}}, "NaN or infinite"),
        ({"sim": object()}, "setting is a object"),
    ],
)
def test_bad_settings_are_value_errors(settings, words):
    with pytest.raises(ValueError, match=words):
        pleach.PleachEnv(ID, **settings)
    with pytest.raises(ValueError):
        pleach.PleachEnv("Pleach/None-v0")


@pytest.mark.parametrize("make", [pleach.PleachEnv, lambda *id, **own: gymnasium.make(*id, **own), lambda id, **own: pleach.PleachVectorEnv(id, 2, **own)])
def test_a_keyword_that_nobody_knows_is_a_type_error_in_the_words_of_python(make):
    # TorchRL tries `frameskip` and goes on without it where these words come back.
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'.*num_jobs, load, jobs, cluster"):
        make(ID, frameskip=1)


CALLS = {
    "make": lambda num: pleach.PleachVectorEnv(ID, 2, num_threads=num),
    "evaluate": lambda num: pleach.evaluate(["fifo"], "philly-like", num_jobs=5, num_threads=num),
    "distill": lambda num: pleach.distill("fifo", ID, num_threads=num),
}
SEEDED = {
    "reset": lambda seed: pleach.PleachEnv(ID).reset(seed=seed),
    "resets": lambda seed: pleach.PleachVectorEnv(ID, 2).reset(seed=seed),
    "workload": lambda seed: pleach.workload("philly-like", num_jobs=5, seed=seed),
    "simulate": lambda seed: pleach.simulate(pleach.workload("philly-like", num_jobs=5), "fifo", seed=seed),
    "evaluate": lambda seed: pleach.evaluate(["fifo"], "philly-like", num_jobs=5, seed=seed),
    "distill": lambda seed: pleach.distill("fifo", ID, seed=seed),
}


@pytest.mark.parametrize("number", [-1, 1025, 2**70, True, 1.0])
@pytest.mark.parametrize("call", CALLS)
def test_numbers_of_threads_out_of_range_are_value_errors(call, number):
    with pytest.raises(ValueError, match="num_threads = .*: allowed is a whole number from 0 to 1024"):
        CALLS[call](number)


@pytest.mark.parametrize("seed", [-1, 2**64, True, 1.0])
@pytest.mark.parametrize("call", SEEDED)
def test_seeds_out_of_range_are_value_errors(call, seed):
    with pytest.raises(ValueError, match=r"seed = .*: allowed is a whole number from 0 to 2\^64 - 1"):
        SEEDED[call](seed)


@pytest.mark.parametrize("action", [-1, 64, -(2**70), 2**70])
def test_actions_out_of_range_are_value_errors(action):
    env = pleach.PleachEnv(ID)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=f"action.* {action}"):
        env.step(action)
    for name, number in (("num_envs", -1), ("num_envs", 2**70)):
        with pytest.raises(ValueError, match=f"{name} = .*: allowed is a whole number from 1 to 65536"):
            pleach.PleachVectorEnv(ID, number)
    with pytest.raises(ValueError, match="num_jobs = -1: allowed is a whole number from 1"):
        pleach.workload("philly-like", num_jobs=-1)


def test_options_and_copies_keep_settings():
    env = pleach.PleachEnv(ID, workload={"generate": {"num_jobs": 30}})
    env.reset(seed=1, options={"max_steps": 1})
    assert env.step(last(env.action_masks()))[3]
    copy = pickle.loads(pickle.dumps(env))
    assert_same(copy.reset(seed=9)[0], env.reset(seed=9, options={})[0])
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=-1)


def test_options_change_settings_until_others_are_given():
    env = pleach.PleachEnv(ID, num_jobs=20)
    jobs = pleach.workload("philly-like", num_jobs=12, seed=3)
    env.reset(seed=1, options={"jobs": jobs, "reward": {"jct": 0.0, "utilisation": 1.0}})
    ended, rewards, info = False, [], {}
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.expert_action("fifo"))
        rewards.append(reward)
        ended = terminated or truncated
    assert info["metrics"]["num_jobs"] == 12 and min(rewards) >= 0 and sum(rewards) > 0
    with pytest.raises(ValueError, match="options speed: allowed are the settings"):
        env.reset(options={"speed": 3})


def test_options_of_many_are_settings_of_all_until_others_are_given():
    envs, harder = vector(num_envs=2, num_jobs=20), vector(num_envs=2, num_jobs=20, load=2.0)

    def seconds(some, options=None):
        """Simulated time of each of the first 20 steps."""
        observation, _ = some.reset(seed=1, options=options)
        found = []
        for _ in range(20):
            observation, *_, info = some.step(lasts(observation))
            found.append(info["dt_s"].tolist())
        return found

    plain = seconds(envs)
    assert plain != seconds(harder) == seconds(envs, {"load": 2}) == seconds(envs)
    assert seconds(envs, {}) == plain
    jobs = pleach.workload("philly-like", num_jobs=12, seed=3)
    envs.reset(seed=1, options={"jobs": jobs})
    assert [len(tenants) for tenants in envs.tenants] == [len(jobs.cluster["tenants"])] * 2
    for options, words in (
        ({"reset_mask": np.ones(2, bool), "load": 2}, "reset_mask beside settings"),
        ({"speed": 3}, "options speed: allowed are the settings"),
    ):
        with pytest.raises(ValueError, match=words):
            envs.reset(options=options)
    assert envs.autoreset_mode == envs.metadata["autoreset_mode"]


def test_a_reward_function_sees_what_a_step_has_gained():
    envs = vector(num_jobs=20, reward_fn=lambda gained, decision: -gained["jobs_s"] / 3600)
    single = gymnasium.make(ID, num_jobs=20, reward_fn=lambda gained, decision: -gained["jobs_s"] / 3600)
    observation, _ = envs.reset(seed=7)
    single.reset(seed=7)
    total = 0.0
    for _ in range(60):
        actions = lasts(observation)
        observation, reward, *_ = envs.step(actions)
        _, alone, terminated, _, info = single.step(actions[0])
        assert set(single.unwrapped.gained()) == set(pleach.INTEGRALS)
        assert alone == reward[0] <= 0
        total += alone
        if terminated:
            break
    assert terminated
    # Little's law: the integral of the jobs in the system is the sum of their completion times.
    assert -total * 3600 == pytest.approx(info["metrics"]["avg_jct_s"] * 20, rel=1e-5)
    broken = vector(reward_fn=lambda gained, decision: 0.0)
    observation, _ = broken.reset(seed=1)
    with pytest.raises(ValueError, match="reward_fn returned"):
        broken.step(lasts(observation))


def test_the_step_that_begins_an_episode_has_no_reward_of_a_function():
    envs = vector(num_envs=2, max_steps=3, reward_fn=lambda gained, decision: np.ones(2))
    envs.reset(seed=1)
    for number in range(12):
        _, reward, _, truncated, info = envs.step(envs.random_actions())
        begins, ends = number % 4 == 3, number % 4 == 2
        assert reward.dtype == np.float32 and reward.tolist() == [0.0 if begins else 1.0] * 2
        assert truncated.tolist() == [ends] * 2
        if ends:
            assert info["metrics"]["r"].tolist() == [3.0, 3.0] and info["metrics"]["l"].tolist() == [3, 3]
    # A reset between an end and the step after it has begun the episode already.
    envs.reset(seed=1)
    for _ in range(3):
        envs.step(envs.random_actions())
    envs.reset(options={"reset_mask": np.array([False, True])})
    assert envs.step(envs.random_actions())[1].tolist() == [0.0, 1.0]
    same = vector(AutoresetMode.SAME_STEP, 2, max_steps=3, reward_fn=lambda gained, decision: np.ones(2))
    same.reset(seed=1)
    assert all(same.step(same.random_actions())[1].all() for _ in range(8))


def test_pictures_show_what_runs():
    env = gymnasium.make(ID, num_jobs=20, render_mode="rgb_array")
    env.reset(seed=1)
    first = env.render()
    assert first.shape == (360, 640, 3) and first.dtype == np.uint8
    for _ in range(15):
        env.step(env.unwrapped.expert_action("sjf"))
    later = env.render()
    assert (first != later).any() and len(np.unique(later.reshape(-1, 3), axis=0)) > 4


def test_a_closed_environment_says_so():
    env, envs = pleach.PleachEnv(ID), vector()
    env.reset(seed=1)
    envs.reset(seed=1)
    env.close()
    envs.close()
    for closed in (env, envs):
        with pytest.raises(ValueError, match="closed"):
            closed.reset(seed=1)
    with pytest.raises(ValueError, match="closed"):
        env.step(0)


def test_wrappers_hold_the_same_numbers():
    env = gymnasium.make(ID, num_jobs=20)
    observation, _ = env.reset(seed=3)
    one = pleach.wrappers.FlatObservation(gymnasium.make(ID, num_jobs=20))
    row, _ = one.reset(seed=3)
    assert one.observation_space.contains(row)
    np.testing.assert_array_equal(row[-64:], observation["mask"])
    renamed = pleach.wrappers.ActionMaskObservation(gymnasium.make(ID, num_jobs=20))
    both, _ = renamed.reset(seed=3)
    assert renamed.observation_space.contains(both)
    np.testing.assert_array_equal(np.concatenate([both["observations"], both["action_mask"]]), row)
    envs = pleach.wrappers.FlatVectorObservation(vector())
    rows, _ = envs.reset(seed=3)
    assert envs.observation_space.contains(rows)
    seen, _ = vector().reset(seed=3)
    ragged = pleach.wrappers.ragged(seen)
    for index, mask in enumerate(seen["mask"]):
        part = slice(ragged["offsets"][index], ragged["offsets"][index + 1])
        np.testing.assert_array_equal(ragged["actions"][part], np.flatnonzero(mask))
        np.testing.assert_array_equal(ragged["rows"][part], seen["candidates"][index][mask.astype(bool)])


def test_one_decision_per_instant_lets_time_pass():
    env = pleach.wrappers.OneDecisionPerInstant(gymnasium.make(ID, num_jobs=20))
    observation, _ = env.reset(seed=3)
    ended, num = False, 0
    while not ended:
        observation, _, terminated, truncated, info = env.step(last(observation["mask"]))
        assert info["dt_s"] > 0 or terminated or not info["action_mask"][0]
        ended, num = terminated or truncated, num + 1
    assert info["metrics"]["num_jobs"] == 20 and num > 1


def views():
    """Names of the views that there are, as a refusal gives them; builds of tests have one more than others."""
    with pytest.raises(ValueError) as refused:
        pleach.PleachEnv(ID, columns="decision-9")
    allowed = str(refused.value).split("allowed is ")[1].split(". ")[0]
    return allowed.split(", ")


def test_an_environment_shows_the_view_that_is_named_and_spaces_follow():
    plain = pleach.PleachEnv(ID)
    first, _ = plain.reset(seed=3)
    assert views()[0] == "decision-1"
    for name in views():
        env = pleach.PleachEnv(ID, columns=name)
        seen, _ = env.reset(seed=3)
        assert seen in env.observation_space
        widths = {"global": seen["global"].shape[-1], "candidates": seen["candidates"].shape[-1]}
        for key, width in widths.items():
            known = plain.features[key]
            assert len(env.features[key]) == width >= len(known) and env.features[key][: len(known)] == known
            np.testing.assert_array_equal(seen[key][..., : len(known)], first[key])
        if name == "decision-1":
            assert env.observation_space == plain.observation_space
        envs = vector(columns=name)
        many, _ = envs.reset(seed=3)
        assert many in envs.observation_space and envs.single_observation_space == env.observation_space
        assert_same({key: many[key][0] for key in OBSERVATION}, seen)
        # A function is shown what its environment shows.
        shown = []
        own = pleach.Policy.of(lambda seen: shown.append(seen["candidates"].shape[1]) or last(seen["mask"]), "mine", columns=name)
        assert own.act(env) == last(seen["mask"]) and shown == [widths["candidates"]]


def test_views_that_nobody_has_and_views_of_a_reset_are_refused():
    env = pleach.PleachEnv(ID)
    with pytest.raises(ValueError, match="columns = decision-9: allowed is decision-1"):
        vector(columns="decision-9")
    with pytest.raises(ValueError, match="columns = decision-9: allowed is decision-1"):
        pleach.Policy.of(lambda seen: 0, columns="decision-9")
    with pytest.raises(ValueError, match="options columns: .*its spaces stay"):
        env.reset(seed=1, options={"columns": "decision-1"})
