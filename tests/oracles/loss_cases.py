"""Classifiers with features and labels, and what their losses and scores should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lvdet.training.configuration import config
from lvdet.training.losses.balanced_groups import choose_samples
from lvdet.training.losses.federated import draw_classes
from lvdet.training.model.classifier import Classifier, Frequencies, build_classifier
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
LABEL = (0, 7, 1, -1, 3, 7, 1, 6, 7, 7, -1, 2)


@dataclass(frozen=True)
class Case:
    """A classifier in float64 and what it is given."""

    settings: config.Classifier
    classifier: Classifier
    x: Tensor
    label: Tensor
    count: float
    seed: int

    def loss(self) -> Tensor:
        """By lvdet; what is random depends on the case's seed alone."""
        torch.manual_seed(self.seed)
        logits = self.classifier(self.x)
        return self.classifier.loss(logits, self.label, torch.tensor(self.count))

    def expected_logits(self, x: Floats, weight: Floats, bias: Floats) -> Floats:
        temperature = self.settings.temperature or TEMPERATURE[self.settings.loss]
        return reference.linear(x, weight, bias, temperature if self.settings.normalized else None)

    def expected_loss(self) -> Callable[[Floats], float]:
        """The formula as a function of logits, with what this case draws."""
        name, label = self.settings.loss, self.label.tolist()
        classes, count = FREQUENCIES.classes, max(self.count, 1.0)
        fraction = FREQUENCIES.image_count / FREQUENCIES.images
        groups = reference.groups_of(FREQUENCIES.instance_count.tolist())
        drawn, rows = self.drawn_classes(), self.drawn_rows()

        def of_classes(z: Floats) -> float:
            if name == "softmax":
                return reference.softmax_loss(z[:, : classes + 1], label, count)
            if name == "balanced_groups":
                return reference.balanced_groups_loss(z, label, groups, rows)
            z = z[:, :classes]
            if name == "equalization":
                rarer_than = self.settings.rarer_than
                return reference.equalization_loss(z, label, count, fraction, rarer_than)
            if name == "federated":
                return reference.federated_loss(z, label, count, drawn)
            return reference.sigmoid_loss(z, label, count)

        if not (self.settings.objectness or name == "balanced_groups"):
            return of_classes
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

    def drawn_classes(self) -> set[int]:
        """S of the federated loss."""
        present = [c in self.label.tolist() for c in range(FREQUENCIES.classes)]
        weight = np.sqrt(FREQUENCIES.image_count).astype(np.float32)
        torch.manual_seed(self.seed)
        drawn = draw_classes(
            torch.tensor(present), torch.from_numpy(weight), self.settings.sampled_classes
        )
        return set(np.flatnonzero(drawn.numpy()).tolist())

    def drawn_rows(self) -> list[set[int]]:
        """The rows that each of the balanced groups takes."""
        label = self.label.tolist()
        groups = reference.groups_of(FREQUENCIES.instance_count.tolist())
        own = [[y in group for y in label] for group in groups]
        torch.manual_seed(self.seed)
        chosen = choose_samples(
            torch.tensor(own), torch.tensor([y != -1 for y in label]), self.settings.others_ratio
        )
        return [set(np.flatnonzero(rows).tolist()) for rows in chosen.numpy()]


def made_case(
    loss: str,
    *,
    objectness: bool = False,
    normalized: bool = False,
    label: Sequence[int] = LABEL,
    features: int = 4,
    count: float = 9.0,
    seed: int = 0,
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
    return Case(settings, classifier, x, label_rows, count, seed)
