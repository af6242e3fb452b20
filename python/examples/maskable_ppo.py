"""MaskablePPO of sb3-contrib on one flat observation, compared with heuristics on workloads that it never saw."""

import argparse

import gymnasium
import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv

import pleach


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--num-jobs", type=int, default=300)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    settings = {"num_jobs": args.num_jobs}

    def make():
        return pleach.wrappers.FlatObservation(gymnasium.make(args.env, disable_env_checker=True, **settings))

    model = MaskablePPO(
        "MlpPolicy",
        DummyVecEnv([make] * args.envs),
        n_steps=256,
        batch_size=512,
        n_epochs=4,
        learning_rate=3e-4,
        gamma=0.999,
        seed=1,
        device="cpu",
        policy_kwargs={"net_arch": [64, 64]},
    )
    model.learn(args.steps)

    def learned(observation):
        row = pleach.wrappers.flat(observation)
        action, _ = model.predict(row, action_masks=observation["mask"].astype(bool), deterministic=True)
        return int(action)

    def random(observation, rng=np.random.default_rng(1)):
        return int(rng.choice(np.flatnonzero(observation["mask"])))

    policies = {"sjf": "sjf", "fifo": "fifo", "best-type-delay": "best-type-delay", "random": random, "MaskablePPO": learned}
    print(pleach.evaluate(policies, args.env, seeds=args.seeds, num_threads=1, **settings))


if __name__ == "__main__":
    main()
