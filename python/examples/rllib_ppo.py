"""PPO of RLlib's new API stack with a module that masks what is not admissible."""

import argparse

import gymnasium
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

import pleach


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Pleach/GavelMulti-v1")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--num-jobs", type=int, default=30)
    args = parser.parse_args()

    def make(config):
        env = gymnasium.make(args.env, disable_env_checker=True, num_jobs=args.num_jobs)
        return pleach.wrappers.ActionMaskObservation(env)

    register_env("pleach", make)
    config = (
        PPOConfig()
        .environment("pleach")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1)
        .training(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4, gamma=0.999, lr=3e-4)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                model_config={"head_fcnet_hiddens": [64], "fcnet_hiddens": [64, 64]},
            )
        )
    )
    algorithm = config.build_algo()
    for update in range(args.updates):
        result = algorithm.train()
        print(update, result["env_runners"].get("episode_return_mean"))
    algorithm.stop()


if __name__ == "__main__":
    main()
