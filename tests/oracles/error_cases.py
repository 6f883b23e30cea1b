"""Seeded small files full of every kind of error, without ties.

Where two objects or two scores are equal, tidecv and lvdet choose differently (the first of them,
and the last), so coordinates and scores are drawn from a continuum. Overlaps of exactly the two
limits, a half and a tenth, are drawn on purpose.
"""

from __future__ import annotations

import random
from typing import Any

import pycocotools.mask as coco_mask

Json = dict[str, Any]
Box = list[float]

SIDE = 200


def error_case(
    seed: int, *, federated: bool, masks: bool = False, levels: int = 1 << 20
) -> tuple[Json, list[Json]]:
    """An annotation file and a results list; in LVIS's form with lists where federated. With few
    `levels`, scores do tie."""
    rng = random.Random(f"errors {seed} {federated} {masks}")
    classes = rng.sample(range(1, 40), rng.randint(1, 5))
    images: list[Json] = []
    annotations: list[Json] = []
    results: list[Json] = []
    for image_id in rng.sample(range(1, 1000), rng.randint(1, 6)):
        image: Json = {"id": image_id, "height": SIDE, "width": SIDE}
        if federated:
            image["neg_category_ids"] = _some(rng, classes, 0.5)
            image["not_exhaustive_category_ids"] = _some(rng, classes, 0.25)
        images.append(image)
        objects = [_object(rng, image_id, rng.choice(classes)) for _ in range(rng.randint(0, 6))]
        annotations += objects
        for _ in range(rng.randint(0, 14)):
            target = rng.choice(objects) if objects and rng.random() < 0.85 else None
            results.append(_detection(rng, image_id, classes, target))
    rng.shuffle(annotations)
    rng.shuffle(results)
    if not results:
        results.append(_detection(rng, images[0]["id"], classes, None))
    for number, row in enumerate(annotations, start=1):
        row["id"] = number
    enough = levels > len(results)
    scores = (rng.sample if enough else rng.choices)(range(levels), k=len(results))
    for row, score in zip(results, scores, strict=True):
        row["score"] = score / levels
    if masks:
        for row in (*annotations, *results):
            row["segmentation"] = _mask(row["bbox"])
    categories: list[Json] = [{"id": number, "name": f"class {number}"} for number in classes]
    if federated:
        for category in categories:
            category["frequency"] = rng.choice("rcf")
    return {"images": images, "categories": categories, "annotations": annotations}, results


def _some(rng: random.Random, classes: list[int], share: float) -> list[int]:
    return [number for number in classes if rng.random() < share]


def _object(rng: random.Random, image_id: int, category_id: int) -> Json:
    # Whole widths of 20 n, so that a half and a tenth of them are exact.
    box = [rng.uniform(0, 100), rng.uniform(0, 100), 20.0 * rng.randint(1, 4), rng.uniform(20, 90)]
    area = box[2] * box[3]
    return {"image_id": image_id, "category_id": category_id, "bbox": box, "area": area}


def _detection(rng: random.Random, image_id: int, classes: list[int], target: Json | None) -> Json:
    if target is None:
        box = [rng.uniform(0, 120), rng.uniform(0, 120), rng.uniform(5, 70), rng.uniform(5, 70)]
        category_id = rng.choice(classes)
    else:
        box = _near(rng, target["bbox"])
        category_id = target["category_id"] if rng.random() < 0.7 else rng.choice(classes)
    return {"image_id": image_id, "category_id": category_id, "bbox": box}


def _near(rng: random.Random, box: Box) -> Box:
    x, y, w, h = box
    kind = rng.random()
    if kind < 0.15:
        return [x, y, w / 2, h]
    if kind < 0.25:
        return [x, y, w / 10, h]
    noise = rng.choice([0.03, 0.1, 0.3, 0.6])
    return [
        x + rng.gauss(0, noise) * w,
        y + rng.gauss(0, noise) * h,
        w * (1 + noise * rng.uniform(-0.8, 0.8)),
        h * (1 + noise * rng.uniform(-0.8, 0.8)),
    ]


def _mask(box: Box) -> Json:
    """An octagon in the box, which has no symmetry that pixels would turn into ties."""
    x, y, w, h = box
    corners = [(0, 0.2), (0.1, 1), (0.6, 0.9), (0.9, 1), (1, 0.7), (0.95, 0.1), (0.5, 0), (0.2, 0)]
    polygon = [value for u, v in corners for value in (x + u * w, y + v * h)]
    rle = coco_mask.merge(coco_mask.frPyObjects([polygon], SIDE, SIDE))
    return {"size": rle["size"], "counts": rle["counts"].decode()}
