"""Classifier retraining: the second phase of training, of the classifier alone (the paper,
appendix on samplers and retraining)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from lvdet.training.configuration.config import Config
from lvdet.training.records.checkpoint import (
    describe,
    find_checkpoint,
    put_weights,
    require_same_network,
)
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.records.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lvdet.training.model.detector import Detector


def begin_retraining(detector: Detector, config: Config, vocabulary: Vocabulary) -> None:
    """Loads a detector with the weights of the first phase, initialises its classifier anew, and
    trains only that. The classifier may differ from the first phase's."""
    file = find_checkpoint(Path(config.retrain.checkpoint))
    described = describe(file)
    described.vocabulary.require_classes_of(vocabulary, file)
    require_same_network(described.config, config, file)
    mine = classifier_names(detector)
    tensors = {name: t for name, t in read_tensors(file)[0].items() if not name.startswith(mine)}
    state = detector.state_dict()
    put_weights(
        detector, {**{n: t for n, t in state.items() if n.startswith(mine)}, **tensors}, file
    )
    for classifier in detector.classifiers:
        classifier.reset()
    train_only_classifiers(detector)


def train_only_classifiers(detector: Detector) -> None:
    """Freezes everything except the classifiers."""
    detector.requires_grad_(False)
    for classifier in detector.classifiers:
        classifier.requires_grad_(True)


def classifier_names(detector: Detector) -> tuple[str, ...]:
    """The prefixes of the classifiers' weights."""
    classifiers = {id(classifier) for classifier in detector.classifiers}
    return tuple(f"{n}." for n, module in detector.named_modules() if id(module) in classifiers)


def fix_statistics(model: nn.Module) -> None:
    """Freezes the statistics of batch normalisation; call it after each `model.train()`."""
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.eval()
