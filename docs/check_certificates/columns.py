"""What is known of the columns of a decision, and arithmetic of intervals.

Which columns vary in which rows, and how they move, is stated here anew, by what features.md says of each.
"""

import math
import struct

KINDS = ["hold", "start", "reserve", "preempt", "resize"]
HOLD, START = 0, 1
WAITING = {1, 2, 3}
# What 32-bit columns and six digits of a logarithm may be off by: as a share and in units, and in scaled numbers. Assumed.
SLACK, SCALED_SLACK = 1e-4, 1e-5
# Limits of docs/policy-file.md.
NODES_MAX, CANDIDATES_MAX = 2047, 64

# In which kinds of rows a column of a candidate is more than 0; others are in all but hold.
VARIES = {
    **dict.fromkeys(["leftover_fraction", "oldest_slack"], {0, 1, 2, 3, 4}),
    **dict.fromkeys(["speed_ratio", "locality", "num_nodes_ratio", "num_left"], {1, 3, 4}),
    **dict.fromkeys(["num_victims", "victims_remaining_s"], {3}),
    **dict.fromkeys(["is_beside", "partner_remaining_s"], {1}),
    "wait_to_fit_s": {2},
    "resize_ratio": {4},
    **{"is_" + name: {number} for number, name in enumerate(KINDS)},
}
# Columns that waiting or a shorter estimate moves, and those that neither does. Of other columns nothing is known.
UP, DOWN = {"+"}, {"-"}
ANY, EQUAL = UP | DOWN, set()
MOVES = {
    "waiting": {"wait_s": UP, "wait_ratio": UP, "oldest_wait_s": UP},
    "estimate": {
        **dict.fromkeys(["remaining_s", "duration_s", "gpu_time_gpu_s", "rank_remaining", "rank_gpu_time"], DOWN),
        **dict.fromkeys(["smallest_gpu_time_gpu_s", "believed_drain_s"], DOWN),
        **dict.fromkeys(["wait_ratio", "is_shortest", "is_smallest"], UP),
        "end_gain": ANY,
    },
}
MONOTONE = {"monotone-in-waiting": "waiting", "monotone-in-estimate": "estimate"}
STILL = set(VARIES) | set(MOVES["waiting"]) | set(MOVES["estimate"]) | set(
    """num_gpus gpu_fraction attained_gpu_s num_preemptions tenant_use_ratio rank_arrival rank_attained rank_num_gpus is_oldest
    tenant_deficit_rank partner_rate_ratio best_type_wait_s type_advantage size_ratio gpu_efficiency cores_ratio demand_rate_ratio
    free_fraction largest_free_fraction empty_node_fraction num_pending pending_gpus_ratio num_running next_finish_s is_reserved
    reservation_s reservation_extra_fraction free_fastest_fraction""".split()
)


class Refused(Exception):
    """What is no such file, or a claim that does not hold."""


class Column:
    def __init__(self, line):
        self.is_context = line.split(" ")[0] == "global"
        self.name = line.split(" ")[1]
        least, most, scale = line.rsplit(" ", 3)[1:]
        self.is_log, self.divisor = scale.startswith("Log"), float(scale[scale.index("(") + 1 : -1])
        self.least, self.most = float(least), float(most)

    def scaled(self, raw):
        return (math.log10(1 + raw) if self.is_log else raw) / self.divisor

    def raw(self, scaled):
        return 10 ** min(scaled * self.divisor, 300) - 1 if self.is_log else scaled * self.divisor

    def varies(self, kind):
        return self.is_context or kind in VARIES.get(self.name, {1, 2, 3, 4})

    def scaled_range(self, kind):
        """A little wider than it is, and exact where it does not vary."""
        if self.name == "is_" + KINDS[kind]:
            return 1.0, 1.0
        if not self.varies(kind):
            return 0.0, 0.0
        return self.scaled(self.least) - SCALED_SLACK, self.scaled(self.most) + SCALED_SLACK

    def moves(self, stimulus):
        """How it may stand in the second of two rows; of two candidates of a decision (no stimulus) the context is the same."""
        if stimulus is None:
            return EQUAL if self.is_context else ANY
        return MOVES[stimulus].get(self.name, EQUAL if self.name in STILL else ANY)


def next_up(value):
    """The next 32-bit float above."""
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    bits = 1 if bits in (0, -(2**31)) else bits + (1 if bits > 0 else -1)
    return struct.unpack("<f", struct.pack("<i", bits))[0]


def times(a, b):
    """Of intervals of numbers that are not negative; 0 times what has no bound is 0."""
    product = lambda x, y: 0.0 if x == 0 or y == 0 else x * y
    return product(a[0], b[0]), product(a[1], b[1])


def over(a, b):
    return (a[0] / b[1] if 0 < b[1] < math.inf else 0.0), (a[1] / b[0] if b[0] > 0 else math.inf)


def wider(a):
    return max(a[0] * (1 - SLACK) - SLACK, 0.0), a[1] * (1 + SLACK) + SLACK


def meet(a, b):
    b = wider(b)
    return max(a[0], b[0]), min(a[1], b[1])


def narrowed(a, b):
    return max(a[0], b[0]), min(a[1], b[1])


def kinds_of(needs):
    of = [True, True, needs["reservation"], needs["preemption"], "resize" in needs.get("actions", [])]
    return [kind for kind, is_chosen in enumerate(of) if is_chosen]


def missing(claims, names):
    for name in names:
        number = [own for own, _, _ in claims].count(name)
        if number != 1:
            yield f"{name} is claimed {number} times, and once is right"
