"""Repairs detections with another box format or other class ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lvdet.errors import InputError
from lvdet.files.box_formats import from_format, normalized, require_box_format
from lvdet.files.known_images import KnownImages
from lvdet.files.opening import read_small
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.values import numbers


@dataclass(frozen=True, eq=False)
class Repair:
    """The box format, the annotations with the image sizes, and replacements of class ids."""

    box_format: str
    images: KnownImages
    ids: Mapping[int, int]

    @staticmethod
    def of(box_format: str, images: KnownImages, ids: Mapping[int, int]) -> Repair:
        """Raises for repairs that cannot be made."""
        require_box_format(box_format)
        if normalized(box_format) and images.gt is None:
            raise InputError(f"box format {box_format} needs the image sizes: pass --images GT")
        return Repair(box_format, images, ids)

    def applied(self, table: Detections) -> Detections:
        """The table with boxes as x, y, width, height in pixels and with the new class ids."""
        if self.ids:
            new = [self.ids.get(old, old) for old in table.category_ids.tolist()]
            ids, place = encode_ids(np.array(new, dtype=np.int64), "category_id", table.source)
            category = place[table.category] if len(place) else table.category
            table = replace(table, category=category, category_ids=ids)
        if self.box_format == "xywh":
            return table
        size = None
        if normalized(self.box_format):
            size = self.images.sizes(table.image_ids, table.source)[table.image]
        box = from_format(self.box_format, table.box, size)
        wrong = np.flatnonzero((box[:, 2:] < 0).any(axis=1))
        if len(wrong):
            raise InputError(
                f"{table.named(int(wrong[0]))}: bbox {numbers(table.box[wrong[0]])} is not "
                f"{self.box_format}"
            )
        return replace(table, box=box)


def read_category_map(path: Path) -> dict[int, int]:
    """Reads replacements of class ids from a JSON object."""
    try:
        content = json.loads(read_small(path).decode())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f'{path}: expected an object of class ids, such as {{"0": 1, "1": 2}}')
    ids = {}
    for old, new in content.items():
        if isinstance(new, bool) or not isinstance(new, int) or not old.lstrip("-").isdecimal():
            raise InputError(f"{path}: {old!r} is mapped to {new!r}, expected integers")
        ids[int(old)] = new
    return ids
