"""Detections whose boxes or class ids are written in another way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lvdet.errors import InputError
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.box_formats import from_format, normalized, require_box_format
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import image_rows
from lvdet.tables.values import numbers


@dataclass(frozen=True, eq=False)
class Repair:
    """How boxes are written, the annotations that know the images' sizes, and other class ids."""

    box_format: str
    gt: GroundTruth | None
    ids: Mapping[int, int]

    @staticmethod
    def of(
        box_format: str,
        images: GroundTruth | str | os.PathLike[str] | None,
        ids: Mapping[int, int],
    ) -> Repair:
        """Reads the annotations where they are needed."""
        require_box_format(box_format)
        if not normalized(box_format):
            return Repair(box_format, None, ids)
        if images is None:
            raise InputError(
                f"box format {box_format} needs the sizes of the images: pass --images GT"
            )
        gt = images if isinstance(images, GroundTruth) else read_ground_truth(images, masks=False)
        return Repair(box_format, gt, ids)

    def applied(self, table: Detections) -> Detections:
        """The table with boxes as x, y, width, height in pixels, and with the new ids."""
        if self.ids:
            new = [self.ids.get(old, old) for old in table.category_ids.tolist()]
            ids, place = encode_ids(np.array(new, dtype=np.int64), "category_id", table.source)
            category = place[table.category] if len(place) else table.category
            table = replace(table, category=category, category_ids=ids)
        if self.box_format == "xywh":
            return table
        size = None if self.gt is None else self._sizes(table, self.gt)
        box = from_format(self.box_format, table.box, size)
        wrong = np.flatnonzero((box[:, 2:] < 0).any(axis=1))
        if len(wrong):
            raise InputError(
                f"{table.named(int(wrong[0]))}: bbox {numbers(table.box[wrong[0]])} is not "
                f"{self.box_format}"
            )
        return replace(table, box=box)

    @staticmethod
    def _sizes(
        table: Detections, gt: GroundTruth
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """[N, 2] width and height of the image of each row."""
        rows = image_rows(gt, table)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            raise InputError(
                f"{table.source}: image_id {table.image_ids[unknown[0]]} is not in {gt.source}"
            )
        size = np.stack([gt.images.width[rows], gt.images.height[rows]], axis=1)
        return size.astype(np.float64)[table.image]


def read_category_map(path: Path) -> dict[int, int]:
    """Class ids by the ids that stand for them, from a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
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
