#!/usr/bin/env python3
"""Checks what policy files claim of their trees and formulas, without any code of Pleach.

    python3 docs/check_certificates tree.json formula.json

A tree is cut into boxes, an interval of each column for each leaf. A claim that is *proved* has to be proved here too, one that is
*refuted* has to show two rows that may be and break it. Each property has to be claimed once, each leaf that nothing reaches by
the ranges of its columns has to be named, and no leaf may have been visited more often than is possible. Of a formula intervals bound the scores and their direction.

Which columns vary in which rows, how they move, and the laws between them are stated here anew, by what features.md says of each. Where
ranges of a formula touch in one number alone, rounding decides: a claim that rests on it is called wrong. Not
checked: hashes and golden rows, which every reader of a policy file checks, and what is said to be open. Prints a line for each claim
and exits with 1 if one does not hold.

Source: R. E. Moore, Interval Analysis (1966).
"""

import json
import sys

from columns import Refused
from formulas import Formula
from trees import Tree


def check(path):
    """Lines of what holds, what is open and what is wrong."""
    with open(path, encoding="utf-8") as file:
        file = json.load(file)
    forms = {"pleach-tree": (Tree, "certificates", "list"), "pleach-formula": (Formula, "seal", "certificates")}
    form, seal, list_of = forms.get(file.get("format"), (None, None, None))
    if form is None or file.get("rows", "decision") != "decision":
        raise Refused("this is no policy file of a tree or a formula over the decisions of a pass")
    if seal not in file:
        raise Refused("it claims nothing: pleach distill seal FILE writes what is proved into it")
    policy = form(file)
    claims = []
    for claim in file[seal][list_of]:
        words = claim["property"]
        name, bounds = next(iter(words.items())) if isinstance(words, dict) else (words, None)
        claims.append((name, bounds, claim["verdict"]))
    lines = []
    for name, bounds, verdict in claims:
        said = f"{name} {json.dumps(bounds)}" if bounds else name
        try:
            if isinstance(verdict, dict) and "open" in verdict:
                lines.append(f"open: {said}")
                continue
            policy.check(name, bounds, verdict)
            lines.append(f"confirmed: {verdict if verdict == 'proved' else 'refuted'}: {said}")
        except Refused as reason:
            lines.append(f"wrong: {said}: {reason}")
    return lines + [f"wrong: {fault}" for fault in policy.dropped(claims)]


def main(paths):
    is_wrong = False
    for path in paths:
        try:
            lines = check(path)
        except (Refused, KeyError, TypeError, ValueError, IndexError, RecursionError, OSError) as error:
            lines = [f"wrong: {type(error).__name__}: {error}"]
        is_wrong |= any(line.startswith("wrong") for line in lines)
        print("\n".join(f"{path}: {line}" for line in lines))
    return int(is_wrong)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
