"""What a classifier needs to know of its loss."""

from __future__ import annotations

from torch import Tensor, nn


class ClassLoss(nn.Module):
    """A loss over K classes, and how its logits become scores.

    outputs:     L, the logits of a sample
    bias:        what the biases of the last layer begin at
    temperature: the paper's for the normalised layer
    needs_objectness: whether it is nothing without a predictor of objectness

    Logits are float32 or wider. Labels are 0 to K - 1, K for background and -1 for rows that are no
    sample: fixed-size tensors have such rows. Nothing here waits for the device.
    """

    outputs: int
    bias: float = 0.0
    temperature: float
    needs_objectness: bool = False

    def loss(self, logits: Tensor, label: Tensor, count: Tensor) -> Tensor:
        """Scalar, from [N, L] logits, [N] labels and the number of samples to divide by."""
        raise NotImplementedError

    def scores(self, logits: Tensor) -> Tensor:
        """[N, K] in [0, 1]."""
        raise NotImplementedError
