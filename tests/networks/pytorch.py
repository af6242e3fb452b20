"""Makes pytorch.onnx: a network of PyTorch as users export it, so that tests without PyTorch have one."""

import torch

import pleach

ENV = "Pleach/GavelMulti-v1"
WEIGHTS = {"is_start": 4.0, "is_hold": -8.0, "remaining_s": -2.0, "num_gpus": -1.0}


class Mine(torch.nn.Module):
    """The shortest first, and a little of something drawn."""

    def __init__(self, names):
        super().__init__()
        self.order = torch.nn.Parameter(torch.tensor([[WEIGHTS.get(name, 0.0)] for name in names]))
        width = len(names)
        self.body = torch.nn.Sequential(torch.nn.Linear(width, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Linear(4, 1))

    def forward(self, candidates, context, mask):
        around = candidates - candidates.mean(1, keepdim=True)
        scores = candidates @ self.order + self.body(around)
        return scores.squeeze(-1).masked_fill(~mask, -1e9)


torch.manual_seed(1)
features = pleach.PleachEnv(ENV).features["candidates"]
pleach.export_onnx(Mine([name for name, _ in features]), "pytorch.onnx", ENV, settings={"num_jobs": 100})
