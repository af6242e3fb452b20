"""A name that nobody knows is a ValueError, in all functions, that names it and what is allowed."""

import pytest

import pleach

ID = "Pleach/GavelMulti-v1"
CALLS = {
    "PleachEnv": lambda name: pleach.PleachEnv(name),
    "PleachVectorEnv": lambda name: pleach.PleachVectorEnv(name, 2),
    "workload": lambda name: pleach.workload(name),
    "evaluate": lambda name: pleach.evaluate(["sjf"], name),
    "distill": lambda name: pleach.distill("sjf", name),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["Pleach/GavelMulti-v9", "Pleach/None-v0", "gavelmulti", ""])
def test_an_unknown_environment(call, name):
    with pytest.raises(ValueError) as error:
        CALLS[call](name)
    text = str(error.value)
    assert name in text and all(known in text for known in pleach.env_ids()), text


@pytest.mark.parametrize("call", CALLS)
def test_the_nearest_name_is_offered(call):
    with pytest.raises(ValueError, match="[Dd]id you mean Pleach/GavelMulti-v[01]\\?"):
        CALLS[call]("Pleach/GavelMuti-v1")
    if call in ("workload", "evaluate"):
        with pytest.raises(ValueError, match=r"Did you mean gavel-multi\?"):
            CALLS[call]("gavelmulti")


@pytest.mark.parametrize("call", ["evaluate", "workload"])
def test_generators_are_named_too(call):
    with pytest.raises(ValueError) as error:
        CALLS[call]("phily-like")
    assert all(known in str(error.value) for known in pleach.workload_names())


@pytest.mark.parametrize("policy", ["sjff", "Sjf", "no/such/file.json"])
def test_an_unknown_policy(policy):
    jobs = pleach.workload("philly-like", num_jobs=5)
    env = pleach.PleachEnv(ID, num_jobs=5)
    env.reset(seed=1)
    calls = (
        lambda: pleach.load(policy),
        lambda: pleach.simulate(jobs, policy),
        lambda: pleach.evaluate([policy], jobs),
        lambda: pleach.distill(policy, ID),
        lambda: env.expert_action(policy),
    )
    for call in calls:
        with pytest.raises((ValueError, FileNotFoundError), match=policy):
            call()


def test_a_policy_is_refused_in_the_same_words_at_every_door(tmp_path):
    noise, folder = tmp_path / "noise.ckpt", tmp_path / "empty"
    noise.write_text("no network")
    folder.mkdir()
    jobs = pleach.workload("philly-like", num_jobs=5)
    for place in ("sjff", "mine=sjff", "deal:sjff", "deal:las-deal", str(noise), str(folder)):
        said = set()
        for call in (pleach.load, lambda place: pleach.simulate(jobs, place), lambda place: pleach.evaluate([place], jobs)):
            with pytest.raises(ValueError) as error:
                call(place)
            said.add(str(error.value))
        assert len(said) == 1, said
