"""The set network of `agents/src/network.rs` in PyTorch, over padded candidates and over admissible ones alone."""

import torch
from torch import nn
from torch.nn.functional import relu

MASKED = -1e8


class SetNetwork(nn.Module):
    """Logits `[B, C]` (masked ones -1e8) and values `[B]` of observations `global [B, G]`, `candidates [B, C, F]`, `mask [B, C]`."""

    def __init__(self, num_global, num_features, hidden, context, ragged=False):
        super().__init__()
        self.ragged = ragged
        self.encoder_0 = nn.Linear(num_features, hidden)
        self.encoder_1 = nn.Linear(hidden, hidden)
        self.context_0 = nn.Linear(2 * hidden + num_global, context)
        self.context_1 = nn.Linear(context, context)
        self.pointer_candidate = nn.Linear(hidden, hidden, bias=False)
        self.pointer_context = nn.Linear(context, hidden)
        self.pointer_out = nn.Linear(hidden, 1, bias=False)
        self.value_0 = nn.Linear(context, context)
        self.value_out = nn.Linear(context, 1)
        with torch.no_grad():
            self.pointer_out.weight.mul_(0.01)

    def forward(self, global_, candidates, mask):
        return (self._ragged if self.ragged else self._padded)(global_, candidates, mask)

    def _context(self, mean, largest, global_):
        context = relu(self.context_0(torch.cat([mean, largest, global_], 1)))
        context = relu(self.context_1(context))
        value = self.value_out(relu(self.value_0(context))).squeeze(1)
        return self.pointer_context(context), value

    def _padded(self, global_, candidates, mask):
        encoded = relu(self.encoder_1(relu(self.encoder_0(candidates))))
        # Codes come out of a rectifier, so zero in place of a masked one changes neither sum nor maximum.
        admissible = encoded * mask.unsqueeze(2)
        mean = admissible.sum(1) / mask.sum(1, keepdim=True)
        shared, value = self._context(mean, admissible.amax(1), global_)
        pointer = relu(self.pointer_candidate(encoded) + shared.unsqueeze(1))
        logits = self.pointer_out(pointer).squeeze(2)
        return logits.masked_fill(~mask, MASKED), value

    def _ragged(self, global_, candidates, mask):
        numbers = mask.sum(1)
        decision = torch.repeat_interleave(numbers)
        encoded = relu(self.encoder_1(relu(self.encoder_0(candidates[mask]))))
        zeros = encoded.new_zeros(len(mask), encoded.shape[1])
        mean = zeros.index_add(0, decision, encoded) / numbers.unsqueeze(1)
        largest = torch.segment_reduce(encoded, "max", lengths=numbers, axis=0, unsafe=True)
        shared, value = self._context(mean, largest, global_)
        pointer = relu(self.pointer_candidate(encoded) + shared[decision])
        logits = self.pointer_out(pointer).squeeze(1)
        return global_.new_full(mask.shape, MASKED).masked_scatter(mask, logits), value
