"""Samples and batches against hand-written ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Input, Model
from lvdet.training.data.batch import TILE
from lvdet.training.data.collate import collate
from lvdet.training.data.resize import draw_size, prediction_size, resized
from lvdet.training.data.tiles import FINER
from lvdet.training.data.training_samples import make_sample
from training.data.small_sets import SmallSet, random_set


def options(**changes):
    return Config(input=replace(Input(sizes=(20,), flip=0.0), **changes))


@pytest.fixture
def small(tmp_path):
    made = SmallSet(tmp_path)
    made.category(4)
    made.category(1)
    made.image(1, 10, 30)
    made.image(2, 20, 20)
    made.annotation(1, 4, (2, 1, 4, 3))
    inside = [[2, 0], [2, 1], [3, 1]]  # columns and rows
    counts = [20, 2, 9, 1, 268]
    assert [(n // 10, n % 10) for n in (20, 21, 31)] == [tuple(p) for p in inside]
    made.annotation(1, 1, (2, 0, 2, 2), {"size": [10, 30], "counts": counts})
    made.annotation(2, 1, (0, 0, 20, 20))
    return made


@pytest.mark.parametrize(
    ("height", "width", "size", "by", "expected"),
    [
        (480, 640, 800, "shortest", (800, 1067)),
        (640, 480, 800, "shortest", (1067, 800)),
        (480, 1280, 800, "shortest", (500, 1333)),  # limited by the longest side
        (480, 800, 800, "shortest", (800, 1333)),
        (500, 500, 640, "shortest", (640, 640)),
        (480, 640, 400, "longest", (300, 400)),
        (640, 480, 2000, "longest", (2000, 1500)),  # largest is for the shortest alone
        (1, 3000, 400, "longest", (1, 400)),
        (3, 2, 3, "shortest", (5, 3)),  # 4.5
    ],
)
def test_sizes(height, width, size, by, expected):
    assert resized(height, width, size, Input(by=by)) == expected


def test_sizes_by_something_else():
    with pytest.raises(InputError, match=r"input\.by is 'area', expected shortest or longest"):
        resized(10, 10, 20, Input(by="area"))


def test_drawn_sizes():
    random = np.random.default_rng(0)
    sizes = [draw_size(Input(), random) for _ in range(6000)]
    counts = [sizes.count(size) for size in Input().sizes]
    assert sum(counts) == 6000
    assert min(counts) > 850
    between = [draw_size(Input(sizes=(20, 10), between=True), random) for _ in range(11_000)]
    counts = np.bincount(between, minlength=21)
    assert counts[:10].sum() == 0
    assert counts[10:].min() > 850
    assert len(counts) == 21
    assert prediction_size(Input()) == 800
    assert prediction_size(Input(test_size=300)) == 300


def test_a_batch_by_hand(small):
    data = small.read()
    batch = collate([make_sample(data, row, 0, options()) for row in (0, 1)])
    assert batch.pixels.shape == (2, 3, 32, 64)
    assert batch.pixels.dtype == torch.uint8
    assert batch.pixels.is_contiguous(memory_format=torch.channels_last)
    assert batch.size.tolist() == [[20, 60], [20, 20]]
    for row in (0, 1):
        height, width = batch.size[row].tolist()
        with Image.open(data.path(row)) as image:
            expected = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
        pixels = batch.pixels[row].permute(1, 2, 0).numpy()
        np.testing.assert_array_equal(pixels[:height, :width], expected)
        assert not pixels[height:].any()
        assert not pixels[:, width:].any()
    objects = batch.objects
    assert objects.label.tolist() == [[1, 0] + [-1] * 6, [0] + [-1] * 7]
    assert objects.box.shape == (2, 8, 4)
    assert objects.box[0, :3].tolist() == [[4, 2, 12, 8], [4, 0, 8, 4], [0, 0, 0, 0]]
    assert objects.box[1, :2].tolist() == [[0, 0, 20, 20], [0, 0, 0, 0]]
    assert objects.frame[0, :3].tolist() == [[4, 2, 4, 4], [4, 0, 1, 1], [0, 0, 0, 0]]
    assert objects.tile.dtype == torch.uint8
    assert objects.tile.shape == (2, 8, TILE, TILE)
    tile = np.zeros((TILE, TILE), dtype=int)
    tile[:24, :32] = 1
    assert objects.tile[0, 0].tolist() == tile.tolist()
    tile[:] = 0
    tile[:4, :4] = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert objects.tile[0, 1].tolist() == tile.tolist()
    assert objects.tile[1, 0].sum() == 80 * 80
    assert not objects.tile[0, 2:].any()
    assert objects.frame.dtype == torch.float32
    assert objects.label.dtype == batch.seed.dtype == batch.size.dtype == torch.int64


def test_a_flipped_sample_by_hand(small):
    data = small.read()
    plain = make_sample(data, 0, 0, options())
    flipped = make_sample(data, 0, 0, options(flip=1.0))
    np.testing.assert_array_equal(flipped.pixels, plain.pixels[:, ::-1])
    assert flipped.box.tolist() == [[48, 2, 56, 8], [52, 0, 56, 4]]
    assert flipped.tiles[1][1] == (52, 0, 4, 4)
    assert flipped.tiles[1][0].astype(int).tolist() == [[0, 0, 1, 1]] * 2 + [[1] * 4] * 2
    assert flipped.seed == plain.seed


def whole_masks(sample):
    """Of the tiles, at four samples to a pixel."""
    height, width = (FINER * side for side in sample.pixels.shape[:2])
    whole = np.zeros((len(sample.tiles), height, width), dtype=bool)
    batch = collate([sample]).objects
    for place, (tile, frame) in enumerate(zip(batch.tile[0], batch.frame[0], strict=True)):
        x0, y0, sx, sy = frame.tolist()
        if place < len(sample.tiles):
            if sx == 1:
                tile = tile.repeat_interleave(FINER, 0).repeat_interleave(FINER, 1)
            elif sx != FINER:
                pytest.fail(f"a tile of {sx} samples to a pixel")
            assert sy == sx
            rows, columns = np.nonzero(tile.numpy())
            whole[place, rows + FINER * int(y0), columns + FINER * int(x0)] = True
    return whole


def test_flips_mirror_everything(tmp_path):
    data = random_set(tmp_path).read()
    for row in range(len(data)):
        plain = make_sample(data, row, row, options(sizes=(20, 24, 17)))
        flipped = make_sample(data, row, row, options(sizes=(20, 24, 17), flip=1.0))
        width = plain.pixels.shape[1]
        np.testing.assert_array_equal(flipped.pixels, plain.pixels[:, ::-1])
        np.testing.assert_array_equal(whole_masks(flipped), whole_masks(plain)[:, :, ::-1])
        np.testing.assert_allclose(flipped.box[:, [0, 2]], width - plain.box[:, [2, 0]], atol=1e-4)
        np.testing.assert_array_equal(flipped.box[:, [1, 3]], plain.box[:, [1, 3]])
        np.testing.assert_array_equal(flipped.label, plain.label)
        # masks are where the boxes are
        for mask, (x1, y1, x2, y2) in zip(whole_masks(flipped), flipped.box, strict=True):
            rows, columns = np.nonzero(mask)
            if len(rows):
                assert columns.min() >= FINER * (x1 - 1)
                assert rows.min() >= FINER * (y1 - 1)
                assert columns.max() <= FINER * (x2 + 1)
                assert rows.max() <= FINER * (y2 + 1)


def test_a_flipped_tile_of_a_large_object(tmp_path):
    made = SmallSet(tmp_path)
    made.category(1)
    made.image(1, 60, 300)
    made.annotation(1, 1, (10, 5, 250, 40), [[10, 5, 260, 5, 10, 45]])
    data = made.read()
    plain = collate([make_sample(data, 0, 0, options(sizes=(60,)))]).objects
    flipped = collate([make_sample(data, 0, 0, options(sizes=(60,), flip=1.0))]).objects
    assert plain.frame[0, 0].tolist() == pytest.approx([10, 5, TILE / 250, TILE / 40])
    assert flipped.frame[0, 0].tolist() == pytest.approx([40, 5, TILE / 250, TILE / 40])
    torch.testing.assert_close(flipped.tile[0, 0], plain.tile[0, 0].flip(1))
    assert plain.tile[0, 0, 0].sum() == pytest.approx(TILE, abs=3)


def test_what_is_random_depends_on_seed_and_position(small):
    data = small.read()
    config = options(sizes=(20, 30, 40), flip=0.5)
    samples = [make_sample(data, 0, position, config) for position in range(60)]
    again = make_sample(data, 0, 17, config)
    np.testing.assert_array_equal(again.pixels, samples[17].pixels)
    assert again.seed == samples[17].seed
    assert len({sample.seed for sample in samples}) == 60
    assert min(sample.seed for sample in samples) >= 0
    assert {sample.pixels.shape[0] for sample in samples} == {20, 30, 40}
    flips = sum(sample.box[0, 0] > 20 for sample in samples)
    assert 15 < flips < 45
    other = make_sample(data, 0, 17, replace(config, run=replace(config.run, seed=1)))
    assert other.seed != again.seed


def test_room_for_objects(tmp_path):
    made = SmallSet(tmp_path)
    made.category(1)
    for image, count in ((1, 8), (2, 9), (3, 230)):
        made.image(image, 40, 40)
        for place in range(count):
            made.annotation(image, 1, (0, 0, 2 + place % 23, 2 + place % 23))
    data = made.read()
    samples = [make_sample(data, row, 0, options()) for row in range(3)]
    assert [collate([sample]).objects.label.shape[1] for sample in samples] == [8, 16, 232]
    assert collate(samples[:2]).objects.label.shape == (2, 16)
    assert len(samples[2].label) == 230


def test_without_masks_there_are_no_tiles(small):
    config = replace(options(), model=Model(masks=False))
    batch = collate([make_sample(small.read(), 0, 0, config)]).objects
    assert batch.label[0, :2].tolist() == [1, 0]
    assert not batch.tile.any()
    assert not batch.frame.any()


def test_images_that_do_not_fit_their_annotations(small):
    data = small.read()
    Image.new("RGB", (31, 10)).save(data.path(0))
    with pytest.raises(InputError, match=r"1\.png: the image is 31 x 10 pixels, .* say 30 x 10"):
        make_sample(data, 0, 0, options())
