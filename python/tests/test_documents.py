"""What documents show in Python runs as it stands, and their functions are no traps: on lists with a queue, close to shortest job
first."""

import json
import re
from pathlib import Path
from types import FunctionType

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


@pytest.mark.parametrize("place", BLOCKS)
def test_a_block_runs_and_its_functions_are_within_5_percent_of_shortest_job_first(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = []
    names = {"print": shown.append}
    block = BLOCKS[place]
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
    assert len(blocks("docs/python.md")) == 3 and len(blocks("python/README.md")) == 1
    assert "def shortest(seen)" in blocks("docs/python.md")[1] and "def least_first(observation)" in BLOCKS["the notebook"]
