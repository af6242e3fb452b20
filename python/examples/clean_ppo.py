"""PPO in one file and one loop, in the manner of CleanRL, with a network that scores candidates as a set."""

import argparse

import gymnasium
import torch
from torch import nn

import pleach


class SetNetwork(nn.Module):
    """Logits [N, C] and values [N]: every candidate is encoded alike, and sees the mean of all admissible ones."""

    def __init__(self, num_global, num_features, hidden=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(num_features + num_global, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.score = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, seen):
        rows, mask = seen["candidates"], seen["mask"].bool()
        rows = self.encode(torch.cat([rows, seen["global"].unsqueeze(1).expand(-1, rows.shape[1], -1)], 2))
        pooled = (rows * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        logits = self.score(torch.cat([rows, pooled.unsqueeze(1).expand_as(rows)], 2)).squeeze(2)
        return torch.distributions.Categorical(logits=logits.masked_fill(~mask, -1e8)), self.value(pooled).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("steps", 200_000), ("num-jobs", 300), ("envs", 16), ("rollout", 128), ("epochs", 4), ("seeds", 10)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    args = parser.parse_args()
    torch.manual_seed(1)
    settings = {"num_jobs": args.num_jobs}
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.make_vec(args.env, num_envs=args.envs, vectorization_mode="vector_entry_point", autoreset_mode=mode, **settings)
    tensor = lambda seen: {key: torch.from_numpy(value) for key, value in seen.items()}
    seen = tensor(envs.reset(seed=1)[0])
    network = SetNetwork(seen["global"].shape[1], seen["candidates"].shape[2])
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-5)
    for update in range(args.steps // (args.envs * args.rollout)):
        kept = []
        with torch.no_grad():
            for _ in range(args.rollout):
                chances, value = network(seen)
                action = chances.sample()
                after, reward, terminated, truncated, _ = envs.step(action.numpy())
                ended = torch.from_numpy(terminated | truncated).float()
                kept.append((seen, action, chances.log_prob(action), value, torch.from_numpy(reward), ended))
                seen = tensor(after)
            future, advantage, advantages = network(seen)[1], torch.zeros(args.envs), []
            for _, _, _, value, reward, ended in reversed(kept):
                advantage = reward + 0.999 * future * (1 - ended) - value + 0.999 * 0.95 * (1 - ended) * advantage
                future = value
                advantages.insert(0, advantage)
        rows = {key: torch.cat([step[0][key] for step in kept]) for key in seen}
        action, old, value = (torch.cat([step[part] for step in kept]) for part in (1, 2, 3))
        advantage = torch.cat(advantages)
        target, advantage = advantage + value, (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(args.epochs):
            for part in torch.randperm(len(action)).split(512):
                chances, value = network({key: rows[key][part] for key in rows})
                ratio = (chances.log_prob(action[part]) - old[part]).exp()
                gain = torch.min(ratio * advantage[part], ratio.clamp(0.8, 1.2) * advantage[part]).mean()
                loss = 0.5 * (value - target[part]).square().mean() - gain - 0.01 * chances.entropy().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                adam.step()
    chances = lambda one: network({key: torch.from_numpy(value[None]) for key, value in one.items()})[0]
    learned = {"PPO": lambda one: chances(one).logits[0].detach(), "PPO, drawn": lambda one: int(chances(one).sample())}
    rules = {"sjf": "sjf", "fifo": "fifo", "best-type-delay": "best-type-delay"}
    print(pleach.evaluate({**rules, **learned}, args.env, seeds=args.seeds, num_threads=1, **settings))


if __name__ == "__main__":
    main()
