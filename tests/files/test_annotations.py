"""Annotation files: LVIS v1 and v0.5, COCO, in any layout."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lvdet
from files.annotation_files import assert_holds_truth, assert_same_truth, coco, lvis, lvis_v05
from files.record_files import Json, object_text, parsed, save
from oracles.cases import coco_case, lvis_case
from progress_calls import calling

FORMATS = [coco, lvis, lvis_v05]


def read(folder: Path, content: Json | str | bytes, **options: object) -> lvdet.GroundTruth:
    return lvdet.read_ground_truth(save(folder / "gt.json", content), **options)


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("masks", [True, False])
def test_formats(make: Callable[[], Json], masks: bool, tmp_path: Path) -> None:
    gt = read(tmp_path, make(), masks=masks)
    assert_holds_truth(gt, make(), masks=masks)
    assert gt.source == str(tmp_path / "gt.json")


@pytest.mark.parametrize("make", FORMATS)
def test_layouts(make: Callable[[], Json], tmp_path: Path) -> None:
    content = make()
    for text in (
        json.dumps(content, indent=4),
        json.dumps(content, ensure_ascii=False),
        json.dumps(content, indent=1).replace("\n", "\r\n"),
        json.dumps(content, sort_keys=True, separators=(",", ":")),
        "\n\t " + json.dumps(content) + " \n\n",
        json.dumps(content).replace("images", r"\u0069mages").replace("annot", r"\u0061nnot"),
    ):
        assert json.loads(text) == content
        assert_holds_truth(read(tmp_path, text), content)
    packed = gzip.compress(json.dumps(content).encode())
    assert_holds_truth(read(tmp_path, packed), content)


ORDERS = list(itertools.permutations(["images", "annotations", "categories"]))


@pytest.mark.parametrize("order", ORDERS)
def test_lists_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    content = lvis()
    text = json.dumps({key: content[key] for key in order})
    assert_holds_truth(read(tmp_path, text), content)


@pytest.mark.parametrize("seed", range(30))
def test_random_files_in_random_text(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    content, _ = (lvis_case if seed % 2 else coco_case)(seed, True)
    text = object_text(rng, content, ("", " ", "\n"))
    assert_holds_truth(read(tmp_path, text), parsed(text))


def test_other_keys_of_any_size_are_passed_by(tmp_path: Path) -> None:
    huge = {"a": [{"b": ["},{", "]}", '"\\', {"images": [1, {"id": 2}]}] * 50}] * 500}
    content = {"first": huge} | coco() | {"last": huge, "empty": [{}, [], ""], "none": None}
    text = json.dumps(content)
    assert len(text) > 1 << 20
    assert_holds_truth(read(tmp_path, text), content)


@pytest.mark.parametrize("depth", [1, 100, 500])
def test_other_keys_may_be_deep(depth: int, tmp_path: Path) -> None:
    deep = "[" * depth + "]" * depth
    text = f'{{"info": {deep}, {json.dumps(coco())[1:]}'
    assert_holds_truth(read(tmp_path, text), coco())


@pytest.mark.parametrize("text", ["1", "-1.5e3", '"a"', "null", "true", "[]", "{}", '"},{"'])
def test_other_keys_of_any_kind(text: str, tmp_path: Path) -> None:
    content = json.dumps(coco())
    for whole in (f'{{"a": {text}, {content[1:]}', f'{content[:-1]}, "a": {text}}}'):
        json.loads(whole)
        assert_holds_truth(read(tmp_path, whole), coco())


def test_ids_in_any_order(tmp_path: Path) -> None:
    rng = random.Random(0)
    content = lvis()
    for _ in range(6):
        for key in ("images", "annotations", "categories"):
            rng.shuffle(content[key])
        assert_holds_truth(read(tmp_path, content), content)


@pytest.mark.parametrize("ids", [(0, -5, 1 << 40), (2**63 - 1, -(2**63), 0), (1, 2, 3)])
def test_ids_of_any_size(ids: tuple[int, ...], tmp_path: Path) -> None:
    content = coco()
    new = {row["id"]: number for row, number in zip(content["images"], ids, strict=True)}
    for image in content["images"]:
        image["id"] = new[image["id"]]
    for row, number in zip(content["annotations"], ids, strict=True):
        row["image_id"], row["id"] = new[row["image_id"]], number
    assert_holds_truth(read(tmp_path, content), content)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ""),
        ({"file_name": "a.jpg"}, "a.jpg"),
        ({"file_name": "val/a.jpg"}, "val/a.jpg"),
        ({"coco_url": "http://images.cocodataset.org/val2017/0.jpg"}, "val2017/0.jpg"),
        ({"coco_url": "http://h/val2017/0.jpg", "file_name": "a.jpg"}, "a.jpg"),
        ({"file_name": "a.jpg", "coco_url": "http://h/val2017/0.jpg"}, "a.jpg"),
        ({"file_name": "é\u2028/𝄞.jpg"}, "é\u2028/𝄞.jpg"),
    ],
)
def test_names_of_images(keys: Json, expected: str, tmp_path: Path) -> None:
    content = coco()
    content["images"] = [{"id": 1, "height": 2, "width": 3} | keys]
    content["annotations"] = []
    images = read(tmp_path, content).images
    assert images.file_names == (expected,)
    assert images.addresses == ("val2017/0.jpg" if "coco_url" in keys else "",)


def test_names_of_classes(tmp_path: Path) -> None:
    names = ["", "a b", 'q"', "\\", "a/b", "é", "猫", "𝄞", "\n\t\r\b\f\x00\x1f", "ÿ\u2028", "r"]
    content = coco() | {"annotations": []}
    content["categories"] = [{"id": i, "name": name} for i, name in enumerate(names)]
    for ensure_ascii in (True, False):
        gt = read(tmp_path, json.dumps(content, ensure_ascii=ensure_ascii))
        assert gt.categories.names == tuple(names)


def test_a_class_without_a_name(tmp_path: Path) -> None:
    content = coco() | {"annotations": [], "categories": [{"id": 4}]}
    assert read(tmp_path, content).categories.names == ("",)


def test_half_a_surrogate_has_no_character(tmp_path: Path) -> None:
    content = coco() | {"annotations": [], "categories": [{"id": 4, "name": "a\ud800b\udc00"}]}
    assert read(tmp_path, content).categories.names == ("a\ufffdb\ufffd",)


def test_frequencies(tmp_path: Path) -> None:
    content = lvis()
    del content["categories"][0]["frequency"]
    gt = read(tmp_path, content)
    assert_holds_truth(gt, content)
    assert {name: rows.tolist() for name, rows in gt.categories.groups().items()} == {
        "r": [0],  # id 2
        "c": [2],  # id 90
        "f": [],
    }


def test_lists_with_ids_of_no_class(tmp_path: Path) -> None:
    content = lvis()
    for image, negative, open_ in zip(
        content["images"],
        ([999, 2, -1, 90], [4_000_000_000], [5, 5, 2]),
        ([0], [90, 91, 2, 1], []),
        strict=True,
    ):
        image["neg_category_ids"], image["not_exhaustive_category_ids"] = negative, open_
    gt = read(tmp_path, content)
    assert_holds_truth(gt, content)
    assert gt.negative is not None
    ids = gt.categories.ids[gt.negative.category].tolist()
    assert ids == [5, 5, 2, 2, 90]  # images 4, 17, 30
    assert gt.negative.offsets.tolist() == [0, 0, 3, 5]


@pytest.mark.parametrize("key", ["iscrowd", "ignore"])
@pytest.mark.parametrize(
    ("value", "flag"), [(0, False), (1, True), (False, False), (True, True), (0.0, False)]
)
@pytest.mark.parametrize("make", FORMATS)
def test_flags(
    key: str, value: object, flag: bool, make: Callable[[], Json], tmp_path: Path
) -> None:
    content = make()
    for row in content["annotations"]:
        row[key] = value
    gt = read(tmp_path, content)
    assert getattr(gt, "crowd" if key == "iscrowd" else key).tolist() == [flag] * 3
    assert_holds_truth(gt, content)


def test_no_masks_in_the_file(tmp_path: Path) -> None:
    content = coco()
    for row in content["annotations"]:
        del row["segmentation"]
    gt = read(tmp_path, content)
    assert_holds_truth(gt, content)
    assert gt.masks is None


@pytest.mark.parametrize("place", range(3))
def test_masks_in_some_rows(place: int, tmp_path: Path) -> None:
    for value in ("no key", None):
        content = lvis()
        for row, annotation in enumerate(content["annotations"]):
            if row != place:
                annotation["segmentation"] = None
                if value:
                    del annotation["segmentation"]
        assert_holds_truth(read(tmp_path, content), content)


def test_a_file_without_rows(tmp_path: Path) -> None:
    gt = read(tmp_path, {"images": [], "annotations": [], "categories": []})
    assert (len(gt), len(gt.images), len(gt.categories)) == (0, 0, 0)
    assert gt.box.shape == (0, 4)
    content = lvis() | {"annotations": []}
    assert_holds_truth(read(tmp_path, content), content)


def test_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []
    gt = read(tmp_path, coco(), progress=calling(lambda *news: seen.append(news)))
    assert_holds_truth(gt, coco())
    assert seen[-1][0] == seen[-1][1] == (tmp_path / "gt.json").stat().st_size


# Written and read again


def require_same_again(gt: lvdet.GroundTruth, folder: Path, **options: object) -> None:
    lvdet.write_ground_truth(gt, folder / "again.json")
    again = lvdet.read_ground_truth(folder / "again.json", **options)
    assert_same_truth(gt, again)
    assert again.source == str(folder / "again.json")


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("masks", [True, False])
def test_written_and_read_again(make: Callable[[], Json], masks: bool, tmp_path: Path) -> None:
    content = make()
    content["annotations"][0]["ignore"] = 1
    require_same_again(read(tmp_path, content, masks=masks), tmp_path, masks=masks)


@pytest.mark.parametrize("seed", range(40))
def test_random_files_written_and_read_again(seed: int, tmp_path: Path) -> None:
    content, _ = (lvis_case if seed % 2 else coco_case)(seed, seed % 4 < 2)
    require_same_again(read(tmp_path, content), tmp_path)


def test_a_crowd_of_an_lvis_file_is_written(tmp_path: Path) -> None:
    content = lvis()
    content["annotations"][1]["iscrowd"] = 1
    gt = read(tmp_path, content)
    assert gt.crowd.tolist() == [False, True, False]
    require_same_again(gt, tmp_path)


def test_what_is_written_is_json(tmp_path: Path) -> None:
    gt = read(tmp_path, lvis())
    lvdet.write_ground_truth(gt, tmp_path / "again.json")
    content = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert_holds_truth(gt, content)
    assert np.array_equal([row["id"] for row in content["annotations"]], gt.id)
