"""MaskablePPO of sb3-contrib over environments that step in Rust, compared with heuristics on workloads that it never saw."""

import argparse

import gymnasium
import numpy as np
from sb3_contrib import MaskablePPO

import pleach
from pleach.sb3 import SB3VecEnv


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--num-jobs", type=int, default=300)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    settings = {"num_jobs": args.num_jobs}
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.make_vec(args.env, num_envs=args.envs, vectorization_mode="vector_entry_point", autoreset_mode=mode, **settings)
    model = MaskablePPO(
        "MlpPolicy",
        SB3VecEnv(envs.unwrapped, is_flat=True),
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

    @pleach.batched
    def learned(seen):
        actions, _ = model.predict(pleach.wrappers.flat(seen), action_masks=seen["mask"].astype(bool), deterministic=True)
        return actions

    def random(observation, rng=np.random.default_rng(1)):
        return int(rng.choice(np.flatnonzero(observation["mask"])))

    policies = {"sjf": "sjf", "fifo": "fifo", "best-type-delay": "best-type-delay", "random": random, "MaskablePPO": learned}
    print(pleach.evaluate(policies, args.env, seeds=args.seeds, num_threads=1, **settings))


if __name__ == "__main__":
    main()
