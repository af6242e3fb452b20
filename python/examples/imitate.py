"""Imitation with scikit-learn: a forest learns which candidate a heuristic takes, and is compared with it."""

import argparse

import gymnasium
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import pleach


def demonstrate(env_id, expert, num_steps, settings):
    """Rows of admissible candidates [M, F + G], and whether the expert took each of them [M]."""
    envs = gymnasium.make_vec(env_id, num_envs=8, vectorization_mode="vector_entry_point", **settings)
    observation, _ = envs.reset(seed=1)
    rows, taken = [], []
    for _ in range(num_steps):
        actions = envs.expert_action(expert)
        ragged = pleach.wrappers.ragged(observation)
        env_of = np.repeat(np.arange(8), np.diff(ragged["offsets"]))
        rows.append(np.hstack([ragged["rows"], ragged["global"][env_of]]))
        taken.append(ragged["actions"] == actions[env_of])
        observation, *_ = envs.step(actions)
    return np.concatenate(rows), np.concatenate(taken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    parser.add_argument("--expert", default="sjf-best-type")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--num-jobs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()

    rows, taken = demonstrate(args.env, args.expert, args.steps, {"num_jobs": args.num_jobs})
    forest = RandomForestClassifier(n_estimators=50, min_samples_leaf=2, n_jobs=1, random_state=1).fit(rows, taken)

    def student(observation):
        scores = np.full(len(observation["mask"]), -np.inf, np.float32)
        admissible = np.flatnonzero(observation["mask"])
        wide = np.tile(observation["global"], (len(admissible), 1))
        scores[admissible] = forest.predict_proba(np.hstack([observation["candidates"][admissible], wide]))[:, 1]
        return scores

    comparison = pleach.evaluate(
        {args.expert: args.expert, "forest": student, "sjf": "sjf", "fifo": "fifo"}, args.env, num_jobs=args.num_jobs, seeds=args.seeds
    )
    print(f"{len(rows)} rows, {taken.sum()} of them taken")
    print(comparison)


if __name__ == "__main__":
    main()
