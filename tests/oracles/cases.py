"""Seeded random evaluation cases: small files that are full of ties and degenerate rows.

A case is what the two files on disk would hold, as plain JSON-able objects. Every case
draws a style first (grid of the coordinates, levels of the scores, which oddities it
has), because ties and oddities interact only where they pile up in the same file.
The reference packages accept every case.
"""

from __future__ import annotations

import copy
import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
from numpy.typing import NDArray

Json = dict[str, Any]
Box = list[float]
Shape = list[list[tuple[float, float]]]
"""Polygons in the unit square; placed in a box they become a segmentation."""

LIMIT_SIDES = [(32, 32), (16, 64), (64, 16), (96, 96), (48, 192), (64, 144)]
"""Sides whose product is exactly 32**2 or 96**2, where two area ranges meet."""

RECTANGLE: Shape = [[(0, 0), (0, 1), (1, 1), (1, 0)]]
TWO_BARS: Shape = [
    [(0, 0), (0, 1), (0.4, 1), (0.4, 0)],
    [(0.6, 0), (0.6, 1), (1, 1), (1, 0)],
]


@dataclass(frozen=True)
class Style:
    """What one case draws from. Shares are probabilities per row, 0 for none."""

    step: float  # grid of the coordinates: 0 is raw floats, 0.01 two decimals, otherwise integers
    levels: int  # scores are multiples of 1 / levels; 0 is continuous
    forms: tuple[str, ...]  # mask forms of the annotations: polygon, rle, counts
    carry_box: bool  # results with masks carry `bbox` as well
    crowd: float
    ignore: float
    flat_annotation: float
    flat_detection: float
    unknown_class: float
    outside: float  # boxes that may leave the image
    dense: bool  # one image, many rows


def lvis_case(seed: int, masks: bool, quirks: bool = True) -> tuple[Json, list[Json]]:
    """An LVIS annotation file and a results list (never empty: lvis fails on that).

    `quirks=False` leaves out what lvdet corrects by default: an annotation id of 0,
    annotations of area 0 and detections of unknown classes.
    """
    rng = random.Random(f"lvis {seed} {masks}")
    return _case(rng, federated=True, masks=masks, quirks=quirks)


def coco_case(seed: int, masks: bool, quirks: bool = True) -> tuple[Json, list[Json]]:
    """A COCO annotation file and a results list, which is empty in a few seeds."""
    rng = random.Random(f"coco {seed} {masks}")
    return _case(rng, federated=False, masks=masks, quirks=quirks)


def without_boxes(results: Sequence[Json]) -> list[Json]:
    """The results without `bbox`: then the references take a detection's area from its mask.

    Both packages use w * h for mask evaluation where the results carry `bbox`, which
    changes the area ranges (and nothing else in these cases).
    """
    return [{key: row[key] for key in row if key != "bbox"} for row in results]


def rename_classes(annotations: Json, results: Sequence[Json], seed: int) -> dict[int, int]:
    """Shuffles the ids of the classes of LVIS files in place; gives the new id of each."""
    ids = [category["id"] for category in annotations["categories"]]
    renamed = dict(zip(ids, random.Random(seed).sample(ids, len(ids)), strict=True))
    for category in annotations["categories"]:
        category["id"] = renamed[category["id"]]
    for row in (*annotations["annotations"], *results):
        row["category_id"] = renamed[row["category_id"]]
    for image in annotations["images"]:
        for name in ("neg_category_ids", "not_exhaustive_category_ids"):
            image[name] = [renamed[value] for value in image[name]]
    return renamed


def decoded(rle: Json) -> NDArray[np.uint8]:
    """The pixels as pycocotools sees them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pycocotools 2.0.11 uses a deprecated NumPy protocol
        return coco_mask.decode(rle)


def runs_of(pixels: NDArray[Any]) -> list[int]:
    """Run lengths, column by column, background first."""
    flat = pixels.ravel(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *edges, flat.size]).tolist()
    return [0, *runs] if flat.size and flat[0] else runs


def polygon_case(rng: random.Random) -> tuple[list[list[float]], int, int]:
    """Polygons of one object with the image's height and width, often degenerate.

    One to three parts of 3 to 12 points: blobs, repeated points, lines, specks smaller
    than a pixel, parts outside the image, coordinates on and between pixel edges.
    """
    height, width = rng.randint(1, 80), rng.randint(1, 80)
    parts = [_polygon(rng, height, width) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return parts, height, width


def _polygon(rng: random.Random, height: int, width: int) -> list[float]:
    kind = rng.choice(["blob", "zigzag", "repeated", "line", "speck", "outside", "rectangle"])
    count = rng.randint(3, 12)
    if kind == "blob":
        points = [(x * width, y * height) for x, y in _blob(rng, count)]
    elif kind == "line":
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        dx, dy = rng.choice([(1, 0), (0, 1), (1, 1), (2, -1), (0, 0)])
        steps = [rng.uniform(-5, 5) for _ in range(count)]
        points = [(x + dx * step, y + dy * step) for step in steps]
    elif kind == "speck":
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        points = [(x + rng.uniform(-1, 1), y + rng.uniform(-1, 1)) for _ in range(count)]
    elif kind == "rectangle":
        x, y, w, h = _box(rng, _style(rng, False, False), width, height)
        points = [(x, y), (x, y + h), (x + w, y + h), (x + w, y)]
    else:
        reach = 1.5 if kind == "outside" else 0.0
        points = [
            (
                rng.uniform(-reach * width, (1 + reach) * width),
                rng.uniform(-reach * height, (1 + reach) * height),
            )
            for _ in range(count)
        ]
        if kind == "repeated":
            points = [rng.choice(points) for _ in range(count)]
    digits = rng.choice([0, 1, 2, 15])
    snap = rng.choice([1.0, 1.0, 0.5])
    return [round(value / snap, digits) * snap for point in points for value in point]


def _case(
    rng: random.Random, *, federated: bool, masks: bool, quirks: bool
) -> tuple[Json, list[Json]]:
    style = _style(rng, masks, quirks)
    classes = rng.sample(range(60), 1 if style.dense else rng.randint(1, 6))
    annotated = rng.sample(classes, rng.randint(1, len(classes)))
    count = 1 if style.dense else rng.randint(1, 8)
    images: list[Json] = []
    annotations: list[Json] = []
    results: list[Json] = []
    for image_id in rng.sample(range(1000), count):
        height, width = _size(rng)
        image: Json = {"id": image_id, "height": height, "width": width}
        if federated:
            image["neg_category_ids"] = _subset(rng, classes, none=0.35)
            image["not_exhaustive_category_ids"] = _subset(rng, classes, none=0.6)
        images.append(image)
        objects = _annotations(rng, style, image, annotated, federated=federated, masks=masks)
        annotations += objects
        results += _detections(rng, style, image, classes, objects, masks=masks)
    if federated and not results:
        results.append(_detection(rng, style, rng.choice(images), classes, None, masks=masks))
    _number_rows(rng, annotations, zero=quirks and rng.random() < 0.3)
    rng.shuffle(annotations)
    rng.shuffle(results)
    content = {
        "images": images,
        "categories": [_category(rng, class_id, federated) for class_id in classes],
        "annotations": annotations,
    }
    for row in annotations:
        for note in ("_box", "_shape", "_between"):
            row.pop(note, None)
    return content, results


def _style(rng: random.Random, masks: bool, quirks: bool) -> Style:
    def sometimes(chance: float, share: float) -> float:
        return share if rng.random() < chance else 0.0

    forms = [("polygon",), ("rle",), ("counts",), ("polygon", "rle", "counts")]
    return Style(
        step=rng.choice([0, 0.01, 1, 1, 10]),
        levels=rng.choice([0, 0, 8, 8, 3]),
        forms=rng.choice(forms),
        carry_box=not masks or rng.random() < 0.5,
        crowd=sometimes(0.6, 0.2),
        ignore=sometimes(0.5, 0.3),
        flat_annotation=sometimes(0.4 * quirks, 0.15),
        flat_detection=sometimes(0.5, 0.1),
        unknown_class=sometimes(0.4 * quirks, 0.15),
        outside=rng.choice([0.0, 0.2, 0.6]),
        dense=rng.random() < 0.1,
    )


def _size(rng: random.Random) -> tuple[int, int]:
    """Height and width of an image, few above 200.

    A diagonal that is an odd multiple of 25 is drawn again: 0.02 of it is a half, which
    faster-coco-eval rounds in float32 and the authors of boundary IoU in float64.
    """
    top = 320 if rng.random() < 0.2 else 200
    while True:
        height, width = rng.randint(20, top), rng.randint(20, top)
        if math.hypot(height, width) % 50 != 25:
            return height, width


def _subset(rng: random.Random, classes: list[int], none: float) -> list[int]:
    """An unsorted choice of the classes, empty with probability `none`."""
    if rng.random() < none:
        return []
    return rng.sample(classes, rng.randint(1, len(classes)))


def _category(rng: random.Random, class_id: int, federated: bool) -> Json:
    category: Json = {"id": class_id, "name": f"class {class_id}"}
    if federated:
        category["frequency"] = rng.choice("rcf")
    return category


def _number_rows(rng: random.Random, annotations: list[Json], zero: bool) -> None:
    """Give the annotations distinct ids with gaps, in no order; id 0 to one of them if asked."""
    for row, number in zip(
        annotations, rng.sample(range(1, 100_000), len(annotations)), strict=True
    ):
        row["id"] = number
    if zero and annotations:
        rng.choice(annotations)["id"] = 0


def _annotations(
    rng: random.Random,
    style: Style,
    image: Json,
    classes: list[int],
    *,
    federated: bool,
    masks: bool,
) -> list[Json]:
    count = rng.randint(6, 12) if style.dense else min(12, int(rng.expovariate(0.25)))
    rows: list[Json] = []
    for _ in range(count):
        if rows and rng.random() < 0.25:
            row = _twin(rng, image, rng.choice(rows))
        else:
            box = _box(rng, style, image["width"], image["height"])
            flat = rng.random() < style.flat_annotation
            if flat and rng.random() < 0.5:
                box[rng.choice([2, 3])] = 0
            row = {"image_id": image["id"], "category_id": rng.choice(classes), "bbox": box}
            row["_box"], row["_shape"] = box, _shape(rng) if masks else None
            area: float = box[2] * box[3]
            if masks:
                row["segmentation"], area = _segmentation(rng, style, image, row)
            if not flat and area <= 0:
                area = 1
            # `area` is a field of its own: real files hold values that differ from the shape.
            odd = rng.random()
            if odd < 0.05:
                area = rng.choice([32**2, 96**2])
            elif odd < 0.15:
                area = area * rng.uniform(0.5, 1)
            row["area"] = 0 if flat else area
        # Flags are drawn anew for a twin: of two equal objects one may be ignored.
        row["iscrowd"] = int(rng.random() < style.crowd)
        if rng.random() < style.ignore:
            row["ignore"] = rng.choice([0, 1, 1])
        else:
            row.pop("ignore", None)
        if federated and not style.crowd:
            del row["iscrowd"]
        rows.append(row)
    return rows


def _twin(rng: random.Random, image: Json, row: Json) -> Json:
    """The same annotation again, or moved sideways so that a box between has equal IoU."""
    twin = copy.copy(row)
    if rng.random() < 0.4:
        return twin
    x, y, w, h = row["_box"]
    shift = rng.choice([w / 5, 2 * w / 5, 2, 4, 10])
    twin["_box"] = twin["bbox"] = [x + shift, y, w, h]
    twin["_between"] = [x + shift / 2, y, w, h]
    if "segmentation" in row:
        twin["segmentation"] = _rle(_place(row["_shape"], twin["_box"]), image)
    return twin


def _detections(
    rng: random.Random,
    style: Style,
    image: Json,
    classes: list[int],
    objects: list[Json],
    *,
    masks: bool,
) -> list[Json]:
    count = rng.randint(8, 25) if style.dense else min(25, int(rng.expovariate(0.14)))
    rows: list[Json] = []
    for _ in range(count):
        if rows and rng.random() < 0.12:
            row = copy.copy(rng.choice(rows))
            if rng.random() < 0.5:
                row["score"] = _score(rng, style)
        else:
            target = rng.choice(objects) if objects and rng.random() < 0.75 else None
            row = _detection(rng, style, image, classes, target, masks=masks)
        rows.append(row)
    return rows


def _detection(
    rng: random.Random,
    style: Style,
    image: Json,
    classes: list[int],
    target: Json | None,
    *,
    masks: bool,
) -> Json:
    """One result row, made from the annotation `target` where there is one."""
    class_id = rng.choice(classes) if target is None else target["category_id"]
    if rng.random() < 0.1:
        class_id = rng.choice(classes)
    if rng.random() < style.unknown_class:
        class_id = 60 + rng.randint(0, 3)
    if target is None:
        box = _box(rng, style, image["width"], image["height"])
    elif "_between" in target and rng.random() < 0.5:
        box = list(target["_between"])
    else:
        box = _near(rng, style, target["_box"])
    if rng.random() < style.flat_detection:
        box[rng.choice([2, 3])] = 0
    row: Json = {"image_id": image["id"], "category_id": class_id, "score": _score(rng, style)}
    if masks:
        shape = _shape(rng) if target is None or rng.random() < 0.2 else target["_shape"]
        polygons = _place(shape, box)
        flat = box[2] == 0 or box[3] == 0
        rle = _rle([[0.0] * 6] if flat else polygons, image)
        row["segmentation"] = rle
        if style.carry_box:
            row["bbox"] = [float(value) for value in coco_mask.toBbox(rle)]
    else:
        row["bbox"] = box
    return row


def _score(rng: random.Random, style: Style) -> float:
    return rng.randint(0, style.levels) / style.levels if style.levels else rng.random()


def _grid(value: float, style: Style) -> float:
    """The value on the case's grid; whole numbers are Python ints, as in many real files."""
    if style.step == 0:
        return value
    if style.step < 1:
        return round(value, 2)
    step = int(style.step)
    return step * round(value / step)


def _box(rng: random.Random, style: Style, width: int, height: int) -> Box:
    """A box [x, y, w, h], of positive sides, in the image or partly outside it."""
    w: float
    h: float
    kind = rng.random()
    if kind < 0.15:
        w, h = rng.choice(LIMIT_SIDES)
    elif kind < 0.4:
        # A width of 20 n can be cut to n k / 20 of it: an IoU on a threshold exactly.
        w = 20 * rng.randint(1, max(1, width // 20))
        h = _grid(rng.uniform(1, height), style) or 1
    else:
        w = _grid(rng.uniform(1, 0.8 * width), style) or 1
        h = _grid(rng.uniform(1, 0.8 * height), style) or 1
    out = rng.random() < style.outside
    x, y = (
        rng.uniform(-side / 2, whole - side / 2) if out else rng.uniform(0, max(0.0, whole - side))
        for side, whole in ((w, width), (h, height))
    )
    return [_grid(x, style), _grid(y, style), w, h]


def _near(rng: random.Random, style: Style, box: Box) -> Box:
    """A box that overlaps the given one: equal, cut, grown or moved to an exact IoU, or noisy."""
    x, y, w, h = box
    kind = rng.random()
    if kind < 0.25:
        return list(box)
    if kind < 0.45:
        part = rng.choice([10, 10, 15, 15, *range(11, 20)])
        cut = w * part / 20
        return [x, y, int(cut) if cut.is_integer() else cut, h]
    if kind < 0.5:
        return [x, y, w, 2 * h]
    if kind < 0.6:
        # Moved by a third the IoU is 1/2, by a seventh 3/4.
        return [x + w / rng.choice([3, 7]), y, w, h]
    noise = rng.choice([0.02, 0.08, 0.2])
    return [
        _grid(x + rng.gauss(0, noise) * w, style),
        _grid(y + rng.gauss(0, noise) * h, style),
        _grid(w * math.exp(rng.gauss(0, noise)), style) or 1,
        _grid(h * math.exp(rng.gauss(0, noise)), style) or 1,
    ]


def _blob(rng: random.Random, count: int) -> list[tuple[float, float]]:
    """Points around the centre of the unit square at rising angles."""
    angles = sorted(rng.uniform(0, 2 * math.pi) for _ in range(count))
    radii = [rng.uniform(0.2, 0.5) for _ in angles]
    return [
        (0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle))
        for angle, radius in zip(angles, radii, strict=True)
    ]


def _shape(rng: random.Random) -> Shape:
    kind = rng.random()
    if kind < 0.4:
        return RECTANGLE
    if kind < 0.6:
        return TWO_BARS
    return [_blob(rng, rng.randint(4, 12)) for _ in range(rng.choice([1, 1, 2]))]


def _place(shape: Shape, box: Box) -> list[list[float]]:
    x, y, w, h = box
    return [
        [round(value, 2) for u, v in part for value in (x + u * w, y + v * h)] for part in shape
    ]


def _rle(polygons: list[list[float]], image: Json) -> Json:
    """The polygons' mask as compressed RLE whose counts are a str, as in a JSON file."""
    parts = coco_mask.frPyObjects(polygons, image["height"], image["width"])
    rle = coco_mask.merge(parts)
    return {"size": list(rle["size"]), "counts": rle["counts"].decode("ascii")}


def _segmentation(rng: random.Random, style: Style, image: Json, row: Json) -> tuple[Any, float]:
    """An annotation's segmentation in one of the case's forms, with its mask's area."""
    polygons = _place(row["_shape"], row["_box"])
    rle = _rle(polygons, image)
    area = int(coco_mask.area(rle))
    form = rng.choice(style.forms)
    if form == "polygon":
        return polygons, area
    if form == "rle":
        return rle, area
    return {"size": rle["size"], "counts": runs_of(decoded(rle))}, area
