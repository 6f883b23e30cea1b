"""The box classifier: a linear layer, its loss, and optionally an objectness predictor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lvdet.errors import InputError
from lvdet.training.configuration import config
from lvdet.training.losses.balanced_groups import BalancedGroups
from lvdet.training.losses.class_loss import ClassLoss, group_counts, in_groups
from lvdet.training.losses.equalization import Equalization
from lvdet.training.losses.federated import Federated
from lvdet.training.losses.objectness import objectness_loss
from lvdet.training.losses.sigmoid import Sigmoid
from lvdet.training.losses.softmax import Softmax
from lvdet.training.model.linear import Linear, NormalizedLinear, widened

#: Standard deviation of the initial weights.
SPREAD = 0.01

LOSSES = ("softmax", "sigmoid", "equalization", "federated", "balanced_groups")


@dataclass(frozen=True)
class Frequencies:
    """How often each of the K classes occurs in the training set.

    images:         the number of images with annotations
    image_count:    [K] images with each class
    instance_count: [K] objects of each class
    """

    images: int
    image_count: NDArray[np.int64]
    instance_count: NDArray[np.int64]

    @property
    def classes(self) -> int:
        return len(self.image_count)


class Classifier(nn.Module):
    """Maps [N, D] features to [N, L] logits; computes their loss and their scores.

    Objectness is a linear layer beside the classes' layer. Both are rows of one matrix, and the
    objectness logit is the last column.
    """

    def __init__(self, layer: Linear, classes: int, of_classes: ClassLoss) -> None:
        super().__init__()
        self.layer = layer
        self.classes = classes
        self.of_classes = of_classes
        self.objectness = layer.out_features > of_classes.outputs
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        """Initialises weights and biases anew."""
        self.layer.weight.normal_(std=SPREAD)
        self.layer.bias.fill_(self.of_classes.bias)
        if self.objectness:
            self.layer.bias[-1:].zero_()

    def forward(self, x: Tensor) -> Tensor:
        """[N, L] logits, in float32 also under autocast."""
        logits: Tensor = self.layer(x)
        return logits

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        """Scalar.

        label: [N] int64: 0 to K - 1, K for background, -1 for padding rows
        count: scalar, the number of samples to divide by: this process's, or the mean over several
        seed:  [B] of the images, which have N / B consecutive rows each; the only source of
               randomness

        A loss over groups of images divides by each group's samples instead, and so does its
        objectness loss.
        """
        logits = widened(logits)
        count = count.clamp(min=1)
        loss = self.of_classes.loss(logits[:, : self.of_classes.outputs], label, count, seed)
        if self.objectness:
            groups = self.of_classes.groups(len(seed))
            if self.of_classes.group_images:
                count = groups * group_counts(label, groups)
            logit, label = in_groups(logits[:, -1], groups), in_groups(label, groups)
            loss = loss + objectness_loss(logit, label, self.classes, count)
        return loss

    def scores(self, logits: Tensor) -> Tensor:
        """[N, K] in [0, 1]; multiplied by objectness, if predicted."""
        logits = widened(logits)
        scores = self.of_classes.scores(logits[:, : self.of_classes.outputs])
        return scores * torch.sigmoid(logits[:, -1:]) if self.objectness else scores


def build_classifier(
    config: config.Classifier, features: int, frequencies: Frequencies
) -> Classifier:
    """The classifier of a config, for D features and as many classes as there are frequencies."""
    loss = _build_loss(config, frequencies)
    outputs = loss.outputs + (config.objectness or loss.needs_objectness)
    if config.temperature < 0:
        raise InputError(
            f"classifier.temperature is {config.temperature}, expected a number above 0, or 0 for "
            "the paper's"
        )
    layer = (
        NormalizedLinear(features, outputs, config.temperature or loss.temperature)
        if config.normalized
        else Linear(features, outputs)
    )
    return Classifier(layer, frequencies.classes, loss)


def _build_loss(config: config.Classifier, frequencies: Frequencies) -> ClassLoss:
    images = _to_tensor(frequencies.image_count)
    if config.loss == "softmax":
        return Softmax(frequencies.classes)
    if config.loss == "sigmoid":
        return Sigmoid(frequencies.classes)
    if config.loss == "equalization":
        return Equalization(images.double() / max(frequencies.images, 1) < config.rarer_than)
    if config.loss == "federated":
        if config.sampled_classes < 1:
            raise InputError(
                f"classifier.sampled_classes is {config.sampled_classes}, expected 1 or more"
            )
        return Federated(images, config.sampled_classes, config.group_images)
    if config.loss == "balanced_groups":
        if not 0 <= config.others_ratio < float("inf"):
            raise InputError(
                f"classifier.others_ratio is {config.others_ratio}, expected 0 or more"
            )
        instances = _to_tensor(frequencies.instance_count)
        return BalancedGroups(instances, config.others_ratio, config.group_images)
    raise InputError(f'classifier.loss is "{config.loss}", expected one of {", ".join(LOSSES)}')


def _to_tensor(counts: NDArray[np.int64]) -> Tensor:
    """A tensor with a copy: the array may be read-only, or a view with a negative stride."""
    return torch.from_numpy(np.array(counts, dtype=np.int64, order="C"))
