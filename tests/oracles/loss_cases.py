"""Classifiers with features and labels, and what their losses and scores should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lvdet.training.configuration import config
from lvdet.training.model.classifier import Classifier, Frequencies, build_classifier
from lvdet.training.model.draws import CLASSES, uniform
from oracles import loss_references as reference
from oracles.loss_references import Floats

torch.set_num_threads(1)

LOSSES = ("softmax", "sigmoid", "equalization", "federated", "balanced_groups")
RANDOM = ("federated", "balanced_groups")
TEMPERATURE = {"softmax": 20, "balanced_groups": 20} | dict.fromkeys(
    ("sigmoid", "equalization", "federated"), 50
)

#: Seven classes over all four groups; two are in less than 1/100 of the images, one in none.
FREQUENCIES = Frequencies(
    images=2000,
    image_count=np.array([900, 3, 60, 500, 0, 20, 19], dtype=np.int64),
    instance_count=np.array([5000, 9, 100, 999, 0, 1000, 99], dtype=np.int64),
)
SETTINGS = config.Classifier(rarer_than=0.01, sampled_classes=5, others_ratio=1.5)
#: Three rows of each of four images; two images have 4 samples, the others 6.
LABEL = (0, 7, 1, -1, 3, -1, 1, 6, 7, 7, 7, 2)


@dataclass(frozen=True)
class Case:
    """A classifier in float64 and what it is given; the rows belong to `images` images."""

    settings: config.Classifier
    classifier: Classifier
    x: Tensor
    label: Tensor
    count: float
    seed: int
    images: int

    @property
    def seeds(self) -> Tensor:
        """[B] of the images."""
        return torch.arange(self.images) * 7919 + self.seed

    def loss(self) -> Tensor:
        """By lvdet."""
        return self.loss_of(self.classifier(self.x))

    def loss_of(self, logits: Tensor) -> Tensor:
        return self.classifier.loss(logits, self.label, torch.tensor(self.count), self.seeds)

    def expected_logits(self, x: Floats, weight: Floats, bias: Floats) -> Floats:
        temperature = self.settings.temperature or TEMPERATURE[self.settings.loss]
        return reference.linear(x, weight, bias, temperature if self.settings.normalized else None)

    def expected_loss(self) -> Callable[[Floats], float]:
        """The formula as a function of logits, with what this case draws."""
        name, label = self.settings.loss, self.label.tolist()
        classes, count = FREQUENCIES.classes, max(self.count, 1.0)
        fraction = FREQUENCIES.image_count / FREQUENCIES.images
        groups = reference.groups_of(FREQUENCIES.instance_count.tolist())
        images = self.images // self.settings.group_images
        labels = self.parted(label, images)

        def of_classes(z: Floats) -> float:
            if name == "softmax":
                return reference.softmax_loss(z[:, : classes + 1], label, count)
            if name == "balanced_groups":
                ratio = self.settings.others_ratio
                return reference.balanced_groups_loss(
                    self.parted(z, images), labels, groups, ratio, self.random_rows(len(groups))
                )
            z = z[:, :classes]
            if name == "equalization":
                rarer_than = self.settings.rarer_than
                return reference.equalization_loss(z, label, count, fraction, rarer_than)
            if name == "federated":
                return reference.federated_loss(self.parted(z, images), labels, self.drawn(labels))
            return reference.sigmoid_loss(z, label, count)

        if not (self.settings.objectness or name == "balanced_groups"):
            return of_classes
        if name in RANDOM:
            return lambda z: (
                of_classes(z)
                + reference.objectness_by_groups(self.parted(z[:, -1], images), labels, classes)
            )
        return lambda z: of_classes(z) + reference.objectness_loss(z[:, -1], label, classes, count)

    def expected_scores(self, logits: Floats) -> Floats:
        name, classes = self.settings.loss, FREQUENCIES.classes
        if name == "softmax":
            scores = np.array([reference.softmax(z[: classes + 1])[:-1] for z in logits])
        elif name == "balanced_groups":
            groups = reference.groups_of(FREQUENCIES.instance_count.tolist())
            scores = reference.group_scores(logits, groups)
        else:
            scores = np.vectorize(reference.sigmoid)(logits[:, :classes])
        if self.settings.objectness or name == "balanced_groups":
            scores = scores * np.vectorize(reference.sigmoid)(logits[:, -1:])
        return scores

    def parted(self, rows: Any, groups: int) -> list[Any]:
        """Rows of one group of images after the other."""
        size = len(rows) // groups
        return [rows[i * size : (i + 1) * size] for i in range(groups)]

    def drawn(self, labels: list[list[int]]) -> list[set[int]]:
        """S of each group of images; its random numbers come from the sum of its seeds."""
        counts = FREQUENCIES.image_count.tolist()
        chosen = []
        for y, seeds in zip(labels, self.parted(self.seeds, len(labels)), strict=True):
            u = uniform(seeds.sum()[None], len(counts), CLASSES)[0].tolist()
            size = self.settings.sampled_classes
            chosen.append(reference.federated_classes(y, counts, size, u))
        return chosen

    def random_rows(self, bins: int) -> list[list[Floats]]:
        """Of each group of images and bin the random numbers of its rows, image by image."""
        rows = len(self.label) // self.images
        of_image = uniform(self.seeds, rows * bins, CLASSES).view(-1, rows, bins).numpy()
        each = of_image.reshape(-1, self.settings.group_images * rows, bins)
        return [[group[:, number] for number in range(bins)] for group in each]


def made_case(
    loss: str,
    *,
    objectness: bool = False,
    normalized: bool = False,
    label: Sequence[int] = LABEL,
    features: int = 4,
    count: float = 9.0,
    seed: int = 0,
    images: int = 4,
) -> Case:
    """A case whose weights and features are large enough for every term to matter."""
    settings = replace(SETTINGS, loss=loss, objectness=objectness, normalized=normalized)
    torch.manual_seed(seed + 1)
    classifier = build_classifier(settings, features, FREQUENCIES).double()
    with torch.no_grad():
        classifier.layer.weight.normal_()
        classifier.layer.bias.normal_()
    x = torch.randn(len(label), features, dtype=torch.float64, requires_grad=True)
    label_rows = torch.tensor(label, dtype=torch.int64)
    return Case(settings, classifier, x, label_rows, count, seed, images)
