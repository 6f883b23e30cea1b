"""The detector at the start of a run: new, from other weights, or from its own last checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from lvdet.training.configuration.config import Config
from lvdet.training.loop.processes import Process, with_shared_statistics
from lvdet.training.loop.retraining import begin_retraining
from lvdet.training.records.checkpoint import (
    Described,
    describe,
    find_checkpoint,
    put_weights,
    require_same_network,
)
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.records.vocabulary import Vocabulary
from lvdet.training.weights.body_weights import body_weights
from lvdet.training.weights.weight_file import read_weight_file

if TYPE_CHECKING:
    from lvdet.training.model.detector import Detector


@dataclass(frozen=True)
class StartingPoint:
    """A detector on its device, and the number of steps it has been trained for."""

    detector: Detector
    step: int


def begin_model(
    config: Config, vocabulary: Vocabulary, checkpoint: Path | None, process: Process
) -> StartingPoint:
    """Builds the detector of a config with its initial weights.

    checkpoint: of this run, to resume from. Parts that the run does not train stay untrained.
    """
    from lvdet.training.model.build import build_detector

    own = checkpoint is not None or config.retrain.checkpoint or is_own(config.model.weights)
    detector = build_detector(config, vocabulary.frequencies, pretrained=not own)
    step = 0
    if checkpoint is not None:
        step = _take(detector, checkpoint / "model.safetensors").step
    elif config.retrain.checkpoint:
        begin_retraining(detector, config, vocabulary)
    elif is_own(config.model.weights):
        file = find_checkpoint(Path(config.model.weights))
        described = describe(file)
        described.vocabulary.require_classes_of(vocabulary, file)
        require_same_network(described.config, config, file)
        _take(detector, file)
        if described.config.retrain.checkpoint:  # only the classifier was trained
            detector.requires_grad_(True)
    detector = cast("Detector", with_shared_statistics(detector, process))
    if config.run.channels_last:
        detector = detector.to(memory_format=torch.channels_last)
    return StartingPoint(detector.to(process.device), step)


def settled(config: Config) -> Config:
    """The config, with settings of the network that it leaves open taken from its weights."""
    weights = config.retrain.checkpoint or config.model.weights
    if config.model.stride_in or weights in ("imagenet", "none"):
        return config
    if config.retrain.checkpoint or is_own(weights):
        stride_in = describe(find_checkpoint(Path(weights))).config.model.stride_in
    else:
        stride_in = body_weights(read_weight_file(Path(weights))).stride_in
    if stride_in != "1x1":
        return config
    return replace(config, model=replace(config.model, stride_in=stride_in))


def is_own(weights: str) -> bool:
    """Whether weights belong to a whole lvdet detector rather than a backbone."""
    path = Path(weights)
    return weights not in ("imagenet", "none") and (path.suffix == ".safetensors" or path.is_dir())


def _take(detector: Detector, file: Path) -> Described:
    """Loads weights, and freezes the parts that the file's run did not train."""
    described = describe(file)
    put_weights(detector, read_tensors(file)[0], file)
    for name, parameter in detector.named_parameters():
        parameter.requires_grad_(name not in described.fixed)
    return described
