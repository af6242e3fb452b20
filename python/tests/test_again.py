"""Commands below tables are found and run again (lab/again.py)."""

import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "lab/again.py"
PAGE = """
| a table |
|---|
*20 lists: `pleach evaluate --seeds 20 [--load 2]`, then `pleach evaluate
--policy sjf`*

Plain text with `pleach suite`.

*too long to say: `pleach train --out DIR`*

*it fails: `pleach refuse`*
"""


def again(tmp_path, *words):
    page, fake = tmp_path / "page.md", tmp_path / "pleach"
    page.write_text(PAGE)
    fake.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\nsys.exit(sys.argv[1] == 'refuse')\n")
    fake.chmod(0o755)
    command = [sys.executable, str(PROGRAM), str(page), "--pleach", str(fake), "--out", str(tmp_path / "out"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_commands_below_tables_are_run_and_what_is_open_or_fails_is_named(tmp_path):
    done = again(tmp_path)
    assert done.returncode == 1, done.stderr
    assert "page: left open: pleach train --out DIR" in done.stdout and "suite" not in done.stdout
    outputs = [path.read_text().splitlines() for path in sorted((tmp_path / "out").iterdir())]
    assert [lines[2] for lines in outputs] == [
        "['evaluate', '--seeds', '20']",
        "['evaluate', '--seeds', '20', '--load', '2']",
        "['evaluate', '--policy', 'sjf']",
        "['refuse']",
    ]
    assert done.stdout.count("failed:") == 1


def test_a_list_runs_nothing(tmp_path):
    done = again(tmp_path, "--list")
    assert done.returncode == 0 and done.stdout.count("page: ") == 5
    assert not (tmp_path / "out").exists()
