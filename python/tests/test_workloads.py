"""Whole workloads as tables, there and back."""

import pickle

import numpy as np
import pandas
import pytest

import pleach


@pytest.fixture(scope="module")
def jobs():
    """A small workload."""
    return pleach.workload("philly-like", num_jobs=40, seed=3)


def test_a_workload_goes_to_a_table_and_back(jobs):
    assert len(jobs) == 40 and jobs == pleach.workload("philly-like", num_jobs=40, seed=3)
    assert jobs != pleach.workload("philly-like", num_jobs=40, seed=4)
    frame = pandas.DataFrame(jobs.columns)
    assert list(frame.columns[:4]) == ["job_id", "submit_s", "num_gpus", "run_time_s"]
    for table in (frame, jobs.columns, frame.to_dict("list")):
        again = pleach.Workload.from_table(table, jobs)
        for name, column in jobs.columns.items():
            if name not in ("user",):
                np.testing.assert_array_equal(np.asarray(again.columns[name]), np.asarray(column), err_msg=name)
    assert pickle.loads(pickle.dumps(jobs)) == jobs


@pytest.mark.parametrize("name", ["gavel-multi", "synergy-multi", "pollux", "sia-philly"])
def test_a_table_beside_its_workload_keeps_the_classes_of_models(name):
    jobs = pleach.workload(name, num_jobs=30, seed=3)
    again = pleach.Workload.from_table(jobs.to_pandas(), jobs)
    assert len(set(jobs.columns["class"])) > 1 and again.columns["class"] == jobs.columns["class"]
    runs = [pleach.simulate(one, "sjf-best-type").jobs["finish_s"] for one in (jobs, again)]
    np.testing.assert_array_equal(*runs)
    few = pleach.Workload.from_table(jobs.to_pandas().head(7), jobs)
    assert len(few) == 7 and few.cluster == jobs.cluster


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz", "jobs.parquet"])
def test_files_hold_all_of_it(jobs, tmp_path, name):
    jobs.write(tmp_path / name)
    assert pleach.read(tmp_path / name) == jobs
    with pytest.raises(FileNotFoundError):
        pleach.read(tmp_path / "none.csv")


def test_a_path_beside_a_cluster_is_a_path(jobs, tmp_path):
    jobs.write(tmp_path / "jobs.csv")
    (alone,) = tmp_path.glob("*.csv")
    expected = pleach.evaluate(["sjf", "fifo"], jobs.columns, cluster=jobs.cluster)
    for path in (alone, str(alone)):
        found = pleach.evaluate(["sjf", "fifo"], path, cluster=jobs.cluster)
        assert found.runs["avg_jct_s"] == expected.runs["avg_jct_s"]
    with pytest.raises(ValueError, match="a workload by name has its own"):
        pleach.evaluate(["sjf"], "philly-like", cluster=jobs.cluster)
    with pytest.raises(FileNotFoundError):
        pleach.evaluate(["sjf"], str(tmp_path / "none.csv"), cluster=jobs.cluster)


def test_tables_that_cannot_be_used_are_refused_with_column_and_row(jobs):
    good = {"submit_s": [0.0, 1.0], "num_gpus": [1, 2], "run_time_s": [60.0, 60.0]}
    alone = {**jobs.cluster, "tenants": jobs.cluster["tenants"][:1]}
    alone["tenants"][0]["quota_gpus"] = jobs.num_gpus
    assert len(pleach.Workload.from_table(good, alone)) == 2
    for change, words in (
        ({"run_time_s": [60.0, float("nan")]}, "column run_time_s, row 1 is nan"),
        ({"num_gpus": [1.5, 2.0]}, "column num_gpus, row 0"),
        ({"num_gpus": [1]}, "different lengths"),
        ({"gpus": [1, 1]}, "columns gpus: allowed are submit_s"),
        ({"run_time_s": [60.0, -1.0]}, "run_time_s"),
    ):
        with pytest.raises(ValueError, match=words):
            pleach.Workload.from_table({**good, **change}, alone)
    days = pandas.to_datetime(["2017-10-03 00:00", "2017-10-03 00:01"])
    for change, words in (
        ({"submit_s": days}, r"column submit_s holds points in time.*\(frame.submit_s - frame.submit_s.min\(\)\).dt.total_seconds\(\)"),
        ({"submit_s": days.tz_localize("UTC")}, "points in time"),
        ({"submit_s": list(days.to_pydatetime())}, "points in time"),
        ({"submit_s": [days[0].date(), days[1].date()]}, "points in time"),
        ({"run_time_s": days - days[0]}, "column run_time_s holds durations.*frame.run_time_s.dt.total_seconds"),
        ({"run_time_s": np.array([5, 6], "m8[s]")}, "durations"),
    ):
        for table in ({**good, **change}, pandas.DataFrame({**good, **change})):
            with pytest.raises(ValueError, match=words):
                pleach.Workload.from_table(table, alone)
    mended = pandas.DataFrame({**good, "submit_s": days})
    mended.submit_s = (mended.submit_s - mended.submit_s.min()).dt.total_seconds()
    assert pleach.Workload.from_table(mended, alone).columns["submit_s"].tolist() == [0.0, 60.0]
    with pytest.raises(ValueError, match="needs a cluster"):
        pleach.Workload.from_table(good, None)
    with pytest.raises(ValueError, match="philly-like"):
        pleach.workload("phily")
    with pytest.raises(ValueError, match="unknown format `slurm`, expected one of canonical"):
        pleach.read("jobs.csv", format="slurm")


def test_a_simulation_gives_every_job_and_the_curve(jobs):
    found = pleach.simulate(jobs, "sjf")
    frame = pandas.DataFrame(found.jobs)
    assert len(frame) == 40 and list(frame["job_id"]) == jobs.columns["job_id"]
    assert frame["jct_s"].mean() == pytest.approx(found.metrics["avg_jct_s"])
    assert (frame["finish_s"] - frame["submit_s"]).equals(frame["jct_s"])
    nodes = [dict(tuple(map(int, slice.split(":"))) for slice in text.split()) for text in frame["nodes"]]
    assert [sum(one.values()) for one in nodes] == frame["num_gpus"].tolist()
    groups = jobs.cluster["node_groups"]
    assert max(max(one) for one in nodes) < sum(group["count"] for group in groups)
    # Nobody is stopped here, so a job is where it was put from its start to its end: no node has more than all of its GPUs.
    for at_s in frame["first_start_s"]:
        held_on = {}
        for one in [nodes[row] for row in np.flatnonzero((frame["first_start_s"] <= at_s) & (at_s < frame["finish_s"]))]:
            for node, num in one.items():
                held_on[node] = held_on.get(node, 0) + num
        assert max(held_on.values()) <= groups[0]["gpus_per_node"]
    # Segments are the same schedule: the GPU time of all jobs, and the last segment of each ends where the job does.
    segments = pandas.DataFrame(found.segments)
    gpu_s = (segments["num_gpus"] * (segments["to_s"] - segments["from_s"])).sum()
    assert gpu_s == pytest.approx(frame["attained_gpu_s"].sum())
    last = segments.groupby("job_id", sort=False).last()
    finish_s = frame.set_index("job_id")["finish_s"][last.index]
    assert last["to_s"].tolist() == pytest.approx(finish_s.tolist(), abs=1e-6) and set(last["ended"]) == {"completed"}
    assert set(segments["ended"]) <= {"continued", "completed"} and (segments["from_s"] < segments["to_s"]).all()
    held = found.utilisation["held_gpus"]
    assert held.max() <= jobs.num_gpus and (np.diff(found.utilisation["time_s"]) >= 0).all()
    mean = pleach.evaluate(["sjf"], jobs).table["avg_jct_s"][0]
    assert mean == pytest.approx(found.metrics["avg_jct_s"])
    with pytest.raises(ValueError, match="It needs"):
        pleach.simulate(jobs, "tiresias", preemption=False)


def test_an_environment_plays_jobs_that_are_given(jobs):
    env = pleach.PleachEnv("Pleach/Philly-v0", jobs=jobs)
    env.reset(seed=1)
    ended = False
    while not ended:
        _, _, terminated, truncated, info = env.step(env.expert_action("sjf"))
        ended = terminated or truncated
    assert info["metrics"]["num_jobs"] == 40
    assert info["metrics"]["avg_jct_s"] == pytest.approx(pleach.simulate(jobs, "sjf").metrics["avg_jct_s"])
