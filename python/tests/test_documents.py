"""What documents show in Python runs as it stands, and their functions are no traps: on lists with a queue, close to shortest job
first."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import pleach

ROOT = Path(__file__).parents[2]


def blocks(name):
    """The blocks of Python of a document."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)


def cells(name):
    """The cells of a notebook that plot nothing, as one block."""
    found = json.loads((ROOT / name).read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
    whole = [re.sub(r"import matplotlib.*\n", "", source) for source in sources]
    return "\n".join(source for source in whole if "plt." not in source)


BLOCKS = {f"{name} {place}": block for name in ("docs/python.md", "python/README.md") for place, block in enumerate(blocks(name))}
#: Trainings of minutes, in seconds.
SHORT = {"num_updates=240": 'num_updates=1, num_validation=2, settings={"num_jobs": 20}'}
BLOCKS["the notebook"] = cells("python/examples/trace_to_policy.ipynb")


def need_torch():
    if importlib.util.find_spec("torch") is None:
        if os.environ.get("PLEACH_CHECK_PYTHON_LIBS") == "1":
            pytest.fail("torch is not installed")
        pytest.skip("torch is not installed")


@pytest.mark.parametrize("place", BLOCKS)
def test_a_block_runs_and_its_functions_are_within_5_percent_of_shortest_job_first(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = []
    names = {"print": shown.append}
    block = BLOCKS[place]
    if "import torch" in block:
        need_torch()
    for words, others in SHORT.items():
        block = block.replace(words, others)
    exec(compile(block, place, "exec"), names)
    functions = {name for name, value in names.items() if isinstance(value, FunctionType)}
    comparisons = [one for one in [*shown, *names.values()] if isinstance(one, pleach.Comparison)]
    assert not functions or comparisons
    held = set()
    for comparison in comparisons:
        jct_s = dict(zip(comparison.table["policy"], comparison.table["avg_jct_s"]))
        assert jct_s["fifo"] > (1.2 if functions else 1.0) * jct_s["sjf"], f"no queue: {jct_s}"
        for name in functions & set(jct_s):
            assert jct_s[name] <= 1.05 * jct_s["sjf"], jct_s
            held.add(name)
    assert held == functions


def test_the_documents_show_what_they_are_meant_to():
    assert len(blocks("docs/python.md")) == 5 and len(blocks("python/README.md")) == 1
    assert any("def shortest(seen)" in block for block in blocks("docs/python.md")) and "def least_first(observation)" in BLOCKS["the notebook"]


def test_what_the_documents_tell_to_install_brings_what_their_blocks_need():
    required = importlib.metadata.requires("pleach")
    extras = {re.split("[<>=; ]", line)[0]: line.split("extra == ")[1].strip("\"' ") for line in required if "extra ==" in line}
    assert extras == {"torch": "torch", "onnx": "torch", "pandas": "pandas", "pyarrow": "pandas", "matplotlib": "plot", "pygame": "plot"}
    for name in (HOUR, "docs/python.md"):
        assert '"./python[torch' in (ROOT / name).read_text(), name


@pytest.mark.parametrize(
    "missing, call",
    {
        "torch": lambda: pleach.export_onnx(None, "net.onnx"),
        "onnx": lambda: pleach.export_onnx(None, "net.onnx"),
        "pandas": lambda: pleach.workload("philly-like", num_jobs=2).to_pandas(),
        "pyarrow": lambda: pleach.workload("philly-like", num_jobs=2).to_arrow(),
        "matplotlib": lambda: pleach.simulate(pleach.workload("philly-like", num_jobs=2), "sjf").gantt(),
    }.items(),
)
def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(missing, call, monkeypatch):
    if missing == "onnx":
        monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"needs {missing}: pip install {missing}, or .* pip install './python\[\w+\]'"):
        call()


HOUR = "docs/tutorials/researcher-python.md"
#: The same in seconds: fewer lists and decisions.
IN_SHORT = {"seeds=20": "seeds=3", "range(400)": "range(60)", "rounds=3, episodes=24": "rounds=0, episodes=2"}


def in_short(block):
    for words, others in IN_SHORT.items():
        block = block.replace(words, others)
    return block


def test_a_researchers_first_hour_runs_from_a_network_to_a_deployed_tree(tmp_path, monkeypatch):
    need_torch()
    monkeypatch.chdir(tmp_path)
    source = blocks(HOUR)
    assert all(words in "".join(source) for words in IN_SHORT)
    shown = []
    names = {"print": shown.append}
    for place, block in enumerate(source):
        exec(compile(in_short(block), f"{HOUR} {place}", "exec"), names)
    found = [one for one in shown if isinstance(one, pleach.Comparison)]
    assert [one.table["policy"][0] for one in found] == ["sjf-best-type", "best-type-delay", "mine"]
    assert pleach.load("tree.json").kind == "tree" and pleach.load("net.onnx").kind == "network"
    lines = re.findall(r"^```bash\n(.*?)^```", (ROOT / HOUR).read_text(), re.MULTILINE | re.DOTALL)
    commands = [line.split() for block in lines for line in block.splitlines()]
    assert [words[0] for words in commands] == ["pip", "pleach", "pleach-scheduler"]
    done = subprocess.run([sys.executable, "-m", *commands[1], "--seeds", "2"], capture_output=True, text=True)
    assert done.returncode == 0 and "net" in done.stdout, done.stderr
    decide_on_a_pretended_slurm(commands[2])


def decide_on_a_pretended_slurm(words):
    """A round of the daemon beside programs that answer as a Slurm of two nodes would."""
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / words[0]
    if not program.exists():
        pytest.skip(f"{program} is not built: the tree was not tried on it")
    shutil.copytree(ROOT / "deploy/daemon/tests/fake", "slurm/bin")
    Path("slurm/jobs").mkdir()
    for job in (1, 2, 3):
        Path(f"slurm/jobs/{job}").write_text(f"id='{job}' gpus='{job}' user='u{job}'\n")
    environment = {**os.environ, "PATH": f"{Path('slurm/bin').resolve()}:{os.environ['PATH']}"}
    for policy in ("tree.json", "net.onnx"):
        asked = [policy if word == "tree.json" else word for word in words[1:]]
        state = ["--state-dir", f"state-{policy}"]
        done = subprocess.run([program, *state, *asked, "--rounds", "1"], capture_output=True, text=True, env=environment, timeout=60)
        name = policy.removesuffix(".json")
        assert done.returncode == 0 and f"{name} decides and touches nothing on partition main" in done.stderr, done.stderr
