"""PPO in one loop over our environments, in the manner of CleanRL's `ppo.py`, with what makes PyTorch fast on two cores: no
validation of distributions, no copies on the way, one tensor per buffer. Prints one line of JSON."""

import argparse
import json

import numpy as np
import torch

from clock import Clock
from environment import Environments
from network import SetNetwork

GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, MAX_GRAD_NORM = 0.999, 0.95, 0.2, 0.01, 0.5, 0.5


def distribution(logits, mask):
    """ln p of all candidates, and the entropy; masked ones have -1e8 and count nothing."""
    logprobs = torch.log_softmax(logits, 1)
    return logprobs, -(logprobs.exp() * logprobs).masked_fill(~mask, 0.0).sum(1)


class Learner:
    def __init__(self, args):
        self.args = args
        self.envs = Environments(args.env, args.envs)
        envs, shape = self.envs, (args.steps, args.envs)
        self.network = SetNetwork(envs.num_global, envs.num_features, args.hidden, args.hidden, args.ragged)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=5e-4, eps=1e-5, foreach=True)
        self.now = [torch.from_numpy(envs.arrays[name]) for name in ("global", "candidates", "mask")]
        self.observations = [torch.zeros((args.steps, *now.shape), dtype=now.dtype) for now in self.now]
        self.actions = torch.zeros(shape, dtype=torch.int64)
        self.logprobs, self.rewards, self.ends, self.values = (torch.zeros(shape) for _ in range(4))
        envs.reset(np.arange(args.envs))

    @torch.no_grad()
    def collect(self):
        for step in range(self.args.steps):
            for kept, now in zip(self.observations, self.now):
                kept[step] = now
            logits, self.values[step] = self.network(*self.now)
            logprobs = torch.log_softmax(logits, 1)
            action = torch.multinomial(logprobs.exp(), 1)
            self.actions[step], self.logprobs[step] = action.squeeze(1), logprobs.gather(1, action).squeeze(1)
            self.envs.step(self.actions[step].numpy())
            arrays = self.envs.arrays
            self.rewards[step] = torch.from_numpy(arrays["reward"])
            self.ends[step] = torch.from_numpy(arrays["terminated"] | arrays["truncated"])
        self.last_value = self.network(*self.now)[1]

    @torch.no_grad()
    def estimate(self):
        advantages, last, future = torch.zeros_like(self.rewards), 0.0, self.last_value
        for step in reversed(range(self.args.steps)):
            goes_on = 1.0 - self.ends[step]
            error = self.rewards[step] + GAMMA * future * goes_on - self.values[step]
            last = error + GAMMA * LAMBDA * goes_on * last
            advantages[step], future = last, self.values[step]
        return advantages.flatten(), (advantages + self.values).flatten()

    def learn(self):
        args = self.args
        advantages, returns = self.estimate()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        observations = [kept.flatten(0, 1) for kept in self.observations]
        actions, old = self.actions.flatten(), self.logprobs.flatten()
        for _ in range(args.epochs):
            for rows in torch.randperm(len(old)).split(args.minibatch):
                self.step(*(o[rows] for o in observations), actions[rows], old[rows], advantages[rows], returns[rows])

    def step(self, global_, candidates, mask, action, old, advantage, target):
        """One step on one minibatch."""
        logits, value = self.network(global_, candidates, mask)
        logprobs, entropy = distribution(logits, mask)
        ratio = (logprobs.gather(1, action.unsqueeze(1)).squeeze(1) - old).exp()
        policy = -torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        loss = policy - ENTROPY * entropy.mean() + VALUE * 0.5 * (value - target).square().mean()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM, foreach=True)
        self.adam.step()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/Philly-v0")
    parser.add_argument("--ragged", action="store_true", help="compute admissible candidates only")
    for name, value in [("envs", 16), ("steps", 256), ("epochs", 3), ("minibatch", 512), ("hidden", 32), ("threads", 2)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=3.0)
    return parser


def main():
    parser = arguments()
    parser.add_argument("--one-step", action="store_true", help="time one gradient step on the whole rollout instead")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    torch.distributions.Distribution.set_default_validate_args(False)
    learner, frames = Learner(args), args.envs * args.steps
    learner.collect()
    line = {
        "who": "torch-ragged" if args.ragged else "torch", "hidden": args.hidden,
        "candidates_mean": learner.observations[2].sum().item() / frames,
        "parameters": sum(p.numel() for p in learner.network.parameters()),
    }
    if args.one_step:
        args.epochs, args.minibatch = 1, frames
        rows = [o.flatten(0, 1) for o in learner.observations]
        numbers = [n.flatten() for n in (learner.actions, learner.logprobs)]
        advantages, returns = ((x - x.mean()) / (x.std() + 1e-8) for x in learner.estimate())
        line["learn"] = Clock().repeat(args.seconds, lambda: learner.step(*rows, *numbers, advantages, returns), frames)
    else:
        collect, learn = Clock(), Clock()
        def update():
            collect.time(learner.collect)
            learn.time(learner.learn)
        line["update"] = Clock().repeat(args.seconds, update, frames, [collect, learn])
        line["collect"], line["learn"] = collect.line(line["update"][0]), learn.line(line["update"][0])
    print(json.dumps(line))


if __name__ == "__main__":
    main()
