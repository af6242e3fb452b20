"""A function plays, in comparisons and as a teacher, what its environment shows: the same candidates, to the same end."""

import json
import zlib

import gymnasium
import numpy as np
import pytest

import pleach

OBSERVATION = ("global", "candidates", "mask")
NAMES = [name for name, _ in pleach.PleachEnv("Pleach/Philly-v0").features["candidates"]]


def numbers(observation):
    """A digest of all that an observation holds."""
    digest = 0
    for name in OBSERVATION:
        digest = zlib.crc32(np.ascontiguousarray(observation[name]).tobytes(), digest)
    return digest


def drawn(observation):
    """An admissible candidate that the numbers decide and nothing else."""
    admissible = np.flatnonzero(observation["mask"])
    return int(admissible[numbers(observation) % len(admissible)])


class Watched:
    """Remembers what it was shown: digests, and kinds of candidates with their counts."""

    __name__ = "watched"

    def __init__(self):
        self.digests, self.counts, self.kinds = [], [], set()

    def __call__(self, observation):
        rows = observation["candidates"][observation["mask"].astype(bool)]
        self.digests.append(numbers(observation))
        self.counts.append(len(rows))
        kinds = ("is_hold", "is_start", "is_reserve", "is_preempt", "is_beside")
        self.kinds |= {kind for kind in kinds if rows[:, NAMES.index(kind)].any()}
        self.kinds |= {"sizes"} if (rows[1:, NAMES.index("size_ratio")] != rows[1:2, NAMES.index("size_ratio")]).any() else set()
        return drawn(observation)


def stepped(env, seed=0, options=None):
    """What the same choices are shown step by step, and the average JCT, s."""
    watched, ended = Watched(), False
    observation, info = env.reset(seed=seed, options=options)
    while not ended:
        observation, _, terminated, truncated, info = env.step(watched(observation))
        ended = terminated or truncated
    return watched, info["metrics"]["avg_jct_s"]


@pytest.mark.parametrize("env_id", pleach.env_ids())
def test_evaluate_shows_a_function_what_the_environment_shows_and_ends_alike(env_id):
    env = gymnasium.make(env_id, num_jobs=100, load=8.0)
    kinds = set()
    for seed in range(4):
        compared = Watched()
        found = pleach.evaluate([compared], env_id, num_jobs=100, load=8.0, seeds=1, seed=seed)
        jobs = pleach.workload(env_id, num_jobs=100, load=8.0, seed=found.runs["seed"][0])
        alone, avg_jct_s = stepped(env, options={"jobs": jobs})
        assert len(compared.digests) > 100
        # Where beliefs err, the seed of an episode says how, and an environment draws it itself: the same list is shown otherwise.
        if not any(word in env_id for word in ("Realistic", "LlmSite")):
            assert compared.digests == alone.digests and found.runs["avg_jct_s"] == [avg_jct_s]
            assert compared.counts == alone.counts and compared.kinds == alone.kinds
        kinds |= compared.kinds & alone.kinds
    offers = {"Preempt": "is_preempt", "Share": "is_beside", "Elastic": "sizes"}
    expected = {kind for word, kind in offers.items() if word in env_id}
    expected |= {"is_preempt", "is_beside"} if "Mixed" in env_id else set()
    assert expected | {"is_hold", "is_start"} <= kinds


@pytest.mark.parametrize("env_id", pleach.env_ids())
def test_a_teacher_chooses_among_what_the_environment_shows(env_id):
    teacher = Watched()
    config = {"settings": {"num_jobs": 8}, "leaves": [2], "rounds": 0, "episodes": 1, "prune": {"tries": 0}}
    tree = pleach.distill(teacher, env_id, **config)
    # What it was taught on is in its file, key by key.
    needs = json.loads(tree.file)["needs"]
    found = {"preemption": needs["preemption"], "sharing": "beside" in needs["templates"]}
    found |= {key: needs.get(key, False) for key in ("sizes", "cores", "wait_for_type")}
    words = {"preemption": ("Preempt",), "sharing": ("Share",), "sizes": ("Elastic",), "cores": ("Synergy",)}
    words["wait_for_type"] = ("GavelMulti-v1", "GavelShare-v1", "GavelMultiRealistic", "GavelShareRealistic", "LlmSiteTypes")
    assert found == {key: "Mixed" in env_id or any(word in env_id for word in some) for key, some in words.items()}
    if "Share" in env_id:
        named = Watched()
        same = pleach.distill(pleach.Policy.of(named, "watched"), gymnasium.make(env_id), **config)
        assert tree.file == same.file and teacher.digests == named.digests


def test_an_environment_with_settings_of_its_own_is_played_as_it_is():
    settings = {"num_jobs": 30, "load": 2.0, "candidates": {"heads": 4, "fitting": 1, "reserve": False}}
    env = gymnasium.make("Pleach/PhillyShare-v1", **settings)
    compared = Watched()
    found = pleach.evaluate({"watched": compared, "sjf": "sjf"}, env, seeds=1)
    jobs = pleach.workload("Pleach/PhillyShare-v1", num_jobs=30, load=2.0, seed=found.runs["seed"][0])
    alone, avg_jct_s = stepped(env, options={"jobs": jobs})
    assert compared.digests == alone.digests and "is_reserve" not in compared.kinds
    assert found.runs["avg_jct_s"][0] == avg_jct_s
    # The options of a reset are settings too; the same list again and again is one run.
    again = pleach.evaluate({"watched": Watched(), "sjf": "sjf"}, env, seeds=3)
    assert again.runs["avg_jct_s"] == found.runs["avg_jct_s"]
    envs = gymnasium.make_vec("Pleach/PhillyShare-v1", num_envs=2, vectorization_mode="vector_entry_point", **settings)
    assert pleach.evaluate({"watched": Watched(), "sjf": "sjf"}, envs, seeds=1).runs == found.runs


def test_an_environment_by_its_id_and_by_itself_are_the_same():
    for env_id in ("Pleach/GavelShare-v1", "Pleach/MixedRealistic-v3"):
        policies = {"drawn": drawn, "sjf": "sjf"}
        by_id = pleach.evaluate(policies, env_id, num_jobs=20, seeds=3)
        by_itself = pleach.evaluate(policies, gymnasium.make(env_id, num_jobs=20), seeds=3)
        assert by_id.runs == by_itself.runs and by_id.table == by_itself.table


@pytest.mark.parametrize("own", [{"num_jobs": 3}, {"load": 1.0}, {"preemption": True}, {"sharing": "mps"}])
def test_conditions_beside_an_environment_are_refused(own):
    with pytest.raises(ValueError, match=f"{next(iter(own))} beside an environment, which has its own"):
        pleach.evaluate([drawn], gymnasium.make("Pleach/Philly-v0"), **own)


def test_candidates_that_a_function_was_given_stay_its_own():
    given = Watched()
    policy = pleach.Policy.of(given, "given", candidates={"reserve": False, "preempt": False, "heads": 1, "fitting": 1, "templates": False})
    pleach.evaluate([policy], "Pleach/MixedIdeal-v0", num_jobs=20, seeds=1)
    assert given.kinds == {"is_hold", "is_start"} and max(given.counts) < 20


def test_on_lists_a_function_shares_gpus_where_the_cluster_can():
    jobs = pleach.workload("philly-like", num_jobs=30, load=3.0)
    kinds = []
    for sharing in ("off", "mps"):
        for call in (lambda one: pleach.simulate(jobs, one, sharing=sharing), lambda one: pleach.evaluate([one], jobs, sharing=sharing)):
            kinds.append(Watched())
            call(kinds[-1])
    assert [("is_beside" in one.kinds) for one in kinds] == [False, False, True, True]
    assert kinds[0].digests == kinds[1].digests and kinds[2].digests == kinds[3].digests


def test_a_function_that_is_asked_in_an_environment_sees_what_the_environment_shows():
    env = pleach.PleachEnv("Pleach/GavelMulti-v1", num_jobs=20)
    observation, _ = env.reset(seed=1)
    seen = []
    env.expert_action(lambda one: seen.append(one) or 1)
    pleach.Policy.of(lambda one: seen.append(one) or 1).score(env)
    for one in seen:
        for name in OBSERVATION:
            np.testing.assert_array_equal(one[name], observation[name])
