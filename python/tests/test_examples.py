"""Every example runs on a tiny task. Those that need PyTorch and more are a stage of their own: PLEACH_CHECK_PYTHON_LIBS=1."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
TINY = {
    "distil.py": ("numpy", ["--seeds", "4"]),
    "imitate.py": ("sklearn", ["--steps", "200", "--num-jobs", "200", "--seeds", "2"]),
    "maskable_ppo.py": ("sb3_contrib", ["--steps", "4096", "--num-jobs", "10", "--seeds", "2"]),
    "clean_ppo.py": ("torch", ["--steps", "4096", "--num-jobs", "10", "--seeds", "2"]),
    "evolution.py": ("torch", ["--generations", "2", "--pairs", "4", "--num-jobs", "10", "--seeds", "2"]),
    "tree_search.py": ("numpy", ["--num-jobs", "70", "--searches", "4"]),
    "rllib_ppo.py": ("ray", ["--updates", "1", "--num-jobs", "10"]),
}


#: Functions that need no long training, and are held to shortest job first.
HELD = {"distil.py": ["linear", "tree"], "imitate.py": ["forest"], "tree_search.py": ["tree-search"]}


def is_there(module):
    return importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("name", TINY)
def test_an_example_runs(name, tmp_path):
    module, words = TINY[name]
    if not is_there(module):
        if os.environ.get("PLEACH_CHECK_PYTHON_LIBS") == "1":
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"{module} is not installed")
    done = subprocess.run([sys.executable, str(FOLDER / name), *words], cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    jct_s = dict(re.findall(r"^(\S+) +average JCT +([0-9.]+) s", done.stdout, re.MULTILINE))
    jct_s = {policy: float(seconds) for policy, seconds in jct_s.items()}
    for policy in HELD.get(name, []):
        assert jct_s[policy] <= 1.05 * jct_s["sjf"], done.stdout
    if name == "tree_search.py":
        assert jct_s["tree-search"] < jct_s["sjf-best-type"], done.stdout
    if name == "distil.py":
        assert jct_s["tree"] < jct_s["linear"], done.stdout


SHORTEST_FIRST = "def score(jobs, cluster):\n    return -jobs['remaining_s']\n"


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (SHORTEST_FIRST, None),
        ("def score(jobs, cluster):\n    return jobs['duration']\n", "column duration: allowed are"),
        ("def score(jobs, cluster):\n    return jobs['remaining_s'] * float('nan')\n", "NaN"),
        ("def score(jobs, cluster):\n    while True:\n        pass\n", "more than 4 s of processor time"),
        ("def other(jobs):\n    return 1\n", "score"),
    ],
)
def test_a_program_is_judged_under_a_budget(program, error, tmp_path):
    (tmp_path / "mine.py").write_text(program)
    words = [sys.executable, str(FOLDER / "evolve_program.py"), "mine.py", "--lists", "2", "--budget", "30" if error is None else "4"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    if error is None:
        # Shortest first ignores types of GPUs, which the rival does not.
        assert 0.2 < found["combined_score"] < 1.0 and len(found["tasks"]) == 2, found
    else:
        assert found["combined_score"] == 0.0 and error in found["error"], found


def test_examples_are_short():
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 80, path.name


def test_the_notebook_runs():
    if not (is_there("nbclient") and is_there("matplotlib")):
        pytest.skip("nbclient or matplotlib is not installed")
    import nbclient
    import nbformat

    notebook = nbformat.read(FOLDER / "trace_to_policy.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.skipif(not is_there("stable_baselines3"), reason="stable_baselines3 is not installed")
def test_stable_baselines3_accepts_every_id():
    from stable_baselines3.common.env_checker import check_env

    import pleach

    for env_id in pleach.env_ids():
        check_env(pleach.PleachEnv(env_id, num_jobs=10, inadmissible="first"))
