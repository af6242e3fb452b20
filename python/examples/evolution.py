"""An evolution strategy in PyTorch. It judges whole episodes of what is deployed, so no credit has to be given over time."""

import argparse
import time

import gymnasium
import numpy as np
import torch

import pleach


def scores(weights, rows):
    """Scores [M, C] that M networks with a hidden layer beside a straight way give their candidates [M, C, F]."""
    straight, inner, bias, outer = weights
    return (rows @ straight + torch.tanh(torch.baddbmm(bias, rows, inner)) @ outer).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("generations", 100), ("pairs", 32), ("hidden", 16), ("num-jobs", 300), ("seeds", 20), ("seed", 1)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    args = parser.parse_args()
    torch.manual_seed(args.seed), torch.set_num_threads(1), torch.set_grad_enabled(False)
    make = {"vectorization_mode": "vector_entry_point", "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec(args.env, 2 * args.pairs, **make, copy=False, num_threads=1, num_jobs=args.num_jobs)
    width = envs.single_observation_space["candidates"].shape[1]
    shapes = [(width, 1), (width, args.hidden), (1, args.hidden), (args.hidden, 1)]
    sizes, rng = [rows * columns for rows, columns in shapes], np.random.default_rng(args.seed)
    scale = torch.cat([torch.full((size,), scale) for size, scale in zip(sizes, [width**-0.5, width**-0.5, 0.1, args.hidden**-0.5])])
    # All scores are equal at first: only the hidden layer is drawn.
    first = torch.cat([torch.randn(size) * (place == 1) for place, size in enumerate(sizes)])

    def weights(moves):
        return [part.reshape(-1, *shape) for part, shape in zip(((first + moves) * scale).split(sizes, 1), shapes)]

    def log_jct(moves, seeds):
        """Logarithm of the average JCT of each network [M] in the episode of its seed."""
        found, own, seen = np.zeros(len(seeds)), weights(moves), envs.reset(seed=seeds)[0]
        while not found.all():
            last = seen["mask"].any(axis=0).nonzero()[0].max() + 1
            masked = torch.from_numpy(seen["mask"][:, :last] == 0)
            chosen = scores(own, torch.from_numpy(seen["candidates"])[:, :last]).masked_fill(masked, -torch.inf).argmax(1)
            seen, _, _, _, info = envs.step(chosen.numpy())
            if "metrics" in info:
                found = np.where(info["_metrics"] & (found == 0), info["metrics"]["avg_jct_s"], found)
        return torch.from_numpy(np.log(found)).float()

    mean, begun_s = torch.zeros(1, sum(sizes)), time.process_time()
    adam = torch.optim.Adam([mean])
    for generation in range(args.generations):
        noise = torch.randn(args.pairs, sum(sizes))
        # Both of a pair play one list, so that its luck is none of their difference.
        costs = log_jct(torch.cat([mean + noise, mean - noise]), rng.integers(2**40, size=args.pairs).tolist() * 2)
        difference = costs[: args.pairs] - costs[args.pairs :]
        ranked = difference.sign() * (difference.abs().argsort().argsort() + 1) / args.pairs
        adam.param_groups[0]["lr"] = 0.3 * (1 - generation / args.generations)
        mean.grad = (ranked @ noise / args.pairs).unsqueeze(0)
        adam.step()
        if generation % 10 == 9:
            print(f"generation {generation + 1}: {time.process_time() - begun_s:.0f} s of processor time", flush=True)
    final = weights(mean)
    learned = lambda observation: scores(final, torch.from_numpy(observation["candidates"]).unsqueeze(0))[0]
    policies = {"sjf-best-type": "sjf-best-type", "best-type-delay": "best-type-delay", "learned": learned}
    print(pleach.evaluate(policies, args.env, seeds=args.seeds, num_threads=1, num_jobs=args.num_jobs))


if __name__ == "__main__":
    main()
