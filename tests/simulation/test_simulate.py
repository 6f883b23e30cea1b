"""The simulated detector has the properties it promises."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from lvdet.errors import InputError
from lvdet.simulation.simulate import simulate
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, ImageLists


def listed(gt: GroundTruth, lists: ImageLists | None) -> np.ndarray:
    """[I, C] True where the class is in the image's list."""
    table = np.zeros((len(gt.images), len(gt.categories)), dtype=bool)
    if lists is not None:
        table[np.repeat(np.arange(len(table)), np.diff(lists.offsets)), lists.category] = True
    return table


def positives(gt: GroundTruth) -> np.ndarray:
    """[I, C] True where the image has ground truth of the class."""
    table = np.zeros((len(gt.images), len(gt.categories)), dtype=bool)
    table[gt.image, gt.category] = True
    return table


def cells(gt: GroundTruth, dt: Detections) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the ground truth's images and classes for each detection."""
    image = np.searchsorted(gt.images.ids, dt.image_ids)[dt.image]
    return image, np.searchsorted(gt.categories.ids, dt.category_ids)[dt.category]


def best_iou(gt: GroundTruth, dt: Detections) -> np.ndarray:
    """[N] highest IoU with a box of the detection's class in its image, by pycocotools."""
    image, category = cells(gt, dt)
    best = np.zeros(len(dt))
    key = image * len(gt.categories) + category
    truth_key = gt.image.astype(np.int64) * len(gt.categories) + gt.category
    order = np.argsort(key, kind="stable")
    key = key[order]
    for value in np.intersect1d(key, truth_key):
        rows = order[slice(*np.searchsorted(key, [value, value + 1]))]
        boxes = gt.box[slice(*np.searchsorted(truth_key, [value, value + 1]))]
        best[rows] = coco_mask.iou(dt.box[rows], boxes, [0] * len(boxes)).max(axis=1)
    return best


def counted(gt: GroundTruth, dt: Detections) -> tuple[np.ndarray, np.ndarray]:
    """Rows AP counts, and whether each is right at IoU 0.5."""
    image, category = cells(gt, dt)
    right = best_iou(gt, dt) >= 0.5
    rows = right.copy()
    exhaustive = ~listed(gt, gt.not_exhaustive)[image, category]
    verified = (positives(gt) | listed(gt, gt.negative))[image, category]
    rows |= exhaustive & (verified if gt.federated else True)
    return np.flatnonzero(rows), right[rows]


@pytest.fixture(scope="module")
def lvis() -> tuple[GroundTruth, Detections]:
    return simulate(seed=3)


def same(left: Any, right: Any) -> bool:
    """Whether two tables hold the same, column by column."""
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)
    if hasattr(left, "__dataclass_fields__"):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in fields(left))
    return bool(left == right)


def test_the_seed_decides_everything(lvis: tuple[GroundTruth, Detections]) -> None:
    again = simulate(seed=3)
    other = simulate(seed=4)
    assert same(lvis[0], again[0])
    assert same(lvis[1], again[1])
    assert not same(lvis[0].box, other[0].box)


def test_columns_have_their_types(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, dt = lvis
    expected = {
        np.int32: (gt.image, gt.category, dt.image, dt.category, gt.images.width, gt.images.height),
        np.int64: (gt.id, gt.images.ids, gt.categories.ids, dt.image_ids, dt.category_ids),
        np.float64: (gt.box, gt.area, dt.box, dt.score),
        np.bool_: (gt.ignore, gt.crowd),
    }
    for kind, columns in expected.items():
        for column in columns:
            assert column.dtype == kind
            assert column.flags.c_contiguous
    assert gt.negative is not None
    assert gt.negative.offsets.dtype == np.int64
    assert gt.negative.category.dtype == np.int32


def test_ground_truth_is_a_long_tail(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, _ = lvis
    assert (len(gt.images), len(gt.categories)) == (500, 120)
    assert abs(len(gt) / 500 / 12.4 - 1) < 0.15
    assert np.all(np.diff(gt.images.ids) > 0)
    assert np.any(np.diff(gt.images.ids) > 1)
    assert len(np.unique(gt.id)) == len(gt)
    assert gt.id.min() > 0
    number = np.bincount(gt.category, minlength=120)
    assert number.min() >= 1
    group = gt.categories.groups()
    assert [len(group[name]) for name in "rcf"] == [34, 46, 40]
    mean = [number[group[name]].mean() for name in "rcf"]
    assert mean[0] < mean[1] < mean[2] / 5
    small, large = (gt.area < 32**2).mean(), (gt.area > 96**2).mean()
    assert small > 0.2
    assert large > 0.1
    assert small + large < 0.9


def test_lvis_size_gives_lvis_frequency_groups() -> None:
    gt, _ = simulate(2, 1203, dets_per_image=1)
    groups = gt.categories.groups()
    assert [len(groups[name]) for name in "rcf"] == [337, 461, 405]


def test_boxes_lie_inside_their_images(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, dt = lvis
    for image, box in ((gt.image, gt.box), (cells(gt, dt)[0], dt.box)):
        assert box[:, :2].min() >= 0
        assert box[:, 2:].min() > 1
        assert np.all(box[:, 0] + box[:, 2] <= gt.images.width[image] + 1e-9)
        assert np.all(box[:, 1] + box[:, 3] <= gt.images.height[image] + 1e-9)
        assert np.array_equal(box, np.round(box, 2))


def test_federated_lists_are_consistent(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, _ = lvis
    positive, negative = positives(gt), listed(gt, gt.negative)
    partial = listed(gt, gt.not_exhaustive)
    assert not np.any(positive & negative)
    assert 8 <= negative.sum() / 500 <= 12
    assert 0.01 < (partial & positive).sum() / positive.sum() < 0.06
    assert not np.any(partial & negative)


def test_coco_has_crowds_and_no_lists() -> None:
    gt, dt = simulate(400, 80, style="coco", dets_per_image=100)
    assert gt.negative is None
    assert gt.not_exhaustive is None
    assert set(gt.categories.frequency) == {""}
    assert gt.categories.ids[-1] > 80
    assert 0.002 < gt.crowd.mean() < 0.03
    assert abs(len(gt) / 400 / 7.3 - 1) < 0.15
    assert np.all(np.bincount(dt.image, minlength=400) == 100)


def test_detections_come_by_image_and_falling_score(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, dt = lvis
    assert np.all(np.diff(dt.image) >= 0)
    assert np.all((np.diff(dt.score) <= 0) | (np.diff(dt.image) > 0))
    assert np.array_equal(dt.image_ids, gt.images.ids)
    _, first = np.unique(dt.category, return_index=True)
    assert np.all(np.diff(first) > 0)
    assert len(dt.category_ids) == len(first)
    assert np.array_equal(dt.score, np.round(dt.score, 5))


@pytest.mark.parametrize("number", [1, 40, 300])
@pytest.mark.parametrize("style", ["lvis", "coco"])
def test_a_budget_is_used_up_exactly(number: int, style: str) -> None:
    _, dt = simulate(30, 50, dets_per_image=number, style=style)
    assert np.bincount(dt.image).tolist() == [number] * 30


def test_candidates_without_a_cut() -> None:
    _, dt = simulate(30, 50, dets_per_image=None, candidates_per_image=400)
    assert np.bincount(dt.image).tolist() == [400] * 30


def test_a_smaller_budget_is_a_prefix() -> None:
    gt, many = simulate(20, 200, dets_per_image=500)
    same_gt, few = simulate(20, 200, dets_per_image=60)
    assert same(gt.box, same_gt.box)
    prefix = many[np.arange(len(many)) % 500 < 60]
    assert np.array_equal(prefix.box, few.box)
    assert np.array_equal(prefix.score, few.score)


@pytest.mark.parametrize(
    "options",
    [{}, {"style": "coco"}, {"verified_share": 0.5, "candidates_per_image": 100}],
    ids=["lvis", "coco", "verified_share"],
)
def test_scores_are_calibrated(options: dict[str, Any]) -> None:
    gt, dt = simulate(3000, 60, dets_per_image=None, **options)
    rows, right = counted(gt, dt)
    score = dt.score[rows]
    level = np.minimum((score * 10).astype(int), 9)
    expected = np.bincount(level, score, 10)
    deviation = np.sqrt(np.bincount(level, score * (1 - score), 10))
    assert np.all(np.bincount(level, minlength=10) > 200)
    assert np.all(np.abs(np.bincount(level, right, 10) - expected) < 3.5 * deviation)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_share_in_verified_cells(share: float) -> None:
    gt, dt = simulate(300, 400, verified_share=share)
    assert np.bincount(dt.image).tolist() == [300] * 300
    verified = (positives(gt) | listed(gt, gt.negative))[cells(gt, dt)]
    assert verified.mean() == pytest.approx(share, abs=0.02)


def test_no_two_right_detections_share_a_box(lvis: tuple[GroundTruth, Detections]) -> None:
    gt, _ = lvis
    _, dt = simulate(seed=3, dets_per_image=None)
    rows, right = counted(gt, dt)
    image, category = cells(gt, dt)
    key = (image * 120 + category)[rows[right]]
    boxes = np.bincount(gt.image * 120 + gt.category, minlength=500 * 120)
    assert np.all(np.bincount(key, minlength=500 * 120) <= boxes)


def test_localisation_sets_the_overlap() -> None:
    mean = []
    for localisation in (0.0, 0.6, 1.0):
        gt, dt = simulate(100, 30, localisation=localisation)
        iou = best_iou(gt, dt)
        mean.append(iou[iou >= 0.5].mean())
    assert 0.5 < mean[0] < 0.56
    assert 0.75 < mean[1] < 0.88
    assert mean[2] == pytest.approx(1.0)


def test_bias_keeps_the_order_inside_a_class() -> None:
    def ordered(bias: float) -> tuple[np.ndarray, np.ndarray, GroundTruth]:
        gt, dt = simulate(40, 60, dets_per_image=None, bias=bias, decimals=(2, 12))
        image, category = cells(gt, dt)
        order = np.lexsort((*dt.box.T, image, category))
        return category[order], np.column_stack([dt.box, dt.score, image])[order], gt

    category, plain, gt = ordered(0.0)
    biased_category, biased, _ = ordered(3.0)
    assert np.array_equal(category, biased_category)
    assert np.array_equal(np.delete(plain, 4, 1), np.delete(biased, 4, 1))
    for rows in (np.flatnonzero(category == value) for value in range(60)):
        falling = biased[rows[np.argsort(plain[rows, 4])], 4]
        assert np.all(np.diff(falling) >= 0)
    rows = np.flatnonzero((plain[:, 4] > 0.01) & (plain[:, 4] < 0.99))
    drop = np.subtract(*(np.log(part[rows, 4] / (1 - part[rows, 4])) for part in (plain, biased)))
    frequency = gt.categories.frequency[category[rows]]
    groups = [drop[frequency == name] for name in "fcr"]
    least, most = np.array([[group.min(), group.max()] for group in groups]).T
    assert np.all(most[:2] < least[1:] + 1e-6)
    assert least[0] == pytest.approx(0.0, abs=0.3)
    assert most[2] == pytest.approx(3.0)


def test_skill_falls_with_rarity_and_budgets_hit_the_rare() -> None:
    gt, dt = simulate(1200, 1203, dets_per_image=None)
    rows, right = counted(gt, dt)
    frequency = gt.categories.frequency[cells(gt, dt)[1]]
    place = np.arange(len(dt)) - np.searchsorted(dt.image, dt.image)
    found, score, kept = [], [], []
    for name in "rcf":
        group = rows[right & (frequency[rows] == name)]
        found.append(len(group) / (gt.categories.frequency[gt.category] == name).sum())
        score.append(dt.score[group].mean())
        kept.append((place[group] < 300).mean())
    assert found[0] < found[1] < found[2]
    assert score[0] < score[1] < score[2]
    assert kept[0] < kept[1] < kept[2]
    assert kept[0] < 0.75


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning:")
@pytest.mark.parametrize("style", ["lvis", "coco"])
def test_masks_fill_their_boxes(style: str) -> None:
    gt, dt = simulate(12, 20, dets_per_image=60, masks=True, style=style)
    for table, image in ((gt, gt.image), (dt, cells(gt, dt)[0])):
        masks = table.masks
        assert masks is not None
        assert len(masks) == len(table)
        assert np.array_equal(masks.height, gt.images.height[image])
        assert np.array_equal(masks.width, gt.images.width[image])
        for row in range(len(table)):
            size = [int(masks.height[row]), int(masks.width[row])]
            rle = {"size": size, "counts": masks.row(row)}
            pixels = coco_mask.decode(rle)
            assert pixels.any()
            assert coco_mask.encode(pixels)["counts"] == rle["counts"]
            assert coco_mask.toBbox(rle).tolist() == table.box[row].tolist()
            if table is gt:
                assert pixels.sum() == gt.area[row]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": 0}, "images is 0"),
        ({"classes": -1}, "classes is -1"),
        ({"dets_per_image": 0}, "dets_per_image is 0"),
        ({"bias": np.inf}, "bias is inf"),
        ({"class_bias": -0.5}, "class_bias is -0.5"),
        ({"objects_per_image": 0}, "objects_per_image is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"localisation": 1.5}, "localisation is 1.5"),
        ({"style": "voc"}, "style is 'voc'"),
        ({"verified_share": 0.0}, "verified_share is 0.0"),
        ({"verified_share": 0.01}, "verified_share is too low"),
        ({"verified_share": 0.5, "style": "coco"}, "in COCO every class is verified"),
        ({"verified_share": 0.5, "dets_per_image": None}, "verified_share needs dets_per_image"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(**options)
