"""Observations with names, with *hold* apart, of one environment and of N; policies made of them are no traps."""

import gymnasium
import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"


@pleach.by_name
def shortest(seen):
    return -seen.candidates["remaining_s"]


def vector(num_envs=3, **settings):
    return gymnasium.make_vec(ID, num_envs=num_envs, vectorization_mode="vector_entry_point", **settings)


def test_names_are_columns_and_hold_is_apart():
    env = pleach.PleachEnv(ID, num_jobs=30)
    observation, _ = env.reset(seed=1)
    seen = pleach.named(observation)
    rows = observation["candidates"]
    for place, (name, _) in enumerate(env.features["candidates"]):
        np.testing.assert_array_equal(seen.candidates[name], rows[1:, place])
        assert seen.hold[name] == rows[0, place]
    assert seen.hold["is_hold"] == 1 and not seen.candidates["is_hold"].any()
    assert [seen.cluster[name] for name, _ in env.features["global"]] == observation["global"].tolist()
    np.testing.assert_array_equal(seen.admissible, observation["mask"][1:] == 1)
    assert seen.may_hold == bool(observation["mask"][0]) and len(seen.candidates) == rows.shape[1]
    with pytest.raises(KeyError, match="remaining: allowed are is_hold, .*Did you mean remaining_s"):
        seen.candidates["remaining"]
    assert "num_pending" in seen.cluster and "num_pending" not in seen.candidates


def test_n_observations_are_scored_at_once_as_one_by_one():
    envs = vector(num_jobs=30)
    batch, _ = envs.reset(seed=1)
    num_held = 0
    for _ in range(60):
        singles = [{key: value[index] for key, value in batch.items()} for index in range(3)]
        scores = shortest(batch)
        np.testing.assert_array_equal(scores, [shortest(one) for one in singles])
        assert np.isneginf(scores[batch["mask"] == 0]).all() and np.isfinite(scores[batch["mask"] == 1]).all()
        seen = pleach.named(batch)
        actions = seen.choice(-seen.candidates["remaining_s"])
        assert actions.dtype == np.int64 and actions.tolist() == scores.argmax(1).tolist()
        assert actions.tolist() == [pleach.named(one).choice(-pleach.named(one).candidates["remaining_s"]) for one in singles]
        # Where some candidate is admissible, hold is not taken by itself.
        assert ((actions > 0) == seen.admissible.any(axis=1)).all()
        num_held += (actions == 0).sum()
        batch, *_ = envs.step(actions)
    assert num_held


def test_hold_is_taken_where_its_score_is_larger_and_where_nothing_else_may_be():
    env = pleach.PleachEnv(ID, num_jobs=60)
    seen, both = None, 0
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        seen = pleach.named(observation)
        assert seen.choice(0.0, 1.0) == (0 if seen.may_hold else np.flatnonzero(observation["mask"])[0])
        assert seen.choice(-np.inf) == np.flatnonzero(observation["mask"])[0]
        assert pleach.by_name(lambda one: (0.0 * one.candidates["remaining_s"], 1.0))(observation).argmax() == seen.choice(0.0, 1.0)
        both += seen.may_hold and seen.admissible.any()
        observation, *_ = env.step(env.random_action())
    assert both
    with pytest.raises(ValueError, match="a score is NaN"):
        seen.scores(np.nan)


def test_the_shortest_rest_alone_is_no_trap_and_with_starts_it_is_shortest_job_first():
    @pleach.by_name
    def starts(seen):
        return np.where(seen.candidates["is_start"] == 1, -seen.candidates["remaining_s"], -np.inf)

    for env_id, worst in (("Pleach/PhillyGang-v1", 1.25), (ID, 1.25)):
        found = pleach.evaluate({"sjf": "sjf", "starts": starts, "shortest": shortest, "fifo": "fifo"}, env_id, seeds=4)
        sjf, by_starts, alone, fifo = found.table["avg_jct_s"]
        assert by_starts <= 1.02 * sjf < fifo and alone < worst * sjf, found


def test_a_function_is_asked_on_the_thread_of_its_caller():
    import threading

    asked = set()

    @pleach.by_name
    def watched(seen):
        asked.add(threading.get_ident())
        return -seen.candidates["remaining_s"]

    pleach.evaluate([watched], ID, num_jobs=20, seeds=4, num_threads=2)
    pleach.simulate(pleach.workload("philly-like", num_jobs=20), watched)
    pleach.distill(watched, ID, settings={"num_jobs": 8}, leaves=[2], rounds=0, episodes=1, prune={"tries": 0})
    assert asked == {threading.get_ident()}
