"""Trees: boxes of their leaves, laws between columns, witnesses and visits."""

import math

from columns import (
    ANY, CANDIDATES_MAX, DOWN, EQUAL, HOLD, MONOTONE, NODES_MAX, SCALED_SLACK, START, UP, WAITING, Column, Refused,
    kinds_of, meet, missing, narrowed, next_up, over, times, wider,
)  # fmt: skip


class Tree:
    def __init__(self, file):
        lines = file.get("schema", [])[1:] + file.get("reads", [])
        self.columns = {column.name: column for column in map(Column, lines)}
        self.nodes = file["nodes"]
        self.weights = [(term["feature"], term["weight"]) for term in file.get("key_weights", [])]
        self.visits = file.get("visits")
        self.check_nodes()
        self.kinds = kinds_of(file["needs"])
        self.leaves = {kind: list(self.boxes(kind)) for kind in self.kinds}
        self.leaf_ids = [node["leaf"] for node in self.nodes if "leaf" in node]

    def check_nodes(self):
        parents = [0] * len(self.nodes)
        for place, node in enumerate(self.nodes):
            if "leaf" in node:
                continue
            if node["feature"] not in self.columns:
                raise Refused(f"node {place} reads {node['feature']}, which the file does not define")
            for child in (node["left"], node["right"]):
                if not place < child < len(parents):
                    raise Refused(f"node {place}: a child has to stand behind it")
                parents[child] += 1
        if not 0 < len(parents) <= NODES_MAX or any(number != 1 for number in parents[1:]):
            raise Refused(f"its nodes are not one tree of at most {NODES_MAX}")

    def boxes(self, kind):
        """The leaves to which rows of a kind come by the ranges of the columns, by their places, with the ranges there."""
        rest = [(0, {name: column.scaled_range(kind) for name, column in self.columns.items()})]
        while rest:
            place, ranges = rest.pop()
            node = self.nodes[place]
            if "leaf" in node:
                yield place, ranges
                continue
            name, threshold = node["feature"], node["threshold"]
            for child, part in [("left", (-math.inf, threshold)), ("right", (next_up(threshold), math.inf))]:
                cut = {**ranges, name: narrowed(ranges[name], part)}
                if cut[name][0] <= cut[name][1]:
                    rest.append((node[child], cut))

    def has_a_row(self, kind, ranges):
        """Whether the laws between columns leave a row of a kind within ranges; each narrows what the others leave."""
        if any(low > high for low, high in ranges.values()):
            return False
        if kind == HOLD:
            return True

        def raw(name):
            if name not in ranges:
                return 0.0, math.inf
            column, (low, high) = self.columns[name], ranges[name]
            # What was cut to the largest value may have been more.
            is_cut = high >= column.scaled(column.most) - SCALED_SLACK
            return wider((max(column.raw(low), 0.0), math.inf if is_cut else column.raw(high)))

        rest, gpus, gpu_time = raw("remaining_s"), raw("num_gpus"), raw("gpu_time_gpu_s")
        wait, ratio, oldest = raw("wait_s"), raw("wait_ratio"), raw("oldest_wait_s")
        for _ in range(4):
            # GPU time = rest x GPUs
            gpu_time = meet(gpu_time, times(rest, gpus))
            rest, gpus = meet(rest, over(gpu_time, gpus)), meet(gpus, over(gpu_time, rest))
            # ratio = 1 + wait / rest
            share = over(wait, rest)
            ratio = meet(ratio, (1 + share[0], 1 + share[1]))
            share = max(ratio[0] - 1, 0.0), ratio[1] - 1
            wait, rest = meet(wait, times(share, rest)), meet(rest, over(wait, share))
            # Of those that wait none has waited longer than the oldest.
            if kind in (1, 2):
                wait, oldest = (wait[0], min(wait[1], oldest[1])), (max(oldest[0], wait[0]), oldest[1])
        return all(low <= high for low, high in (rest, gpus, gpu_time, wait, ratio, oldest))

    def reached(self, by_laws):
        boxes = ((kind, place, box) for kind, boxes in self.leaves.items() for place, box in boxes)
        return {self.nodes[place]["leaf"] for kind, place, box in boxes if not by_laws or self.has_a_row(kind, box)}

    def score(self, place):
        return self.nodes[place]["score"]

    def meaning(self, name):
        """What tells the two rows apart that a property compares, their kinds, and when their scores break it."""
        of_one_job = [(kind, kind) for kind in self.kinds if kind in WAITING]
        return {
            "monotone-in-waiting": ("waiting", of_one_job, lambda a, b: b < a),
            "monotone-in-estimate": ("estimate", of_one_job, lambda a, b: b < a),
            "starts-before-holding": (None, [(HOLD, START)], lambda a, b: b < a),
            "waiting-outranks": (None, [(START, START)], lambda a, b: b >= a),
        }[name]

    def within(self, bounds, first, second):
        """The two, cut to the waiting times of which a property speaks."""
        if not bounds or "wait_s" not in self.columns:
            return first, second
        scaled = self.columns["wait_s"].scaled
        long = scaled(bounds["at_least_s"]) - SCALED_SLACK, math.inf
        short = -math.inf, scaled(bounds["at_most_s"]) + SCALED_SLACK
        return {**first, "wait_s": narrowed(first["wait_s"], long)}, {**second, "wait_s": narrowed(second["wait_s"], short)}

    def proves(self, name, bounds):
        if name == "scores-within":
            reached = self.reached(True)
            scores = [node["score"] for node in self.nodes if node.get("leaf") in reached]
            return all(bounds["min"] <= score <= bounds["max"] for score in scores)
        stimulus, pairs, breaks = self.meaning(name)
        turned = any(self.moves(own, stimulus) == (UP if weight > 0 else DOWN) for own, weight in self.weights)
        if stimulus == "waiting" and turned:
            return False
        return not any(
            breaks(self.score(one), self.score(other))
            and self.may_meet(stimulus, kinds, *self.within(bounds, first, second))
            for kinds in pairs
            for one, first in self.leaves[kinds[0]]
            for other, second in self.leaves[kinds[1]]
        )

    def moves(self, name, stimulus):
        return self.columns[name].moves(stimulus)

    def may_meet(self, stimulus, kinds, first, second):
        """Whether some row of the one box and one of the other stand to each other as meant."""
        first, second = dict(first), dict(second)
        for name in self.columns:
            (a, b), (c, d), moves = first[name], second[name], self.moves(name, stimulus)
            if moves in (UP, EQUAL):
                b, c = min(b, d), max(a, c)
            if moves in (DOWN, EQUAL):
                a, d = max(a, c), min(b, d)
            first[name], second[name] = (a, b), (c, d)
        return self.has_a_row(kinds[0], first) and self.has_a_row(kinds[1], second)

    def end(self, row):
        place = 0
        while "leaf" not in self.nodes[place]:
            node = self.nodes[place]
            if node["feature"] not in row:
                raise Refused(f"a row of its witness has no {node['feature']}")
            place = node["left" if row[node["feature"]] <= node["threshold"] else "right"]
        return place

    def check_witness(self, name, bounds, witness):
        first, second = witness["first"], witness["second"]
        stimulus, pairs, breaks = self.meaning(name)
        ends = self.end(first), self.end(second)
        if [self.nodes[place]["leaf"] for place in ends] != list(witness["leaves"]):
            raise Refused("its rows end in other leaves")
        one, other = map(self.score, ends)
        key = lambda row: sum(weight * row[own] for own, weight in self.weights)
        if not breaks(one, other) and not (stimulus == "waiting" and one == other and key(second) > key(first)):
            raise Refused("its rows do not break it")
        for own in first:
            moves, step = self.moves(own, stimulus), second[own] - first[own]
            # Of one job, what is not known to move is the same.
            stays = moves == EQUAL or moves == ANY and stimulus is not None
            if step > 0 and (stays or moves == DOWN) or step < 0 and (stays or moves == UP):
                raise Refused(f"its rows differ in {own} as two candidates that it means do not")
        for kinds in pairs:
            boxes = [
                {column: narrowed(self.columns[column].scaled_range(kind), (row.get(column, -math.inf), row.get(column, math.inf)))
                 for column in self.columns}
                for kind, row in zip(kinds, (first, second))
            ]  # fmt: skip
            boxes = self.within(bounds, *boxes)
            if all(self.has_a_row(kind, box) for kind, box in zip(kinds, boxes)):
                return
        raise Refused("its rows are no candidates as it means them")

    def check(self, name, bounds, verdict):
        if verdict == "proved":
            if name == "leaf-is-reached" or not self.proves(name, bounds):
                raise Refused("it is said to be proved, and here it is not")
        elif name == "leaf-is-reached":
            if bounds["leaf"] in self.reached(True):
                raise Refused("a candidate may come to that leaf")
        elif name == "scores-within":
            raise Refused("it is said to be refuted, which needs a score")
        else:
            self.check_witness(name, bounds, verdict["refuted"])

    def dropped(self, claims):
        yield from missing(claims, [*MONOTONE, "waiting-outranks", "starts-before-holding", "scores-within"])
        said = [bounds["leaf"] for name, bounds, _ in claims if name == "leaf-is-reached"]
        for leaf in set(self.leaf_ids) - self.reached(False):
            if said.count(leaf) != 1:
                yield f"no candidate comes to leaf {leaf}, and no claim says so"
        if self.visits is None:
            return
        most = self.visits["decisions"] * CANDIDATES_MAX
        offered = {visit["leaf"]: visit["offered"] for visit in self.visits["leaves"]}
        if sorted(visit["leaf"] for visit in self.visits["leaves"]) != sorted(self.leaf_ids):
            yield "visits are not of each leaf once"
        if not self.visits["decisions"] <= sum(offered.values()) <= most:
            yield f"{self.visits['decisions']} decisions cannot have had {sum(offered.values())} candidates"
        for leaf in set(offered) - self.reached(True):
            if offered[leaf]:
                yield f"no candidate comes to leaf {leaf}, and {offered[leaf]} are said to have been there"
