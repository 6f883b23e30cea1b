"""The last layer of a classifier, plain or normalised.

Both are computed in float32 at least, also under autocast. A logit near -9 has steps of 1/32 in
bfloat16: in the long lists that detectors are judged by, most scores would tie.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def widened(x: Tensor) -> Tensor:
    """In float32, or as it is if that is wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Linear(nn.Linear):
    """[N, D] features to [N, L] logits: w·x + b."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return self.logits(widened(x))

    def logits(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class NormalizedLinear(Linear):
    """τ·(w·x) / (‖w‖ ‖x‖) + b, with the weights and biases of a plain layer."""

    def __init__(self, features: int, outputs: int, temperature: float) -> None:
        super().__init__(features, outputs)
        self.temperature = temperature

    def logits(self, x: Tensor) -> Tensor:
        direction = functional.normalize(x, dim=1)
        return functional.linear(
            self.temperature * direction, functional.normalize(self.weight, dim=1), self.bias
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature}"
