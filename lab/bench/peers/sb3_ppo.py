"""MaskablePPO of sb3-contrib over our environments, with our set network as its policy. Prints one line of JSON."""

import json

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from clock import Clock
from environment import Environments
from network import SetNetwork
from torch_ppo import arguments


class PleachVecEnv(VecEnv):
    """Our environments as one of Stable-Baselines3's vector environments: no environment is an object of its own."""

    def __init__(self, env_id, num_envs):
        self.envs = Environments(env_id, num_envs)
        shapes = {name: self.envs.arrays[name].shape[1:] for name in ("global", "candidates", "mask")}
        box = {name: spaces.Box(-np.inf, np.inf, shape, np.float32) for name, shape in shapes.items()}
        self.render_mode = None
        super().__init__(num_envs, spaces.Dict(box), spaces.Discrete(self.envs.num_candidates))

    def _observation(self):
        arrays = self.envs.arrays
        return {name: arrays[name].astype(np.float32) for name in ("global", "candidates", "mask")}

    def reset(self):
        self.envs.reset(np.arange(self.num_envs))
        return self._observation()

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        self.envs.step(self.actions)
        arrays = self.envs.arrays
        ends = arrays["terminated"] | arrays["truncated"]
        infos = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ends):
            last = {name: arrays[f"final_{name}"][i].astype(np.float32) for name in ("global", "candidates", "mask")}
            infos[i] = {"terminal_observation": last, "TimeLimit.truncated": bool(arrays["truncated"][i])}
        return self._observation(), arrays["reward"].copy(), ends, infos

    def env_method(self, name, *_, indices=None, **__):
        assert name == "action_masks"
        return list(self.envs.arrays["mask"])

    def has_attr(self, name):
        return name == "action_masks"

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs

    def get_attr(self, name, indices=None):
        if name == "action_masks":
            return [None] * self.num_envs
        return [getattr(self, name)] * self.num_envs

    def set_attr(self, name, value, indices=None):
        raise NotImplementedError(name)

    def close(self):
        self.envs.close()


class SetPolicy(MaskableMultiInputActorCriticPolicy):
    """The policy class with our network in place of extractor, bodies and heads."""

    def __init__(self, observation_space, action_space, lr_schedule, hidden=32, ragged=False, **kwargs):
        self.sizes = hidden, ragged
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule):
        space, (hidden, ragged) = self.observation_space, self.sizes
        num_global, num_features = space["global"].shape[0], space["candidates"].shape[1]
        self.features_extractor = self.pi_features_extractor = self.vf_features_extractor = torch.nn.Identity()
        self.network = SetNetwork(num_global, num_features, hidden, hidden, ragged)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr_schedule(1), eps=1e-5, foreach=True)

    def _outputs(self, obs, action_masks):
        logits, values = self.network(obs["global"], obs["candidates"], obs["mask"] > 0.5)
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution, values.unsqueeze(1)

    def forward(self, obs, deterministic=False, action_masks=None):
        distribution, values = self._outputs(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs, actions, action_masks=None):
        distribution, values = self._outputs(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def predict_values(self, obs):
        return self._outputs(obs, None)[1]


def main():
    args = arguments().parse_args()
    torch.set_num_threads(args.threads)
    torch.distributions.Distribution.set_default_validate_args(False)
    model = MaskablePPO(
        SetPolicy, PleachVecEnv(args.env, args.envs), n_steps=args.steps, batch_size=args.minibatch, n_epochs=args.epochs,
        learning_rate=5e-4, gamma=0.999, ent_coef=0.01, seed=1, device="cpu",
        policy_kwargs={"hidden": args.hidden, "ragged": args.ragged},
    )
    collect, learn, frames = Clock(), Clock(), args.envs * args.steps
    _, callback = model._setup_learn(10**9, None)

    def update():
        collect.time(lambda: model.collect_rollouts(model.env, callback, model.rollout_buffer, args.steps, True))
        learn.time(model.train)

    update_ = Clock().repeat(args.seconds, update, frames, [collect, learn])
    parameters = sum(p.numel() for p in model.policy.parameters())
    print(json.dumps({
        "who": "sb3-ragged" if args.ragged else "sb3", "hidden": args.hidden, "parameters": parameters, "update": update_,
        "collect": collect.line(update_[0]), "learn": learn.line(update_[0]),
    }))


if __name__ == "__main__":
    main()
