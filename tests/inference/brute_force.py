"""Prediction with everything in memory: plain sorting, torchvision's NMS a class, masks pasted into
whole images by `grid_sample`, and pycocotools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from pycocotools import mask as coco
from torch import Tensor

from lvdet.training.data.prediction import prediction_batches
from lvdet.training.records.checkpoint import LoadedModel
from oracles.cases import decoded

Json = dict[str, Any]


def brute_force(
    model: LoadedModel,
    images: Sequence[tuple[int, Path]],
    *,
    dets_per_class: int,
    dets_per_image: int = 0,
    score: float,
    nms: float,
    batch: int = 1,
    masks: bool = True,
) -> list[Json]:
    """The best detections of each class and of each image; "chance" is the pasted mask before it is
    cut at 0.5. In an image the box of the earlier row counts, then the earlier class."""
    found: list[Json] = []
    batches: list[Any] = []
    for given in prediction_batches(images, model.config.input, batch, 0):
        with torch.inference_mode():
            features = model.detector.features(given.batch)
            candidates = model.detector.candidates(features, given.batch)
        scores = candidates.score
        box = candidates.boxes(torch.arange(scores.numel())).view(*scores.shape, 4)
        for row, label in np.ndindex(len(scores), scores.shape[2]):
            height, width = given.original_size[row].tolist()
            down, across = given.batch.size[row].tolist()
            above = (scores[row, :, label] > score).nonzero().squeeze(1)
            corners = box[row, above, label]
            above = above[(corners[:, 2] > corners[:, 0]) & (corners[:, 3] > corners[:, 1])]
            some = box[row, above, label], scores[row, above, label]
            for place in above[torchvision.ops.nms(*some, nms)].tolist():
                stretch = np.array([width / across, height / down] * 2)
                corners = box[row, place, label].double().numpy() * stretch
                corners = corners.clip(0, [width, height, width, height])
                record = {
                    "image_id": given.ids[row],
                    "category_id": int(model.category_ids[label]),
                    "corners": corners,
                    "score": float(scores[row, place, label]),
                    "tie": (len(batches), row, place, label),
                }
                if masks:
                    again = torch.tensor(corners / stretch).float()
                    record["mask"] = features, given.batch, row, again, label, height, width
                found.append(record)
        batches.append(given)
    best = {record["tie"]: record for record in _best(found, "category_id", dets_per_class)}
    best |= {record["tie"]: record for record in _best(found, "image_id", dets_per_image)}
    best = list(best.values())
    for record in best if masks else []:
        features, pixels, row, box, label, height, width = record["mask"]
        with torch.inference_mode():
            (chance,) = model.detector.masks(
                features, pixels, torch.tensor([row]), box[None], torch.tensor([label])
            )
        record["chance"] = pasted(chance, record["corners"], height, width)
    return best


def _best(found: Sequence[Json], name: str, number: int) -> list[Json]:
    """The best of each class, or of each image."""
    of: dict[int, list[Json]] = {}
    for record in sorted(found, key=lambda record: (-record["score"], record["tie"])):
        of.setdefault(record[name], []).append(record)
    return [record for records in of.values() for record in records[:number]]


def pasted(chance: Tensor, corners: Any, height: int, width: int) -> Tensor:
    """[height, width] the bilinear value of the map at each pixel's centre, 0 outside it."""
    x1, y1, x2, y2 = (float(value) for value in corners)
    x = (torch.arange(width).double() + 0.5 - x1) / (x2 - x1) * 2 - 1
    y = (torch.arange(height).double() + 0.5 - y1) / (y2 - y1) * 2 - 1
    grid = torch.stack([x[None, :].expand(height, width), y[:, None].expand(height, width)], dim=-1)
    return torch.nn.functional.grid_sample(
        chance.double()[None, None], grid[None], padding_mode="zeros", align_corners=False
    )[0, 0]


def assert_same(found: list[Json], expected: list[Json], *, masks: bool = True) -> None:
    """The same detections, in any order; pixels may differ where the map is 0.5 but for
    rounding."""
    assert len(found) == len(expected)
    order = sorted(found, key=lambda row: _key(row, row["bbox"]))
    wanted = sorted(expected, key=lambda row: _key(row, _sizes(row["corners"])))
    for row, other in zip(order, wanted, strict=True):
        assert row["image_id"] == other["image_id"]
        assert row["category_id"] == other["category_id"]
        assert row["score"] == other["score"]
        np.testing.assert_allclose(row["bbox"], _sizes(other["corners"]), atol=1e-9)
        assert ("segmentation" in row) == masks
        if masks:
            assert_mask(row["segmentation"], other["chance"])


def assert_mask(segmentation: Json, chance: Tensor) -> None:
    assert segmentation["size"] == list(chance.shape)
    pixels = decoded(segmentation).astype(bool)
    # The text is what pycocotools makes of these pixels.
    assert coco.encode(np.asfortranarray(pixels))["counts"].decode() == segmentation["counts"]
    wrong = pixels != (chance >= 0.5).numpy()
    assert np.abs(chance.numpy()[wrong] - 0.5).max(initial=0) < 1e-5


def _sizes(corners: Any) -> list[float]:
    x1, y1, x2, y2 = (float(value) for value in corners)
    return [x1, y1, x2 - x1, y2 - y1]


def _key(row: Json, box: Sequence[float]) -> Any:
    return row["image_id"], row["category_id"], -row["score"], [round(value, 6) for value in box]


def records_of(path: Path) -> list[Json]:
    """What a file of results holds."""
    text = path.read_text()
    if path.suffix == ".json":
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines()]
