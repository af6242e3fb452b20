"""Monte Carlo tree search over copies of an episode: how much is left to win where the future is known.

A copy goes on with the same jobs and fates, so that the search sees what no scheduler can: its result is a bound, not a rule.
"""

import argparse
import copy
import math

import pleach

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--env", default="Pleach/GavelMulti-v1")
parser.add_argument("--num-jobs", type=int, default=80)
parser.add_argument("--load", type=float, default=10.0)
parser.add_argument("--searches", type=int, default=12, help="roll-outs before each action")
parser.add_argument("--width", type=int, default=4, help="candidates that are tried at a decision, that of the rule first")
parser.add_argument("--rule", default="sjf-best-type", help="plays the rest of each roll-out")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()


class Node:
    """A decision: roll-outs through it, the sum and the least of their average JCTs (s), and what lies behind each action."""

    def __init__(self):
        self.visits, self.total, self.least, self.below = 0, 0.0, math.inf, {}

    def add(self, jct_s):
        self.visits, self.total, self.least = self.visits + 1, self.total + jct_s, min(self.least, jct_s)
        return jct_s


def finish(env, policy):
    """Average JCT, s, where a policy plays the rest."""
    while True:
        *_, terminated, truncated, info = env.step(env.expert_action(policy))
        if terminated or truncated:
            return info["metrics"]["avg_jct_s"]


def roll_out(node, env):
    """Average JCT, s, of one way from a decision to the end; the best known actions are tried most (UCT)."""
    if node.visits == 0:
        return node.add(finish(env, args.rule))
    rule = env.expert_action(args.rule)
    actions = sorted(map(int, env.action_masks().nonzero()[0]), key=lambda action: action != rule)[: args.width]

    def promise(action):
        below = node.below.get(action)
        if below is None:
            return math.inf
        return math.sqrt(0.01 * math.log(node.visits) / below.visits) - below.total / below.visits / node.least

    action = max(actions, key=promise)
    *_, terminated, truncated, info = env.step(action)
    below = node.below.setdefault(action, Node())
    over = terminated or truncated
    return node.add(below.add(info["metrics"]["avg_jct_s"]) if over else roll_out(below, env))


env = pleach.PleachEnv(args.env, num_jobs=args.num_jobs, load=args.load)
for rule in ("sjf", args.rule):
    env.reset(seed=args.seed)
    print(f"{rule:<16} average JCT {finish(env, rule):10.0f} s")
env.reset(seed=args.seed)
node, over = Node(), False
while not over:
    for _ in range(args.searches):
        roll_out(node, copy.deepcopy(env))
    action, node = min(node.below.items(), key=lambda item: item[1].least)
    *_, terminated, truncated, info = env.step(action)
    over = terminated or truncated
print(f"{'tree-search':<16} average JCT {info['metrics']['avg_jct_s']:10.0f} s")
