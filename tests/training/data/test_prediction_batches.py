"""Batches of images without annotations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from lvdet.errors import InputError
from lvdet.training.configuration.config import Input
from lvdet.training.data import prediction_batches

torch.set_num_threads(1)


@pytest.fixture
def images(tmp_path):
    found = []
    for number, (height, width) in enumerate([(10, 20), (30, 15), (8, 8), (40, 10), (12, 9)]):
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        found.append((100 - number, tmp_path / f"{number}.png"))
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_images_in_order(images, workers):
    options = Input(sizes=(16, 24), largest=60, flip=1.0)
    batches = list(prediction_batches(images, options, 2, workers))
    assert [batch.ids for batch in batches] == [[100, 99], [98, 97], [96]]
    originals = [batch.original_size.tolist() for batch in batches]
    assert originals == [[[10, 20], [30, 15]], [[8, 8], [40, 10]], [[12, 9]]]
    sizes = [batch.batch.size.tolist() for batch in batches]
    assert sizes == [[[24, 48], [48, 24]], [[24, 24], [60, 15]], [[32, 24]]]
    assert batches[0].batch.pixels.shape == (2, 3, 64, 64)
    row = 0
    for made in batches:
        assert made.batch.objects is None
        for place, (height, width) in enumerate(made.batch.size.tolist()):
            with Image.open(images[row][1]) as image:
                expected = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
            pixels = made.batch.pixels[place, :, :height, :width].permute(1, 2, 0).numpy()
            np.testing.assert_array_equal(pixels, expected)
            row += 1


def test_the_size_for_prediction(images):
    options = Input(by="longest", sizes=(16, 24), test_size=40)
    (made,) = prediction_batches(images[:2], options, 8, 0)
    assert made.batch.size.tolist() == [[20, 40], [40, 20]]
    assert list(prediction_batches([], options, 8, 0)) == []
    by_shortest = replace(options, test_by="shortest")
    (made,) = prediction_batches(images[:2], by_shortest, 8, 0)
    assert made.batch.size.tolist() == [[40, 80], [80, 40]]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_cannot_be_read(images, workers):
    images[3][1].write_bytes(b"x")
    batches = iter(prediction_batches(images, Input(sizes=(16,)), 2, workers))
    next(batches)
    with pytest.raises(InputError, match=r"3\.png: cannot read the image") as error:
        next(batches)
    assert "\n" not in str(error.value)
