"""Runs the commands that stand below the tables of the documents, so that every table is made again.

    python3 lab/again.py [PAGE ...] [--pleach target/release/pleach] [--out again] [--list] [--minutes 10]

Without pages: README.md, docs and lab/notes. A command is text in backticks in the paragraph in italics below a table; a part in
brackets may be there or not, so both are run. Each output goes to a file of its own, OUT/PAGE-NUMBER.txt, below the command and its
seconds. Commands that leave something open (`...`, a placeholder in capitals, a list that is not here) are named and not run.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGINNINGS = ("pleach ", "cargo run ", "python3 lab/")
OPEN = re.compile(r"\.\.\.|(?<![\w/.-])(LIST|TASK|DIR|FOLDER|COLUMN|FILE|NAME|ID|N)(?![\w-])")


def commands(page):
    """Commands below the tables of a page, in order, as they stand there."""
    for paragraph in re.split(r"\n\s*\n", page.read_text()):
        mark = re.search(r"^\*(?!\*)(.+)\*$", paragraph, re.M | re.S)
        if mark:
            for text in re.findall(r"`([^`]+)`", mark[1]):
                text = " ".join(text.split())
                if text.startswith(BEGINNINGS):
                    yield text


def variants(text):
    """The command without what stands in brackets, and with it."""
    found = re.search(r" \[([^\]]+)\]", text)
    if not found:
        return [text]
    parts = (text.replace(found[0], ""), text.replace(found[0], " " + found[1]))
    return [other for part in parts for other in variants(part)]


def pages(named):
    if named:
        return [pathlib.Path(name).resolve() for name in named]
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "lab/notes").rglob("*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--pleach", default=str(ROOT / "target/release/pleach"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("again"))
    parser.add_argument("--list", action="store_true", help="name the commands, and run none")
    parser.add_argument("--minutes", type=float, default=10.0, help="a command that takes longer is stopped, and named")
    args = parser.parse_args()
    seen, failed = set(), 0
    for page in pages(args.pages):
        whole = [text for found in commands(page) for text in variants(found)]
        for number, text in enumerate(dict.fromkeys(whole)):
            if text in seen:
                continue
            seen.add(text)
            short = page.relative_to(ROOT) if page.is_relative_to(ROOT) else pathlib.Path(page.name)
            name = "-".join(short.with_suffix("").parts)
            if OPEN.search(text):
                print(f"{name}: left open: {text}")
                continue
            print(f"{name}: {text}", flush=True)
            if args.list:
                continue
            words = shlex.split(re.sub(r"^(pleach|cargo run --release --) ", f"{shlex.quote(args.pleach)} ", text))
            start_s = time.monotonic()
            try:
                ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60 * args.minutes)
                output, is_bad = ended.stdout + ended.stderr, ended.returncode != 0
            except subprocess.TimeoutExpired:
                output, is_bad = f"stopped after {args.minutes:g} minutes\n", True
            failed += is_bad
            args.out.mkdir(parents=True, exist_ok=True)
            seconds = time.monotonic() - start_s
            (args.out / f"{name}-{number:02}.txt").write_text(f"{text}\n{seconds:.0f} s\n{output}")
            if is_bad:
                print(f"  failed: {output.strip().splitlines()[-1:]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
