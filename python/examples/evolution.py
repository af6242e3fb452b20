"""An evolution strategy in PyTorch. It judges whole episodes of what is deployed, so no credit has to be given over time."""

import argparse
import time

import gymnasium
import numpy as np
import torch

import pleach


class Networks(torch.nn.Module):
    """M networks with a hidden layer beside a straight way; or one of them for any number of decisions, as it is deployed."""

    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterList(weights)

    def forward(self, candidates, context=None):
        """Scores [M, C] of their candidates [M, C, F]."""
        straight, inner, bias, outer = (part.expand(len(candidates), -1, -1) for part in self.weights)
        return (candidates @ straight + torch.tanh(torch.baddbmm(bias, candidates, inner)) @ outer).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("generations", 240), ("pairs", 32), ("hidden", 16), ("num-jobs", 300), ("seeds", 20), ("seed", 1)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in [("env", "Pleach/GavelMulti-v1"), ("out", None)]:
        parser.add_argument(f"--{name}", default=value)
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
        found, own, seen = np.zeros(len(seeds)), Networks(weights(moves)), envs.reset(seed=seeds)[0]
        while not found.all():
            last = seen["mask"].any(axis=0).nonzero()[0].max() + 1
            masked = torch.from_numpy(seen["mask"][:, :last] == 0)
            chosen = own(torch.from_dlpack(seen["candidates"])[:, :last]).masked_fill(masked, -torch.inf).argmax(1)
            seen, _, _, _, info = envs.step(chosen.numpy())
            if "metrics" in info:
                found = np.where(info["_metrics"] & (found == 0), info["metrics"]["avg_jct_s"], found)
        return torch.from_numpy(np.log(found)).float()

    begun_s, adam = time.process_time(), torch.optim.Adam([mean := torch.zeros(1, sum(sizes))])
    for generation in range(args.generations):
        done = generation / args.generations
        # Far at first, to find a way; near at last, so that what is judged is like what is kept.
        noise, sigma = torch.randn(args.pairs, sum(sizes)), 1 - 0.7 * done
        # Both of a pair play one list, so that its luck is none of their difference.
        costs = log_jct(torch.cat([mean + sigma * noise, mean - sigma * noise]), rng.integers(2**40, size=args.pairs).tolist() * 2)
        difference = costs[: args.pairs] - costs[args.pairs :]
        ranked = difference.sign() * (difference.abs().argsort().argsort() + 1) / args.pairs
        adam.param_groups[0]["lr"], mean.grad = 0.3 * (1 - done), (ranked @ noise / args.pairs).unsqueeze(0)
        adam.step()
        if generation % 20 == 19:
            print(f"generation {generation + 1}: {time.process_time() - begun_s:.0f} s of processor time", flush=True)
    network = Networks(weights(mean))
    learned = pleach.batched(lambda seen: network(torch.from_numpy(seen["candidates"])))
    rules = {"sjf-best-type": "sjf-best-type", "best-type-delay": "best-type-delay"}
    print(pleach.evaluate({**rules, "learned": learned}, args.env, seeds=args.seeds, num_threads=1, num_jobs=args.num_jobs))
    if args.out:
        print(pleach.export_onnx(network, args.out, args.env, settings={"num_jobs": args.num_jobs}))


if __name__ == "__main__":
    main()
