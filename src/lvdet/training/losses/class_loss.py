"""The interface between a classifier and its loss."""

from __future__ import annotations

from torch import Tensor, nn


class ClassLoss(nn.Module):
    """A loss over K classes, and how its logits become scores.

    outputs:     L, the number of logits per sample
    bias:        the initial bias of the last layer
    temperature: the paper's temperature for the normalised layer
    needs_objectness: whether the loss requires an objectness predictor
    group_images: the number of images per group. The loss is computed over each group, then
                 averaged, as over GPUs with that many images each; 0: the whole batch is one group

    Logits are float32 or wider. Labels are 0 to K - 1, K for background and -1 for padding rows of
    fixed-size tensors. Nothing here waits for the device.
    """

    outputs: int
    bias: float = 0.0
    temperature: float
    needs_objectness: bool = False
    group_images: int = 0

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        """Scalar, from [N, L] logits and [N] labels.

        count: the number of samples to divide by, for losses over the whole batch
        seed:  [B] of the images, which have N / B consecutive rows each
        """
        raise NotImplementedError

    def groups(self, images: int) -> int:
        """The number of groups that this many images form; 1 if they are all one group."""
        return images // self.group_images if self.group_images else 1

    def scores(self, logits: Tensor) -> Tensor:
        """[N, K] in [0, 1]."""
        raise NotImplementedError


def in_groups(rows: Tensor, groups: int) -> Tensor:
    """[G, N / G, ...] of [N, ...] rows."""
    return rows.reshape(groups, len(rows) // groups, *rows.shape[1:])


def group_counts(label: Tensor, groups: int) -> Tensor:
    """[G, 1] the number of samples in each group, at least 1, from [N] labels."""
    return (in_groups(label, groups) >= 0).sum(dim=1, keepdim=True).clamp(min=1)
