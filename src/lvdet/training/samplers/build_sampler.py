"""Builds the sampler of a config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lvdet.errors import InputError
from lvdet.training.configuration import config
from lvdet.training.samplers.class_aware import ClassAware
from lvdet.training.samplers.repeat_factor import RepeatFactor, repeat_factors
from lvdet.training.samplers.sampler import Sampler
from lvdet.training.samplers.uniform import Uniform

if TYPE_CHECKING:
    from lvdet.training.data.dataset import Dataset


def build_sampler(options: config.Sampler, dataset: Dataset) -> Sampler:
    """A sampler over the images that have objects to train on.

    The frequencies of repeat factor sampling are fractions of those images, as in Detectron2.
    """
    rows = dataset.trainable
    if not len(rows):
        raise InputError(f"{dataset.name}: none of the {len(dataset):,} images has an object")
    if options.name == "uniform":
        return Uniform(rows)
    classes = [dataset.image_classes[row] for row in rows]
    if options.name == "class_aware":
        return ClassAware(rows, classes)
    if options.name == "repeat_factor":
        return RepeatFactor(rows, repeat_factors(classes, len(rows), options.threshold))
    raise InputError(
        f"sampler.name is '{options.name}', expected repeat_factor, uniform or class_aware"
    )
