"""The scripts of `lab/bench/lists`: windows of published lists, and policies in columns."""

import pathlib
import re
import subprocess
import sys

LISTS = pathlib.Path(__file__).parents[2] / "lab" / "bench" / "lists"


def run(*words):
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def program(folder):
    path = folder / "pleach"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pleach "$@"\n')
    path.chmod(0o755)
    return path


def test_windows_are_busy_and_the_program_reads_them(tmp_path):
    day_s = 86_400
    # One node of eight GPUs; 120 jobs of four hours on one GPU in each of three days: 2.5 times what it can do. A second
    # cluster idles.
    lines = ["vc,user,submit_time,gpu_num,duration"]
    lines += [f"busy,u{number % 7},{day * day_s + number * 600},1,14400" for day in range(3) for number in range(120)]
    lines += [f"idle,u,{number * 600},1,60" for number in range(150)]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "nodes.csv").write_text("vc,nodes\nbusy,1\nidle,1\n")
    out = tmp_path / "windows"
    run(LISTS / "real_windows.py", tmp_path / "jobs.csv", tmp_path / "nodes.csv", out, "--days", "1")
    found = sorted(path.name for path in out.glob("*.csv"))
    assert len(found) == 2, found
    words = ["evaluate", "--workload", str(out / found[0]), "--policy", "fifo"]
    assert "fifo" in run("-m", "pleach", *words)


def test_columns_are_tables_of_ratios_in_both_conditions(tmp_path):
    words = ["--pleach", program(tmp_path), "--policies", "las-deal,index", "--lists", "2", "--columns", "Philly", "--load", "1"]
    out = run(LISTS / "columns.py", *words)
    for condition in ("realistic", "ideal"):
        assert f"| {condition} | all | Philly |" in out
    ratios = re.findall(r"\| `index` \| (\d\.\d{3}) \| (\d\.\d{3}) \[", out)
    assert len(ratios) == 2 and all(whole == own and 0.5 < float(own) < 1.5 for whole, own in ratios), out
