"""PPO in one loop, in the manner of CleanRL: it imitates a rule, discounts by simulated time, and keeps what is best as it is deployed."""

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
        return logits.masked_fill(~mask, -1e8), self.value(pooled).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    numbers = {"steps": 300_000, "warm": 80_000, "num-jobs": 300, "envs": 16, "rollout": 128, "seeds": 20, "seed": 1, "horizon-s": 5e5}
    for name, value in {**numbers, "env": "Pleach/GavelMulti-v1", "rule": "best-type-delay"}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args, lam = parser.parse_args(), 0.99
    torch.manual_seed(args.seed), torch.set_num_threads(1)
    mode = {"vectorization_mode": "vector_entry_point", "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec(args.env, num_envs=args.envs, num_threads=1, num_jobs=args.num_jobs, **mode)
    tensor = lambda seen: {key: torch.from_numpy(value) for key, value in seen.items()}
    seen = tensor(envs.reset(seed=args.seed)[0])
    network, best, per_update = SetNetwork(seen["global"].shape[1], seen["candidates"].shape[2]), (9.0, None), args.envs * args.rollout
    likeliest = pleach.batched(torch.no_grad()(lambda seen: network(tensor(seen))[0]))
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-5)
    for update in range(args.steps // per_update):
        kept, is_warm = [], update * per_update < args.warm
        adam.param_groups[0]["lr"] = 1e-3 if is_warm else 1e-4
        with torch.no_grad():
            for _ in range(args.rollout):
                logits, value = network(seen)
                chances = torch.distributions.Categorical(logits=logits)
                action, taught = chances.sample(), torch.from_numpy(envs.expert_action(args.rule)) if is_warm else None
                after, reward, terminated, truncated, info = envs.step(action.numpy())
                # What comes is worth less by the simulated time until it comes; nothing is beyond an end.
                worth = torch.from_numpy((1 - (terminated | truncated)) * 2.718281828 ** (-info["dt_s"] / args.horizon_s)).float()
                kept.append((seen, action if taught is None else taught, chances.log_prob(action), value, torch.from_numpy(reward), worth))
                seen = tensor(after)
            future, advantage, advantages = network(seen)[1], torch.zeros(args.envs), []
            for _, _, _, value, reward, worth in reversed(kept):
                advantage, future = reward + worth * future - value + lam * worth * advantage, value
                advantages.insert(0, advantage)
        rows = {key: torch.cat([step[0][key] for step in kept]) for key in seen}
        action, old, value = (torch.cat([step[part] for step in kept]) for part in (1, 2, 3))
        advantage = torch.cat(advantages)
        target, advantage = advantage + value, (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for part in (part for _ in range(4) for part in torch.randperm(len(action)).split(512)):
            logits, value = network({key: rows[key][part] for key in rows})
            chances = torch.distributions.Categorical(logits=logits)
            ratio = (chances.log_prob(action[part]) - old[part]).exp()
            gain = torch.min(ratio * advantage[part], ratio.clamp(0.8, 1.2) * advantage[part]).mean() + 0.003 * chances.entropy().mean()
            loss = 0.5 * (value - target[part]).square().mean() - (chances.log_prob(action[part]).mean() if is_warm else gain)
            adam.zero_grad(), loss.backward(), nn.utils.clip_grad_norm_(network.parameters(), 0.5), adam.step()
        if update % 10 == 9 or (update + 1) * per_update > args.steps - per_update:
            found = pleach.evaluate({"rule": args.rule, "network": likeliest}, args.env, seeds=8, seed=1, num_threads=1, num_jobs=args.num_jobs)
            print(f"{(update + 1) * per_update} steps: {found.table['ratio'][1]:.3f} of {args.rule}", flush=True)
            best = min(best, (found.table["ratio"][1], {key: part.clone() for key, part in network.state_dict().items()}), key=lambda one: one[0])
    network.load_state_dict(best[1])
    print(pleach.evaluate({args.rule: args.rule, "sjf": "sjf", "PPO": likeliest}, args.env, seeds=args.seeds, num_threads=1, num_jobs=args.num_jobs))


if __name__ == "__main__":
    main()
