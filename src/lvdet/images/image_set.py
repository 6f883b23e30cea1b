"""A long-tail set of images with exact masks, in the format of LVIS v1, for training and testing.

    make_image_set("images", Settings(images=1000, classes=100), workers=4)

The set depends on its settings alone, not on the number of processes that make it.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.files.progress import Progress, track
from lvdet.images import tail
from lvdet.images.class_names import COMBINATIONS, draw_vocabulary
from lvdet.images.drawing_processes import in_order
from lvdet.images.image_batch import Batch, Described, make_batch
from lvdet.images.scene import World
from lvdet.images.set_files import PARTS, claim_folder, write_annotations, write_config
from lvdet.images.things import Ints

_BATCH = 25
_GROUPS = {"frequent": "f", "common": "c", "rare": "r"}


@dataclass(frozen=True)
class Settings:
    """The settings of an image set.

    images, val_images: of the two parts; no `val_images`: a fifth of the training images
    classes: from 2 to `COMBINATIONS`
    size:    pixels of the longer side
    objects: labelled objects per image, on average
    classes_per_image: labelled classes per image, on average, each of which then has more objects;
        None: `objects` / 1.3. LVIS has 3.5
    rarest: training images of the rarest class, about; None: one or two
    """

    images: int = 10_000
    val_images: int | None = None
    classes: int = 1203
    size: int = 320
    objects: float = 12.0
    seed: int = 0
    classes_per_image: float | None = None
    rarest: float | None = None

    @property
    def validation(self) -> int:
        """The number of validation images."""
        return max(self.images // 5, 1) if self.val_images is None else self.val_images

    @property
    def positive(self) -> float:
        """The mean number of labelled classes per image."""
        return self.classes_per_image or self.objects / tail.INSTANCES

    def to_dict(self) -> dict[str, Any]:
        """The values written beside the set; unset options are omitted."""
        late = ("classes_per_image", "rarest")
        return {k: v for k, v in asdict(self).items() if not (k in late and v is None)}

    def check(self) -> None:
        """Raises an `InputError` for settings that no set can satisfy."""
        _within("images", self.images, 1, 10_000_000)
        _within("val-images", self.validation, 1, 10_000_000)
        _within("classes", self.classes, 2, COMBINATIONS)
        _within("size", self.size, 64, 4096)
        most = min(200, self.size**2 // 300)
        _within("objects", self.objects, 1, most, f" for images of {self.size} pixels")
        _within("seed", self.seed, 0, 2**63 - 1)
        if self.classes_per_image is not None:
            _within("classes-per-image", self.classes_per_image, 1, self.objects)
        if self.rarest is not None:
            _within("rarest", self.rarest, 1, self.images)
        room = int(self.images * self.positive)
        if room < self.classes:
            kind = "objects" if self.classes_per_image is None else "classes"
            number = self.objects if self.classes_per_image is None else self.classes_per_image
            raise InputError(
                f"{self.images:,} images of {number:g} {kind} have room for only {room:,} "
                f"classes, not {self.classes:,}: pass more --images or fewer --classes"
            )


@dataclass
class PartCounts:
    """The contents of one part of a set: [K] images and objects of each class, as annotated."""

    images: int
    image_count: Ints
    instance_count: Ints
    image_records: list[str] = field(default_factory=list, repr=False)
    annotation_records: list[str] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Summary:
    """The finished set; `frequency` [K] is r, c or f by training images."""

    folder: Path
    frequency: list[str]
    train: PartCounts
    val: PartCounts

    def to_dict(self) -> dict[str, Any]:
        """Counts by part and group of classes."""
        letters = np.array(self.frequency)
        parts = {
            name: {
                "images": part.images,
                "objects": int(part.instance_count.sum()),
                "classes": {
                    group: int(np.count_nonzero((letters == letter) & (part.image_count > 0)))
                    for group, letter in _GROUPS.items()
                },
            }
            for name, part in zip(PARTS, (self.train, self.val), strict=True)
        }
        return {"folder": str(self.folder), "classes": len(letters), **parts}


def make_image_set(
    folder: str | os.PathLike[str],
    settings: Settings,
    *,
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Summary:
    """Makes the set: folders train and val of pictures, then annotations and a config to train.

    A set that is not finished has no annotations. With `overwrite` an earlier set is replaced.
    """
    settings.check()
    _within("workers", workers, 1, 1024)
    target = Path(folder)
    claim_folder(target, settings.to_dict(), overwrite=overwrite)
    world, plans = _plan(settings)
    batches = [
        batch
        for part, (offsets, classes) in enumerate(plans)
        for batch in _batches(target, settings, part, offsets, classes)
    ]
    train, val = (
        PartCounts(number, *np.zeros((2, settings.classes), dtype=np.int64))
        for number in (settings.images, settings.validation)
    )
    done, total = 0, settings.images + settings.validation
    with (
        track(progress, "making images", "images") as update,
        closing(in_order(partial(make_batch, world), batches, workers)) as results,
    ):
        for batch, described in zip(batches, results, strict=True):
            for record in described:
                _add((train, val)[batch.part], record)
            done += len(described)
            if update is not None:
                update(done, total)
    frequency = tail.frequency_letters(train.image_count)
    _write_set(target, settings, world, train, val, frequency)
    return Summary(target, frequency, train, val)


def _batches(
    folder: Path, settings: Settings, part: int, offsets: Ints, classes: Ints
) -> list[Batch]:
    """The images of a part, in batches."""
    positive = np.split(classes, offsets[1:-1])
    first_id = 1 + part * settings.images
    return [
        Batch(
            folder / PARTS[part],
            settings.seed,
            part,
            first,
            first_id + first,
            positive[first : first + _BATCH],
        )
        for first in range(0, len(positive), _BATCH)
    ]


def _plan(settings: Settings) -> tuple[World, list[tuple[Ints, Ints]]]:
    """The world, and the classes shown in each image of each part."""
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(0,)))
    vocabulary = draw_vocabulary(rng, settings.classes)
    cells = settings.images * settings.positive
    by_rank = tail.expected_images(settings.classes, settings.images, cells, settings.rarest)
    expected = by_rank[rng.permutation(settings.classes)]
    train = tail.training_counts(rng, expected, settings.images)
    val = tail.validation_counts(
        rng,
        expected,
        settings.images,
        settings.validation,
        cells * settings.validation / settings.images,
    )
    instances = max(settings.images * settings.objects / float(train.sum()), 1.0)
    share = np.cumsum(expected) / expected.sum()
    share[-1] = 1.0
    world = World(vocabulary, share, settings.size, settings.objects, instances)
    return world, [
        tail.scatter(rng, train, settings.images),
        tail.scatter(rng, val, settings.validation),
    ]


def _add(part: PartCounts, described: Described) -> None:
    rows = np.array([one["category_id"] for one in described.annotations], dtype=np.int64) - 1
    part.image_count[np.unique(rows)] += 1
    np.add.at(part.instance_count, rows, 1)
    part.image_records.append(json.dumps(described.image))
    for record in described.annotations:
        number = len(part.annotation_records) + 1
        part.annotation_records.append(json.dumps({"id": number, **record}))


def _write_set(
    folder: Path,
    settings: Settings,
    world: World,
    train: PartCounts,
    val: PartCounts,
    frequency: list[str],
) -> None:
    categories = [
        {
            "id": row + 1,
            "name": name,
            "synset": f"{name.replace(' ', '_')}.n.01",
            "synonyms": [name],
            "def": f"a thing that is a {name}",
            "frequency": frequency[row],
            "image_count": int(train.image_count[row]),
            "instance_count": int(train.instance_count[row]),
        }
        for row, name in enumerate(world.vocabulary.names())
    ]
    write_config(folder / "config.toml", settings.images, settings.size)
    for name, part in zip(PARTS, (train, val), strict=True):
        write_annotations(
            folder / "annotations" / f"{name}.json",
            part.image_records,
            part.annotation_records,
            categories,
        )


def _within(name: str, value: float, least: float, most: float, where: str = "") -> None:
    if not least <= value <= most:
        raise InputError(f"--{name} is {value:,}, expected {least:,} to {most:,}{where}")
