"""The oracles agree where they must, and the cases really hold the oddities they promise."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest

from oracles.boundary_reference import boundary_ious, evaluate_boundary
from oracles.cases import coco_case, lvis_case, polygon_case, without_boxes
from oracles.coco_reference import evaluate_coco
from oracles.lvis_reference import (
    cut_per_class,
    cut_per_image,
    drop_unknown,
    evaluate_lvis,
    evaluate_lvis_per_class,
)
from oracles.pool_reference import evaluate_pool, evaluate_slow

Json = dict[str, Any]
Metrics = dict[str, float | None]
Case = Callable[..., tuple[Json, list[Json]]]

SEEDS = range(300)
TOLERANCE = 1e-12


def assert_close(actual: float | None, expected: float | None, what: str = "AP") -> None:
    """Both undefined, or equal to 1e-12 (pytest.approx takes no None)."""
    assert (actual is None) == (expected is None), (what, actual, expected)
    if actual is not None and expected is not None:
        assert abs(actual - expected) <= TOLERANCE, (what, actual, expected)


def assert_same(actual: Metrics, expected: Metrics, keys: Iterable[str] | None = None) -> None:
    for key in expected if keys is None else keys:
        assert_close(actual[key], expected[key], key)


# --- the cases ---


@pytest.mark.parametrize("case", [lvis_case, coco_case])
@pytest.mark.parametrize("masks", [False, True])
def test_a_case_is_json_and_depends_on_its_seed_alone(case: Case, masks: bool) -> None:
    for seed in range(20):
        first, again = case(seed, masks), case(seed, masks)
        assert first == again
        assert json.loads(json.dumps(first)) == list(first)
    assert case(0, masks) != case(1, masks)


def by_place(rows: Iterable[Json]) -> dict[tuple[int, int], list[Json]]:
    """Rows by (image id, category id)."""
    places: dict[tuple[int, int], list[Json]] = defaultdict(list)
    for row in rows:
        places[row["image_id"], row["category_id"]].append(row)
    return places


def file_traits(annotations: Json, results: list[Json]) -> Iterator[str]:
    """Names of the oddities in a case, whether boxes or masks, LVIS or COCO."""
    images, rows = annotations["images"], annotations["annotations"]
    classes = [category["id"] for category in annotations["categories"]]
    image_ids = [image["id"] for image in images]
    if {*image_ids} - {row["image_id"] for row in rows}:
        yield "image without annotations"
    if {*image_ids} - {row["image_id"] for row in results}:
        yield "image without detections"
    if {*classes} - {row["category_id"] for row in rows}:
        yield "class without ground truth"
    if {row["category_id"] for row in results} - {*classes}:
        yield "unknown class"
    if image_ids != sorted(image_ids) and classes != sorted(classes):
        yield "unsorted ids"
    if any(a["image_id"] > b["image_id"] for a, b in pairwise(results)):
        yield "shuffled detections"
    scores = Counter((row["category_id"], row["score"]) for row in results)
    if any(count > 1 for count in scores.values()):
        yield "score tie"
    if len({json.dumps(row, sort_keys=True) for row in results}) < len(results):
        yield "duplicated detection"
    if any(row["id"] == 0 for row in rows):
        yield "annotation id 0"
    if any(row.get("ignore") for row in rows):
        yield "ignore"
    if any(row.get("iscrowd") for row in rows):
        yield "iscrowd"
    areas = {row["area"] for row in rows}
    yield from (f"annotation area {area}" for area in {0, 32**2, 96**2} & areas)
    if min(areas, default=32**2) < 32**2 and max(areas, default=0) > 96**2:
        yield "small and large"


def lvis_traits(annotations: Json, results: list[Json]) -> Iterator[str]:
    """Oddities of the lists that only LVIS images have."""
    present = by_place(annotations["annotations"])
    detected = by_place(results)
    for image in annotations["images"]:
        if not image["neg_category_ids"]:
            yield "empty neg list"
        for class_id in image["not_exhaustive_category_ids"]:
            place = image["id"], class_id
            if place in detected:
                yield f"not exhaustive {'with' if place in present else 'without'} ground truth"
    for image_id, class_id in detected:
        image = next(one for one in annotations["images"] if one["id"] == image_id)
        if (image_id, class_id) not in present:
            negative = class_id in image["neg_category_ids"]
            yield "negative class detected" if negative else "detection without verdict"


def box_traits(annotations: Json, results: list[Json]) -> Iterator[str]:
    """Oddities of the boxes and of their overlaps."""
    images = {image["id"]: image for image in annotations["images"]}
    if any(image["width"] > 200 or image["height"] > 200 for image in images.values()):
        yield "image above 200 px"
    for row in results:
        x, y, w, h = row["bbox"]
        if w * h in (0, 32**2, 96**2):
            yield f"detection area {w * h:.0f}"
        if min(x, y) < 0:
            yield "negative coordinate"
        if x + w > images[row["image_id"]]["width"]:
            yield "box outside"
    truths = by_place(annotations["annotations"])
    for place, found in by_place(results).items():
        boxes = [row["bbox"] for row in truths[place]]
        if not boxes:
            continue
        ious = coco_mask.iou([row["bbox"] for row in found], boxes, [0] * len(boxes))
        yield from (f"IoU {value}" for value in (0.5, 0.75) if (ious == value).any())
        for line in ious:
            if line.max() >= 0.5 and np.count_nonzero(line == line.max()) > 1:
                yield "IoU tie"


def mask_traits(annotations: Json, results: list[Json]) -> Iterator[str]:
    """Forms that masks come in."""
    forms = set()
    for row in annotations["annotations"]:
        segmentation = row["segmentation"]
        if isinstance(segmentation, list):
            forms.add("several polygons" if len(segmentation) > 1 else "polygon")
        else:
            forms.add(f"counts as {type(segmentation['counts']).__name__}")
    yield from forms
    if len(forms) > 2:
        yield "mixed forms"
    if results:
        yield "boxes carried" if "bbox" in results[0] else "no boxes carried"
        assert len({"bbox" in row for row in results}) == 1
    if any(coco_mask.area(row["segmentation"]) == 0 for row in results):
        yield "empty mask"


def count_traits(
    case: Case, masks: bool, *kinds: Callable[[Json, list[Json]], Iterator[str]]
) -> Counter[str]:
    """In how many of the seeds each oddity occurs."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        annotations, results = case(seed, masks)
        counts.update({trait for kind in kinds for trait in kind(annotations, results)})
    return counts


FILE_TRAITS = {
    "image without annotations": 90,
    "image without detections": 60,
    "class without ground truth": 120,
    "unknown class": 40,
    "unsorted ids": 120,
    "shuffled detections": 150,
    "score tie": 120,
    "duplicated detection": 120,
    "annotation id 0": 60,
    "ignore": 60,
    "iscrowd": 60,
    "annotation area 0": 40,
    "annotation area 1024": 60,
    "annotation area 9216": 60,
    "small and large": 60,
}
LVIS_TRAITS = {
    "empty neg list": 150,
    "not exhaustive with ground truth": 90,
    "not exhaustive without ground truth": 60,
    "negative class detected": 90,
    "detection without verdict": 90,
}
BOX_TRAITS = {
    "image above 200 px": 60,
    "detection area 0": 60,
    "detection area 1024": 60,
    "detection area 9216": 60,
    "negative coordinate": 90,
    "box outside": 90,
    "IoU 0.5": 60,
    "IoU 0.75": 60,
    "IoU tie": 90,
}
MASK_TRAITS = {
    "polygon": 90,
    "several polygons": 60,
    "counts as str": 90,
    "counts as list": 60,
    "mixed forms": 60,
    "boxes carried": 90,
    "no boxes carried": 90,
    "empty mask": 60,
}


def assert_counts(counts: Counter[str], least: dict[str, int]) -> None:
    rare = {trait: counts[trait] for trait, count in least.items() if counts[trait] < count}
    assert not rare, f"too few of {len(SEEDS)} seeds: {rare}"


@pytest.mark.long
def test_lvis_boxes_hold_every_oddity() -> None:
    counts = count_traits(lvis_case, False, file_traits, lvis_traits, box_traits)
    assert_counts(counts, FILE_TRAITS | LVIS_TRAITS | BOX_TRAITS)


@pytest.mark.long
def test_coco_boxes_hold_every_oddity() -> None:
    counts = count_traits(coco_case, False, file_traits, box_traits)
    assert_counts(counts, FILE_TRAITS | BOX_TRAITS)


@pytest.mark.long
def test_masks_hold_every_oddity() -> None:
    kinds = file_traits, mask_traits
    without_limits = {key: FILE_TRAITS[key] for key in FILE_TRAITS if "area" not in key}
    without_limits["small and large"] = 40
    assert_counts(count_traits(lvis_case, True, *kinds, lvis_traits), without_limits | LVIS_TRAITS)
    assert_counts(count_traits(coco_case, True, *kinds), without_limits | MASK_TRAITS)


@pytest.mark.long
@pytest.mark.parametrize("case", [lvis_case, coco_case])
@pytest.mark.parametrize("masks", [False, True])
def test_quirks_can_be_left_out(case: Case, masks: bool) -> None:
    for seed in range(100):
        annotations, results = case(seed, masks, quirks=False)
        found = set(file_traits(annotations, results))
        assert not found & {"annotation id 0", "annotation area 0", "unknown class"}


def test_polygons_are_accepted_and_some_are_empty() -> None:
    rng = random.Random(0)
    areas = []
    for _ in range(500):
        polygons, height, width = polygon_case(rng)
        assert all(6 <= len(polygon) <= 24 for polygon in polygons)
        parts = coco_mask.frPyObjects(polygons, height, width)
        areas.append(int(coco_mask.area(coco_mask.merge(parts))))
    assert 20 < areas.count(0) < 250


# --- the references against each other ---


@pytest.mark.long
@pytest.mark.parametrize(
    ("masks", "iou"), [(False, "bbox"), (True, "bbox"), (True, "segm")], ids=str
)
@pytest.mark.parametrize("quirks", [True, False])
def test_slow_equals_lvis(masks: bool, iou: str, quirks: bool) -> None:
    for seed in range(40):
        annotations, results = lvis_case(seed, masks, quirks)
        boxes = "bbox" in results[0]
        expected = evaluate_lvis(annotations, results, iou, max_dets=-1)
        # lvis takes the area from the box if there is one and otherwise from the mask,
        # whichever is evaluated.
        by_area = boxes == (iou == "bbox")
        keys = [key for key in expected if by_area or key[-1] not in "sml"]
        assert_same(evaluate_slow(annotations, results, iou), expected, keys)
        if not quirks:
            corrected = evaluate_slow(annotations, results, iou, exact_lvis=False)
            assert_same(corrected, expected, keys)


@pytest.mark.long
@pytest.mark.parametrize("limit", [1, 3, 8])
def test_a_cut_per_image_is_the_cap_of_lvis(limit: int) -> None:
    for seed in range(30):
        annotations, results = lvis_case(seed, False)
        expected = evaluate_lvis(annotations, results, "bbox", max_dets=limit)
        cut = cut_per_image(results, limit)
        assert_same(evaluate_slow(annotations, cut, "bbox"), expected)
        keep = [any(row is kept for kept in cut) for row in results]
        assert_same(evaluate_slow(annotations, results, "bbox", keep), expected)


@pytest.mark.long
@pytest.mark.parametrize(
    ("masks", "iou"), [(False, "bbox"), (True, "bbox"), (True, "segm")], ids=str
)
def test_slow_equals_pycocotools(masks: bool, iou: str) -> None:
    for seed in range(40):
        annotations, results = coco_case(seed, masks)
        if iou == "segm":
            results = without_boxes(results)
        expected = evaluate_coco(annotations, results, iou)
        expected["AR"] = expected["AR100"]
        by_area = iou == "segm" or not results or "bbox" in results[0]
        areas = ["APs", "APm", "APl", "ARs", "ARm", "ARl"] if by_area else []
        actual = evaluate_slow(annotations, results, iou)
        assert_same(actual, expected, ["AP", "AP50", "AP75", "AR", *areas])


@pytest.mark.long
def test_slow_equals_faster_coco_eval_on_boundaries() -> None:
    for seed in range(30):
        annotations, results = coco_case(seed, masks=True)
        results = without_boxes(results)
        expected = evaluate_boundary(annotations, results)
        assert_same(evaluate_slow(annotations, results, "boundary"), expected, expected)


def only_class(annotations: Json, results: list[Json], class_id: int) -> tuple[Json, list[Json]]:
    """The case without the other classes' categories, annotations and detections."""
    content = {
        **annotations,
        "categories": [one for one in annotations["categories"] if one["id"] == class_id],
        "annotations": [
            row for row in annotations["annotations"] if row["category_id"] == class_id
        ],
    }
    return content, [row for row in results if row["category_id"] == class_id]


@pytest.mark.long
@pytest.mark.parametrize("masks", [False, True])
def test_the_pool_of_one_class_is_its_average_precision(masks: bool) -> None:
    iou = "segm" if masks else "bbox"
    for seed in range(40):
        annotations, results = lvis_case(seed, masks)
        expected = evaluate_lvis_per_class(annotations, results, iou, max_dets=-1)
        assert list(expected) == sorted(one["id"] for one in annotations["categories"])
        for class_id, value in expected.items():
            pooled = evaluate_pool(*only_class(annotations, results, class_id), iou)
            assert_close(pooled["AP"], value)


@pytest.mark.long
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_pool_cuts_each_class_first(limit: int) -> None:
    for seed in range(30):
        annotations, results = lvis_case(seed, False)
        expected = evaluate_pool(annotations, cut_per_class(results, limit), "bbox")
        assert evaluate_pool(annotations, results, "bbox", per_class=limit) == expected


@pytest.mark.long
def test_the_mean_of_classes_is_the_average_precision() -> None:
    for seed in range(30):
        annotations, results = lvis_case(seed, False)
        values = evaluate_lvis_per_class(annotations, results, "bbox").values()
        defined = [value for value in values if value is not None]
        expected = sum(defined) / len(defined) if defined else None
        assert_close(evaluate_lvis(annotations, results, "bbox")["AP"], expected)


def test_the_oracles_leave_their_input_alone() -> None:
    for masks in (False, True):
        iou = "segm" if masks else "bbox"
        lvis, coco = lvis_case(3, masks), coco_case(3, masks)
        before = copy.deepcopy((lvis, coco))
        evaluate_lvis(*lvis, iou)
        evaluate_pool(*lvis, iou)
        evaluate_slow(*lvis, iou)
        evaluate_coco(*coco, iou)
        if masks:
            evaluate_boundary(*coco)
        assert (lvis, coco) == before


# --- worked by hand ---

BOXES = {"a": [0, 0, 10, 10], "b": [20, 0, 10, 10], "c": [40, 0, 10, 10], "far": [80, 80, 10, 10]}


def small_file(*objects: tuple[int, str], frequencies: str = "rc", federated: bool = True) -> Json:
    """One image; objects are (class, box name); classes are numbered from 1; ids from 1."""
    image: Json = {"id": 1, "height": 100, "width": 100}
    if federated:
        image |= {"neg_category_ids": [], "not_exhaustive_category_ids": []}
    return {
        "images": [image],
        "categories": [
            {"id": class_id, "name": f"class {class_id}", "frequency": frequency}
            for class_id, frequency in enumerate(frequencies, 1)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": 1,
                "category_id": class_id,
                "bbox": BOXES[name],
                "area": 100,
                "iscrowd": 0,
            }
            for number, (class_id, name) in enumerate(objects, 1)
        ],
    }


def found(class_id: int, name: str, score: float) -> Json:
    return {"image_id": 1, "category_id": class_id, "bbox": BOXES[name], "score": score}


def test_the_toy_of_the_paper() -> None:
    """A limit of 2 detections per image; A is correct, and B 4 times in 5."""
    annotations = small_file((1, "a"), (1, "b"), (2, "c"))

    def expected_ap(class_cap: int, image_cap: int) -> float:
        total = 0.0
        for box, chance in (("c", 0.8), ("far", 0.2)):
            results = [found(1, "a", 1.0), found(1, "b", 1.0), found(2, box, 0.8)]
            cut = cut_per_class(results, class_cap)
            value = evaluate_lvis(annotations, cut, "bbox", image_cap)["AP"]
            assert value is not None
            total += chance * value
        return total

    assert expected_ap(class_cap=10, image_cap=2) == pytest.approx(0.5)
    assert expected_ap(class_cap=1, image_cap=2) == pytest.approx((51 / 101 + 0.8) / 2)
    assert expected_ap(class_cap=10, image_cap=-1) == pytest.approx(0.9)


def test_the_pool_ranks_classes_together() -> None:
    """Right, wrong, right over 2 objects: precision is 1 up to recall 1/2, then 2/3."""
    annotations = small_file((1, "a"), (2, "c"))
    results = [found(1, "a", 0.9), found(2, "far", 0.8), found(2, "c", 0.7)]
    pooled = evaluate_pool(annotations, results, "bbox")
    assert pooled["AP"] == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert pooled["APr"] == pytest.approx(1)
    assert pooled["APc"] == pytest.approx(1 / 2)
    assert pooled["APf"] is None
    assert evaluate_lvis(annotations, results, "bbox")["AP"] == pytest.approx((1 + 1 / 2) / 2)


@pytest.mark.parametrize("federated", [True, False])
def test_an_annotation_of_id_0_reads_as_unmatched_unless_corrected(federated: bool) -> None:
    annotations = small_file((1, "a"), federated=federated)
    annotations["annotations"][0]["id"] = 0
    results = [found(1, "a", 0.9)]
    for evaluate in (evaluate_slow, evaluate_pool):
        assert evaluate(annotations, results, "bbox", exact_lvis=True)["AP"] == 0
        assert evaluate(annotations, results, "bbox", exact_lvis=False)["AP"] == pytest.approx(1)


def test_an_annotation_of_area_0_counts_unless_exact() -> None:
    annotations = small_file((1, "a"), (1, "b"))
    annotations["annotations"][1]["area"] = 0
    results = [found(1, "a", 0.9)]
    for evaluate in (evaluate_slow, evaluate_pool):
        exact = evaluate(annotations, results, "bbox", exact_lvis=True)["AP"]
        corrected = evaluate(annotations, results, "bbox", exact_lvis=False)["AP"]
        assert exact == pytest.approx(1)
        assert corrected == pytest.approx(51 / 101)


def test_an_unknown_class_eats_the_budget_of_lvis() -> None:
    annotations = small_file((1, "a"))
    results = [found(9, "a", 0.9), found(1, "a", 0.8)]
    assert evaluate_lvis(annotations, results, "bbox", max_dets=1)["AP"] == 0
    corrected = cut_per_image(drop_unknown(annotations, results), 1)
    assert evaluate_slow(annotations, corrected, "bbox")["AP"] == pytest.approx(1)


def test_no_detections_of_a_coco_file() -> None:
    annotations = small_file((1, "a"), federated=False)
    expected = evaluate_coco(annotations, [], "bbox")
    assert (expected["AP"], expected["AR100"], expected["APl"]) == (0, 0, None)
    assert evaluate_slow(annotations, [], "bbox")["AP"] == 0
    assert evaluate_pool(annotations, [], "bbox")["AP"] == 0


def test_a_boundary_overlap_is_the_smaller_one_except_for_crowds() -> None:
    """100 x 100, so a boundary 3 deep; the detection is the ground truth less its inside."""
    inside = np.zeros((100, 100), np.uint8, order="F")
    inside[20:60, 20:60] = 1
    ring = inside.copy(order="F")
    ring[24:56, 24:56] = 0
    truth, detection = (coco_mask.encode(mask) for mask in (inside, ring))
    mask_iou = (40**2 - 32**2) / 40**2
    # The ring is 4 wide, so eroding it 3 deep from both sides leaves nothing: all boundary.
    boundary_iou = (40**2 - 34**2) / (40**2 - 32**2)
    assert boundary_iou > mask_iou
    assert boundary_ious([detection], [truth], [0]) == pytest.approx(mask_iou)
    moved = coco_mask.encode(np.asfortranarray(np.roll(inside, 3, axis=1)))
    plain, crowd = boundary_ious([moved], [truth, truth], [0, 1])[0]
    assert plain < coco_mask.iou([moved], [truth], [0])[0, 0]
    assert crowd == pytest.approx(37 / 40)
    assert boundary_ious([], [truth], [0]).shape == (0, 1)
