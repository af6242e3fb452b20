"""Jobs in tables of Arrow and pandas go in wherever jobs do, and come out where they are asked for."""

import numpy as np
import pandas
import pytest

import pleach

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ID = "Pleach/Philly-v0"


@pytest.fixture(scope="module")
def jobs():
    """A small workload."""
    return pleach.workload("philly-like", num_jobs=30, seed=3)


def figures(env):
    """Average JCT of shortest job first in the episode that has begun, s."""
    while True:
        _, _, terminated, truncated, info = env.step(env.expert_action("sjf"))
        if terminated or truncated:
            return info["metrics"]["num_jobs"], info["metrics"]["avg_jct_s"]


class Exported:
    """What another library shows of its table: Arrow's C interface and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def kinds(jobs):
    """The same jobs in every kind of table."""
    arrow = jobs.to_arrow()
    encoded = arrow.set_column(arrow.column_names.index("tenant"), "tenant", arrow["tenant"].dictionary_encode())
    chunked = pyarrow.concat_tables([arrow.slice(0, 7), arrow.slice(7)])
    frame = jobs.to_pandas()
    return {
        "arrow": arrow,
        "dictionary": encoded,
        "chunked": chunked,
        "batch": arrow.combine_chunks().to_batches()[0],
        "exported": Exported(arrow),
        "pandas": frame,
        "pandas on arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas with NA": frame.convert_dtypes(),
    }


def test_every_kind_of_table_holds_the_same_jobs(jobs):
    for name, table in kinds(jobs).items():
        again = pleach.Workload.from_table(table, jobs)
        for key, column in jobs.columns.items():
            np.testing.assert_array_equal(np.asarray(again.columns[key]), np.asarray(column), err_msg=f"{name}: {key}")


def test_options_take_tables_and_hear_what_has_changed(jobs):
    env = pleach.PleachEnv(ID, num_jobs=5)
    env.reset(seed=1)
    assert figures(env)[0] == 5
    expected = 30, pytest.approx(pleach.simulate(jobs, "sjf").metrics["avg_jct_s"])
    for name, table in kinds(jobs).items():
        env.reset(seed=1, options={"jobs": table, "cluster": jobs.cluster})
        assert figures(env) == expected, name
    frame = jobs.to_pandas()
    options = {"jobs": frame, "cluster": jobs.cluster}
    env.reset(seed=1, options=options)
    frame["run_time_s"] *= 2.0
    frame["estimate_s"] *= 2.0
    env.reset(seed=1, options=options)
    assert figures(env)[1] > 1.5 * expected[1].expected
    env.reset(seed=1)
    assert figures(env)[0] == 30, "options hold until others are given"
    env.reset(seed=1, options={})
    assert figures(env)[0] == 5


def test_simulate_evaluate_and_distil_take_tables(jobs):
    table, cluster = jobs.to_arrow(), jobs.cluster
    found = pleach.simulate(table, "sjf", cluster=cluster)
    assert found.metrics == pleach.simulate(jobs, "sjf").metrics
    both = pleach.evaluate(["sjf"], [table, jobs.to_pandas()], cluster=cluster)
    assert both.runs["avg_jct_s"] == [found.metrics["avg_jct_s"]] * 2 and both.runs["seed"] == [0, 1]
    settings = {"jobs": table, "cluster": cluster}
    tree = pleach.distill("sjf", ID, settings=settings, leaves=[2], rounds=0, episodes=1)
    assert "score" in tree.text or tree.file
    for call in (lambda: pleach.simulate(table, "sjf"), lambda: pleach.evaluate(["sjf"], [table])):
        with pytest.raises(ValueError, match="needs a cluster: give cluster="):
            call()
    with pytest.raises(ValueError, match="cluster beside a workload"):
        pleach.simulate(jobs, "sjf", cluster=cluster)
    with pytest.raises(ValueError, match="a workload by name has its own"):
        pleach.evaluate(["sjf"], "philly-like", cluster=cluster)


def test_results_come_as_tables_of_arrow_and_pandas(jobs, tmp_path):
    found = pleach.simulate(jobs, "sjf")
    table, frame = found.to_arrow(), found.to_pandas()
    assert table.num_rows == 30 and table.column_names == list(found.jobs) == list(frame.columns)
    assert table.schema.field("jct_s").type == pyarrow.float64() and table.schema.field("num_gpus").type == pyarrow.uint32()
    pandas.testing.assert_frame_equal(table.to_pandas(), frame, check_dtype=False)
    comparison = pleach.evaluate(["sjf", "fifo"], jobs)
    assert comparison.to_arrow()["policy"].to_pylist() == ["sjf", "fifo"]
    parquet.write_table(jobs.to_arrow(), tmp_path / "jobs.parquet")
    again = pleach.read(tmp_path / "jobs.parquet", cluster=jobs.cluster)
    np.testing.assert_array_equal(again.columns["run_time_s"], jobs.columns["run_time_s"])


@pytest.mark.parametrize(
    "column, values, words",
    [
        ("run_time_s", pyarrow.array([60.0, None]), "column run_time_s, row 1 is None"),
        ("num_gpus", pyarrow.array([1.5, 2.0]), "column num_gpus, row 0 is 1.5"),
        ("submit_s", pyarrow.array(["a", "b"]), "submit_s"),
        ("gpus", pyarrow.array([1, 2]), "columns gpus: allowed are submit_s"),
    ],
)
def test_columns_that_cannot_be_used_are_named(jobs, column, values, words):
    good = pyarrow.table({"submit_s": [0.0, 1.0], "num_gpus": [1, 2], "run_time_s": [60.0, 60.0]})
    place = good.column_names.index(column) if column in good.column_names else None
    bad = good.append_column(column, values) if place is None else good.set_column(place, column, values)
    with pytest.raises(ValueError, match=words):
        pleach.Workload.from_table(bad, jobs)
    with pytest.raises(ValueError, match=words):
        pleach.PleachEnv(ID).reset(options={"jobs": bad, "cluster": jobs.cluster})


def test_a_cluster_is_named_as_on_the_command_line_wherever_one_is_given(tmp_path):
    table = {"submit_s": [0.0, 1.0, 2.0], "num_gpus": [4, 8, 1], "run_time_s": [60.0, 60.0, 60.0]}
    whole = pleach.Workload.from_table(table, "2x4:V100,1x8:A100")
    assert whole.num_gpus == 16 and [group["count"] for group in whole.cluster["node_groups"]] == [2, 1]
    whole.write(tmp_path / "described.csv")
    described, path = tmp_path / "described.cluster.toml", tmp_path / "jobs.csv"
    pandas.DataFrame(table).to_csv(path, index=False)
    expected = pleach.simulate(table, "sjf", cluster=whole.cluster).metrics
    for cluster in ("2x4:V100,1x8:A100", described, str(described), whole):
        for jobs in (table, path):
            assert pleach.simulate(jobs, "sjf", cluster=cluster).metrics == expected, (cluster, jobs)
        found = pleach.evaluate(["sjf"], table, cluster=cluster)
        assert found.table["avg_jct_s"] == [expected["avg_jct_s"]]
        env = pleach.PleachEnv(ID, jobs=table, cluster=cluster, inadmissible="first")
        env.reset(seed=1)
        env.reset(seed=1, options={"jobs": table, "cluster": cluster})
    assert pleach.read(path, cluster="2x4:V100").num_gpus == 8
    # A type is not needed where there is one.
    assert pleach.Workload.from_table(table, "2x8").cluster["gpu_types"][0]["name"] == "GPU"
    for wrong in ("2x4:", "2x0:V100", "none.toml"):
        with pytest.raises(ValueError, match="cluster"):
            pleach.simulate(table, "sjf", cluster=wrong)
