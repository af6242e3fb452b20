"""N environments of the Python package as arrays that learners look at: nothing is copied on the way."""

import numpy as np
from gymnasium.vector import AutoresetMode

import pleach


class Environments:
    """N environments that step together. `global`, `candidates` and `mask` of `arrays` are views that the next step overwrites;
    `reward`, `terminated`, `truncated` and `dt_s` are those of the last step. An ended episode has begun anew in the same step."""

    def __init__(self, env_id, num_envs):
        self._envs = pleach.PleachVectorEnv(env_id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, copy=False)
        views, self.num_envs = self._envs._views, num_envs
        self.num_global, (_, self.num_candidates, self.num_features) = views["global"].shape[1], views["candidates"].shape
        self.arrays = {"global": views["global"], "candidates": views["candidates"], "mask": views["mask"].view(np.bool_)}
        self.arrays.update({f"final_{name}": np.zeros_like(self.arrays[name]) for name in ("global", "candidates", "mask")})

    def reset(self, seeds):
        self._envs.reset(seed=[int(seed) for seed in seeds])

    def step(self, actions):
        arrays = self.arrays
        _, arrays["reward"], arrays["terminated"], arrays["truncated"], info = self._envs.step(actions)
        arrays["dt_s"] = info["dt_s"]
        for i in np.flatnonzero(info.get("_final_obs", ())):
            for name, value in info["final_obs"][i].items():
                arrays[f"final_{name}"][i] = value

    def close(self):
        self._envs.close()
