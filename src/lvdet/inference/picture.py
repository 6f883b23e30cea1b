"""A picture of an image with what was detected on it."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from lvdet.files.writing import write_whole
from lvdet.rasters.run_lengths import decode, pixels
from lvdet.training.data.image_files import read_picture

#: The longer side of a picture in pixels at least and at most, and how far an image is enlarged.
SMALLEST, LARGEST, ENLARGED = 960, 2400, 4.0
#: Detections that are drawn at most, the best.
MOST = 100
#: How much of a mask's colour covers the image.
TINT = 0.45

Colour = tuple[int, int, int]
Frame = tuple[float, float, float, float]


def save_picture(
    source: Path,
    records: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
    target: Path,
    *,
    above: float = 0.3,
) -> int:
    """Writes a PNG of an image with its detections above a score; returns how many there are.

    records: of this image, as COCO has them
    names:   of the classes, by category id
    """
    shown = sorted(
        (record for record in records if record["score"] > above),
        key=lambda record: -float(record["score"]),
    )
    picture = draw(read_picture(source), shown[:MOST], names)
    with write_whole(target) as file:
        picture.save(file, "PNG")
    return len(shown)


def draw(
    image: Image.Image, records: Sequence[Mapping[str, Any]], names: Mapping[int, str]
) -> Image.Image:
    """The image, small ones enlarged, with masks tinted, boxes, names and scores.

    Records are drawn last to first, so that the first is on top.
    """
    longest = max(image.size)
    scale = min(max(1.0, min(SMALLEST / longest, ENLARGED)), LARGEST / longest)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    picture = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    for record in reversed(records):
        if "segmentation" in record:
            picture = _tinted(picture, record["segmentation"], colour_of(record["category_id"]))
    pen = ImageDraw.Draw(picture)
    thickness = max(2, round(max(size) / 500))
    for record in reversed(records):
        x, y, w, h = (float(value) * scale for value in record["bbox"])
        corner = (max(0.0, x), max(0.0, y))
        other = (min(size[0] - 1.0, x + w), min(size[1] - 1.0, y + h))
        if other[0] >= corner[0] and other[1] >= corner[1]:
            pen.rectangle(
                (*corner, *other), outline=colour_of(record["category_id"]), width=thickness
            )
    _write_labels(pen, records, names, scale, size)
    return picture


def colour_of(category_id: int) -> Colour:
    """A bright colour; those of ids beside each other are far apart."""
    hue = (category_id * 0.618034) % 1
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85, 1.0 if category_id % 2 else 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def _tinted(picture: Image.Image, segmentation: Mapping[str, Any], colour: Colour) -> Image.Image:
    """The picture with a mask's pixels in its colour, and the mask's edge in full."""
    height, width = segmentation["size"]
    inside = pixels(decode(segmentation["counts"]), height, width)
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
    records: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
    scale: float,
    size: tuple[int, int],
) -> None:
    """Names and scores at their boxes, the best first; each where no other is, if there is room."""
    font = ImageFont.load_default(max(13, round(max(size) / 65)))
    taken: list[Frame] = []
    places = []
    for record in records:
        name = names.get(record["category_id"], f"class {record['category_id']}")
        text = f"{name.replace('_', ' ')} {record['score']:.2f}"
        left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
        wide, high = right - left + 8, bottom - top + 6
        frame = _place(record, wide, high, scale, size, taken)
        taken.append(frame)
        places.append((frame, text, (left, top), colour_of(record["category_id"])))
    for frame, text, (left, top), colour in reversed(places):
        pen.rectangle(frame, fill=colour)
        ink = (0, 0, 0) if _brightness(colour) > 120 else (255, 255, 255)
        pen.text((frame[0] + 4 - left, frame[1] + 3 - top), text, font=font, fill=ink)


def _place(
    record: Mapping[str, Any],
    wide: float,
    high: float,
    scale: float,
    size: tuple[int, int],
    taken: Sequence[Frame],
) -> Frame:
    """Above the box, else inside at its top, below it, inside at its bottom; left or right."""
    x, y, w, h = (float(value) * scale for value in record["bbox"])
    frames = []
    for line in (y - high, y, y + h, y + h - high):
        for column in (x, x + w - wide):
            begin = min(max(column, 0.0), max(size[0] - 1 - wide, 0.0))
            top = min(max(line, 0.0), max(size[1] - 1 - high, 0.0))
            frames.append((begin, top, begin + wide, top + high))
    return min(frames, key=lambda frame: sum(_shared(frame, other) for other in taken))


def _shared(a: Frame, b: Frame) -> float:
    """Pixels that two frames share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def _brightness(colour: Colour) -> float:
    red, green, blue = colour
    return 0.299 * red + 0.587 * green + 0.114 * blue
