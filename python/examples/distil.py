"""A linear function learns from a heuristic by least squares, and a tree distilled from it is compared with both."""

import argparse

import gymnasium
import numpy as np

import pleach


def demonstrated(env, expert, num_episodes):
    """A row for each candidate [M, F + 1]: its features and whether the expert took it, less the means of its decision."""
    rows = []
    for seed in range(num_episodes):
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = expert.act(env)
            shown = np.flatnonzero(observation["mask"])
            decision = np.column_stack([observation["candidates"][shown], shown == action])
            rows.append(decision - decision.mean(axis=0))
            observation, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
    return np.concatenate(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    parser.add_argument("--expert", default="best-type-delay")
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--num-jobs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", default="tree.json")
    args = parser.parse_args()
    env = gymnasium.make(args.env, num_jobs=args.num_jobs)

    rows = demonstrated(env, pleach.load(args.expert), args.episodes)
    weights = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]

    def linear(observation):
        return observation["candidates"] @ weights

    # Of a linear function only the order of its scores is meant.
    tree = pleach.distill(linear, env, leaves=[8], rounds=2, episodes=args.episodes, target={"centre": "rank"})
    policies = {"sjf": "sjf", args.expert: args.expert, "linear": linear, "tree": tree.save(args.out)}
    print(tree)
    print(pleach.evaluate(policies, env, seeds=args.seeds))


if __name__ == "__main__":
    main()
