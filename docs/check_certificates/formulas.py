"""Formulas: their text, intervals of their scores, and directions in which these move."""

import math
import re

from columns import ANY, EQUAL, HOLD, KINDS, MONOTONE, START, UP, WAITING, Column, Refused, kinds_of, missing, narrowed

LARGEST, LEAST_DIVISOR = 1e12, 1e-6


class Formula:
    """Trees of tuples: (operation, part, ...), columns as (None, name), numbers as themselves."""

    def __init__(self, file):
        self.columns = {column.name: column for column in map(Column, file["reads"])}
        self.words = re.findall(r"\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\.\d[\w.]*|\w+|[<>]=|\S", file["score"]) + [""]
        self.score = self.binding(0)
        self.kinds = [kind for kind in kinds_of(file["needs"]) if kind != HOLD]

    BINDS = {"or": 1, "and": 2, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6}

    def binding(self, least):
        left = self.operand()
        while self.BINDS.get(self.words[0], 0) > least:
            word = self.words.pop(0)
            left = (word, left, self.binding(self.BINDS[word]))
        return left

    def operand(self):
        word = self.words.pop(0)
        if word == "if":
            parts = [self.binding(0)]
            for wanted in ("then", "else"):
                self.need(wanted)
                parts.append(self.binding(0))
            return ("if", *parts)
        if word == "(":
            part = self.binding(0)
            self.need(")")
            return part
        if word in ("-", "not"):
            return ("negate" if word == "-" else word, self.binding(6 if word == "-" else 3))
        if word in ("log1p", "exp", "abs", "min", "max"):
            self.need("(")
            parts = [self.binding(0)]
            if word in ("min", "max"):
                self.need(",")
                parts.append(self.binding(0))
            self.need(")")
            return (word, *parts)
        if word in self.columns:
            return (None, word)
        try:
            return float(word)
        except ValueError:
            raise Refused(f"{word!r} is no part of a score over the columns of the file") from None

    def need(self, wanted):
        if self.words.pop(0) != wanted:
            raise Refused(f"{wanted} is missing in the score")

    def ranges(self, kind):
        raw = lambda column: (column.least, column.most) if column.varies(kind) else (max(0.0, column.least),) * 2
        flag = lambda column: (1.0, 1.0) if column.name == "is_" + KINDS[kind] else raw(column)
        return {name: flag(column) for name, column in self.columns.items()}

    def interval(self, part, ranges):
        if isinstance(part, float):
            return part, part
        operation, *parts = part
        if operation is None:
            return ranges[parts[0]]
        if operation == "if":
            sides = [(side, self.assumed(parts[0], holds, ranges)) for side, holds in [(parts[1], True), (parts[2], False)]]
            truth = self.truth(parts[0], ranges)
            may = [self.interval(side, own) for (side, own), holds in zip(sides, (1, 0)) if own and truth[0] <= holds <= truth[1]]
            may = may or [self.interval(side, ranges) for side in parts[1:]]
            return min(low for low, _ in may), max(high for _, high in may)
        values = [self.truth(own, ranges) if operation in ("and", "or", "not") else self.interval(own, ranges) for own in parts]
        a, b = values[0], values[-1]
        ends = [evaluated(operation, x, y) for x in a for y in (divisors(b) if operation == "/" else b)]
        if operation == "abs" and a[0] <= 0 <= a[1]:
            ends.append(0.0)
        return min(ends), max(ends)

    def truth(self, part, ranges):
        """The interval of a truth; a flag alone is true above a half."""
        if not isinstance(part, float) and part[0] is None:
            return self.interval((">", part, 0.5), ranges)
        return self.interval(part, ranges)

    def assumed(self, part, holds, ranges):
        """The ranges where a truth holds, or does not; none where it never does."""
        if isinstance(part, float):
            return ranges
        operation, *parts = part
        if operation is None:
            return self.assumed((">", part, 0.5), holds, ranges)
        if operation == "not":
            return self.assumed(parts[0], not holds, ranges)
        if (operation, holds) in [("and", True), ("or", False)]:
            own = self.assumed(parts[0], holds, ranges)
            return own and self.assumed(parts[1], holds, own)
        if operation not in ("<", "<=", ">", ">="):
            return ranges
        is_below = holds == operation.startswith("<")
        left, right = (self.interval(own, ranges) for own in parts)
        own = dict(ranges)
        for side, by, below in [(parts[0], right, is_below), (parts[1], left, not is_below)]:
            name = side[1] if not isinstance(side, float) and side[0] is None else None
            if not isinstance(side, float) and side[0] == "log1p" and not isinstance(side[1], float) and side[1][0] is None:
                name = side[1][1]
                by = tuple(math.exp(min(end, 300)) * (1 + wide) - 1 for end, wide in zip(by, (-1e-9, 1e-9)))
            if name:
                own[name] = narrowed(own[name], (-math.inf, by[1]) if below else (by[0], math.inf))
        return own if all(low <= high for low, high in own.values()) else None

    def direction(self, part, stimulus, ranges):
        """The directions in which it may move: none where it stays."""
        if isinstance(part, float):
            return EQUAL
        operation, *parts = part
        if operation is None:
            return self.columns[parts[0]].moves(stimulus)
        moves = [self.direction(own, stimulus, ranges) for own in parts]
        within = [self.interval(own, ranges) for own in parts] if operation in ("*", "/", "abs") else []
        if operation in ("negate", "not"):
            return turned(moves[0])
        if operation == "abs":
            return under(moves[0], within[0])
        if operation in ("-", ">", ">="):
            return moves[0] | turned(moves[1])
        if operation in ("<", "<="):
            return turned(moves[0]) | moves[1]
        if operation in ("*", "/"):
            if operation == "/" and within[1][0] < 0 <= within[1][1]:
                return ANY if moves[0] | moves[1] else EQUAL
            second = under(moves[1], within[0])
            return under(moves[0], within[1]) | (turned(second) if operation == "/" else second)
        if operation != "if":
            return set().union(*moves)
        own = [self.assumed(parts[0], holds, ranges) for holds in (True, False)]
        sides = [(self.direction(side, stimulus, at), self.interval(side, at)) for side, at in zip(parts[1:], own) if at]
        if len(sides) < 2:
            return sides[0][0] if sides else ANY
        (then, above), (other, below) = sides
        changes = moves[0] if above[0] >= below[1] else turned(moves[0]) if above[1] <= below[0] else moves[0] and ANY
        return then | other | changes

    def check(self, name, bounds, verdict):
        if verdict != "proved":
            raise Refused("of formulas nothing is refuted")
        for kind in self.kinds:
            ranges = self.ranges(kind)
            low, high = self.interval(self.score, ranges)
            if name == "scores-within":
                # Bounds are written in 32 bits.
                least, most = (end + sign * 1e-6 * (1 + abs(end)) for end, sign in [(bounds["min"], -1), (bounds["max"], 1)])
                holds = least <= low and high <= most
            elif name == "starts-before-holding":
                holds = kind != START or low >= 0
            else:
                holds = kind not in WAITING or self.direction(self.score, MONOTONE[name], ranges) <= UP
            if not holds:
                raise Refused("it is said to be proved, and here it is not")

    def dropped(self, claims):
        return missing(claims, [*MONOTONE, "starts-before-holding", "scores-within"])


def evaluated(operation, a, b):
    """An operation as docs/formulas.md defines it."""
    of = {
        "negate": lambda: -a, "log1p": lambda: math.log(1 + max(a, 0.0)), "exp": lambda: math.exp(min(max(a, -50.0), 50.0)),
        "abs": lambda: abs(a), "not": lambda: 1 - a, "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b,
        "and": lambda: a * b, "or": lambda: max(a, b), "min": lambda: min(a, b), "max": lambda: max(a, b), "/": lambda: a / b,
        "<": lambda: float(a < b), "<=": lambda: float(a <= b), ">": lambda: float(a > b), ">=": lambda: float(a >= b),
    }[operation]  # fmt: skip
    return min(max(of(), -LARGEST), LARGEST)


def divisors(b):
    """Ends of what is divided by: nothing is nearer to 0 than the least divisor, and the signs part there."""
    cut = [end if abs(end) >= LEAST_DIVISOR else math.copysign(LEAST_DIVISOR, end) if end else LEAST_DIVISOR for end in b]
    cut += [LEAST_DIVISOR] * (b[0] < LEAST_DIVISOR and b[1] >= 0) + [-LEAST_DIVISOR] * (b[0] < 0 and b[1] > -LEAST_DIVISOR)
    return cut


def turned(moves):
    return {{"+": "-", "-": "+"}[sign] for sign in moves}


def under(moves, by):
    """A move times what lies within an interval."""
    return moves if by[0] >= 0 else turned(moves) if by[1] <= 0 else moves and ANY
