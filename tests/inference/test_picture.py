"""Pictures show what was detected where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.inference.picture import colour_of, draw, save_picture
from lvdet.tables.detections import Detections


def detections(boxes: list[list[float]], ids: list[int], scores: list[float]) -> Detections:
    return Detections.from_arrays(np.zeros(len(ids), dtype=int), ids, scores, boxes)


def test_masks_boxes_and_names() -> None:
    """The mask is tinted where it is, the box drawn in full colour, small images enlarged."""
    inside = np.zeros((60, 80), dtype=bool)
    inside[30:50, 20:60] = True
    found = draw(
        Image.new("RGB", (80, 60), (100, 100, 100)),
        replace(
            detections([[18, 28, 44, 24]], [4], [0.75]), masks=masks_from_bitmaps(inside[None])
        ),
        {4: "tea_pot"},
    )
    assert found.size == (320, 240)
    pixels = np.asarray(found).astype(int)
    colour = np.array(colour_of(4))
    np.testing.assert_allclose(pixels[160, 160], 100 + 0.45 * (colour - 100), atol=2)
    assert pixels[160, 72].tolist() == colour.tolist()  # the box's left side
    assert pixels[20, 300].tolist() == [100, 100, 100]
    label = pixels[90:111, 72:160]
    assert (label == colour).all(axis=-1).mean() > 0.4  # the name's ground
    assert (label.min(axis=-1) != label[0, 0].min()).any()


def test_names_do_not_cover_each_other() -> None:
    """Boxes at one place have their names around it."""
    blank = Image.new("RGB", (400, 300), (0, 0, 0))
    found = detections([[150, 100, 120, 90]] * 4, [0, 1, 2, 3], [0.9, 0.8, 0.7, 0.6])
    pixels = np.asarray(draw(blank, found, dict.fromkeys(range(4), "name")))
    areas = [int((pixels == colour_of(number)).all(axis=-1).sum()) for number in range(4)]
    assert min(areas[1:]) > 600  # but for the boxes' sides, which the first one's cover


def test_only_what_is_above(tmp_path: Path) -> None:
    Image.new("L", (30, 20), 50).save(tmp_path / "a.png")
    found = detections([[1, 1, 5, 5]] * 4, [1] * 4, [0.2, 0.3, 0.9, 0.5])
    assert save_picture(tmp_path / "a.png", found, {}, tmp_path / "b.png", above=0.3) == 2
    with Image.open(tmp_path / "b.png") as picture:
        assert picture.format == "PNG"
    assert save_picture(tmp_path / "a.png", found, {}, tmp_path / "b.png", above=0.9) == 0


def test_colours_of_neighbours_differ() -> None:
    colours = np.array([colour_of(number) for number in range(1203)]).astype(int)
    for step in (1, 2, 3):
        apart = np.abs(colours[step:] - colours[:-step]).sum(axis=1)
        assert apart.min() > 60


@pytest.mark.parametrize("size", [(1, 1), (3000, 20), (4000, 3000)])
def test_any_size(size: tuple[int, int]) -> None:
    found = draw(Image.new("RGB", size), detections([[0, 0, *size]], [1], [1.0]), {1: "thing"})
    assert max(found.size) <= 2400
