"""Draws an image with its detections."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from lvdet.files.bitmaps import bitmaps_from_masks
from lvdet.files.stream import detection_tables
from lvdet.files.writing import write_whole
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks
from lvdet.training.data.image_files import read_picture

#: The longer side of a picture in pixels at least and at most, and how far an image is enlarged.
SMALLEST, LARGEST, ENLARGED = 960, 2400, 4.0
#: Maximum number of detections drawn, the best first.
MOST = 100
#: How much of a mask's colour covers the image.
TINT = 0.45

Colour = tuple[int, int, int]
Frame = tuple[float, float, float, float]


def save_picture(
    source: Path,
    detections: Detections,
    names: Mapping[int, str],
    target: Path,
    *,
    above: float = 0.3,
) -> int:
    """Writes a PNG of an image with its detections above a score; returns their number.

    detections: of this image
    names:      of the classes, by category id
    """
    shown = detections[detections.score > above]
    picture = draw(read_picture(source), shown, names)
    with write_whole(target) as file:
        picture.save(file, "PNG")
    return len(shown)


def detections_on(path: Path, image_id: int) -> Detections:
    """The detections of an image in a file."""
    parts = [t[t.image_ids[t.image] == image_id] for t in detection_tables(path)]
    parts = [part for part in parts if len(part)]
    ids = [part.category_ids[part.category] for part in parts]
    masks = [part.masks for part in parts if part.masks is not None]
    return Detections.from_arrays(
        np.full(sum(map(len, parts)), image_id),
        np.concatenate([np.zeros(0, dtype=np.int64), *ids]),
        np.concatenate([np.zeros(0), *(part.score for part in parts)]),
        np.concatenate([np.zeros((0, 4)), *(part.box for part in parts)]),
        Masks.concatenate(masks) if masks else None,
    )


def draw(image: Image.Image, detections: Detections, names: Mapping[int, str]) -> Image.Image:
    """The image, small ones enlarged, with masks tinted, boxes, names and scores.

    The `MOST` best are drawn, the lowest score first, so that the best is on top.
    """
    best = detections[np.argsort(-detections.score, kind="stable")[:MOST]]
    ids = best.category_ids[best.category].tolist()
    longest = max(image.size)
    scale = min(max(1.0, min(SMALLEST / longest, ENLARGED)), LARGEST / longest)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    picture = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    if best.masks is not None:
        for row in reversed(range(len(best))):
            (inside,) = bitmaps_from_masks(best.masks[[row]])
            picture = _tinted(picture, inside, colour_of(ids[row]))
    pen = ImageDraw.Draw(picture)
    thickness = max(2, round(max(size) / 500))
    boxes = (best.box * scale).tolist()
    for name, (x, y, w, h) in reversed([*zip(ids, boxes, strict=True)]):
        corner = (max(0.0, x), max(0.0, y))
        other = (min(size[0] - 1.0, x + w), min(size[1] - 1.0, y + h))
        if other[0] >= corner[0] and other[1] >= corner[1]:
            pen.rectangle((*corner, *other), outline=colour_of(name), width=thickness)
    labels = [
        f"{names.get(name, f'class {name}').replace('_', ' ')} {score:.2f}"
        for name, score in zip(ids, best.score.tolist(), strict=True)
    ]
    _write_labels(pen, labels, [colour_of(name) for name in ids], boxes, size)
    return picture


def colour_of(category_id: int) -> Colour:
    """A bright colour; adjacent ids get very different ones."""
    hue = (category_id * 0.618034) % 1
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85, 1.0 if category_id % 2 else 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def _tinted(picture: Image.Image, inside: NDArray[np.bool_], colour: Colour) -> Image.Image:
    """The picture with a mask's pixels tinted and its edge in full colour."""
    mask = Image.fromarray(inside.astype(np.uint8) * 255)
    mask = mask.resize(picture.size, Image.Resampling.BILINEAR).point(
        lambda value: 255 if value >= 128 else 0
    )
    edge = Image.fromarray(np.asarray(mask) - np.asarray(mask.filter(ImageFilter.MinFilter(3))))
    strength = Image.fromarray(
        np.maximum(np.asarray(mask) * TINT, np.asarray(edge) * 0.9).astype(np.uint8)
    )
    return Image.composite(Image.new("RGB", picture.size, colour), picture, strength)


def _write_labels(
    pen: ImageDraw.ImageDraw,
    labels: Sequence[str],
    colours: Sequence[Colour],
    boxes: Sequence[Sequence[float]],
    size: tuple[int, int],
) -> None:
    """Draws labels at their boxes, the best first, each where there is room if possible."""
    font = ImageFont.load_default(max(13, round(max(size) / 65)))
    taken: list[Frame] = []
    places = []
    for text, colour, box in zip(labels, colours, boxes, strict=True):
        left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
        frame = _place(box, right - left + 8, bottom - top + 6, size, taken)
        taken.append(frame)
        places.append((frame, text, (left, top), colour))
    for frame, text, (left, top), colour in reversed(places):
        pen.rectangle(frame, fill=colour)
        ink = (0, 0, 0) if _brightness(colour) > 120 else (255, 255, 255)
        pen.text((frame[0] + 4 - left, frame[1] + 3 - top), text, font=font, fill=ink)


def _place(
    box: Sequence[float], wide: float, high: float, size: tuple[int, int], taken: Sequence[Frame]
) -> Frame:
    """Positions: above the box, inside at its top, below it, inside at its bottom; left or
    right."""
    x, y, w, h = box
    frames = []
    for line in (y - high, y, y + h, y + h - high):
        for column in (x, x + w - wide):
            begin = min(max(column, 0.0), max(size[0] - 1 - wide, 0.0))
            top = min(max(line, 0.0), max(size[1] - 1 - high, 0.0))
            frames.append((begin, top, begin + wide, top + high))
    return min(frames, key=lambda frame: sum(_shared(frame, other) for other in taken))


def _shared(a: Frame, b: Frame) -> float:
    """The number of pixels that two frames share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def _brightness(colour: Colour) -> float:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue
