"""Parquet files with a row for each image: the same rows as records are the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lvdet
from files.record_files import Json, assert_holds, encoded, one_line, refused, save
from files.test_image_names import truth
from lvdet.files.convert import convert
from lvdet.files.known_images import KnownImages
from lvdet.files.stream import detection_tables
from lvdet.plausibility.check import check

COUNTS = {7: 5, 8: 0, 9: 1, 12: 30, 13: 2, 14: 0, 15: 3}
Boxes = list[list[float]]


def lists() -> list[Json]:
    rng = np.random.default_rng(8)
    return [
        {
            "image_id": image,
            "scores": rng.random(count).tolist(),
            "labels": [int(label) for label in rng.choice([3, 5], count)],
            "boxes": [
                [1.0, 2.0, *rng.integers(5, 20, 2).astype(float).tolist()] for _ in range(count)
            ],
        }
        for image, count in COUNTS.items()
    ]


def records(images: list[Json]) -> list[Json]:
    return [
        {"image_id": image["image_id"], "score": score, "category_id": label, "bbox": box}
        for image in images
        for score, label, box in zip(image["scores"], image["labels"], image["boxes"], strict=True)
    ]


def parquet(
    folder: Path,
    images: list[Json],
    types: Json | None = None,
    box_format: str | None = None,
    names: dict[str, str] | None = None,
) -> Path:
    names = names or {}
    columns = {
        names.get(key, key): pa.array([image[key] for image in images], (types or {}).get(key))
        for key in images[0]
    }
    table = pa.table(columns)
    if box_format is not None:
        table = table.replace_schema_metadata({"box_format": box_format})
    pq.write_table(table, folder / "r.parquet", row_group_size=3)
    return folder / "r.parquet"


def flat(images: list[Json]) -> list[Json]:
    return [image | {"boxes": [side for box in image["boxes"] for side in box]} for image in images]


@pytest.mark.parametrize(
    "types",
    [
        {},
        {"boxes": pa.large_list(pa.list_(pa.float32(), 4)), "scores": pa.large_list(pa.float64())},
        {"boxes": pa.list_(pa.list_(pa.int64())), "labels": pa.list_(pa.float64())},
        {"image_id": pa.float64(), "labels": pa.list_(pa.uint8())},
    ],
)
@pytest.mark.parametrize("form", ["nested", "flat", "aggregated"])
def test_rows_of_lists(types: Json, form: str, tmp_path: Path, pieces: None) -> None:
    images = lists()
    names = {"scores": "score", "labels": "category_id", "boxes": "bbox"}
    if form == "flat":
        types = {key: kind for key, kind in types.items() if key != "boxes"}
    path = parquet(
        tmp_path,
        flat(images) if form == "flat" else images,
        types,
        names=names if form == "aggregated" else None,
    )
    assert_holds(lvdet.read_detections(path), records(images))
    tables = list(detection_tables(path))
    assert max(map(len, tables)) <= 7
    assert np.concatenate([t.score for t in tables]).tolist() == [
        row["score"] for row in records(images)
    ]
    gt = truth(tmp_path)
    plain = save(tmp_path / "plain.json", records(images))
    assert (
        lvdet.evaluate(gt, path).to_dict()["protocols"]
        == (lvdet.evaluate(gt, plain).to_dict()["protocols"])
    )
    assert not [problem for problem in check(gt, path) if problem.row is not None]


@pytest.mark.parametrize("name", ["xywh", "xyxy", "cxcywh", "xywhn", "xyxyn", "cxcywhn"])
def test_boxes_in_the_format_that_the_file_names(name: str, tmp_path: Path) -> None:
    images = lists()
    changed = []
    for image in images:
        box = np.array(image["boxes"]).reshape(-1, 4)
        if name.startswith("xyxy"):
            box[:, 2:] += box[:, :2]
        if name.startswith("cxcywh"):
            box[:, :2] += box[:, 2:] / 2
        if name.endswith("n"):
            box /= [40, 50, 40, 50]
        changed.append(image | {"boxes": box.tolist()})
    path, gt = parquet(tmp_path, changed, box_format=name), truth(tmp_path)
    expected = np.array([row["bbox"] for row in records(images)])
    np.testing.assert_allclose(lvdet.read_detections(path, images=gt).box, expected, atol=1e-12)
    found = [table.box for table in detection_tables(path, images=KnownImages.of(gt))]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-12)
    convert(path, tmp_path / "plain.json", box_format=name, images=gt)  # not twice
    table = lvdet.read_detections(tmp_path / "plain.json")
    np.testing.assert_allclose(table.box, expected, atol=1e-12)
    if name.endswith("n"):
        refused(path, "boxes are fractions of the image size: pass the annotations for the sizes")
    if name not in ("xywh", "xyxy"):
        with pytest.raises(lvdet.InputError, match=f"declares its boxes as {name}, not xyxy"):
            convert(path, tmp_path / "plain.json", box_format="xyxy", images=gt)


def test_columns_that_name_their_format_are_not_declared_otherwise(tmp_path: Path) -> None:
    """x, y, w, h are what they are, whatever the metadata says."""
    columns = {"image_id": [1], "category_id": [1], "score": [0.5]}
    columns |= {"x": [1.0], "y": [2.0], "w": [3.0], "h": [4.0]}
    table = pa.table(columns).replace_schema_metadata({"box_format": "xyxy"})
    pq.write_table(table, tmp_path / "r.parquet")
    for box_format, expected in (("xywh", [1, 2, 3, 4]), ("xyxy", [1, 2, 2, 2])):
        convert(tmp_path / "r.parquet", tmp_path / "plain.json", box_format=box_format)
        assert lvdet.read_detections(tmp_path / "plain.json").box.tolist() == [expected]


def with_image(**changes: Any) -> list[Json]:
    images = lists()
    images[3] |= {"scores": [0.5, 0.25], "labels": [3, 5], "boxes": [[1.0, 2.0, 3.0, 4.0]] * 2}
    images[3] |= changes
    return images


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (with_image(labels=[3]), "row 3: 'labels' has 1 items, but 'scores' has 2"),
        (with_image(boxes=[[1.0, 2.0, 3.0, 4.0]]), "row 3: 'boxes' has 1 items"),
        (with_image(boxes=[[1.0, 2.0, 3.0]] * 2), "row 3: an item of 'boxes' has 3 numbers"),
        (with_image(boxes=[[1.0, 2.0, 3.0, None]] * 2), "row 3: an item of 'boxes' is null"),
        (with_image(boxes=[None, [1.0, 2.0, 3.0, 4.0]]), "row 3: an item of 'boxes' is null"),
        (with_image(scores=None), "row 3: 'scores' is null"),
        (with_image(labels=None), "row 3: 'labels' is null"),
        (with_image(boxes=None), "row 3: 'boxes' is null"),
        (with_image(scores=[0.5, None]), "row 3: an item of 'scores' is null"),
        (with_image(labels=[3, None]), "row 3: an item of 'labels' is null"),
        (with_image(scores=[0.5, float("nan")]), "row 3: score is nan"),
        (with_image(boxes=[[1.0, 2.0, -3.0, 4.0]] * 2), "row 3: bbox is [1, 2, -3, 4]"),
        (flat(with_image(boxes=[[1.0, 2.0, 3.0]])), "row 3: 'boxes' has 3 numbers"),
    ],
)
def test_lists_that_are_refused(images: list[Json], says: str, tmp_path: Path) -> None:
    refused(parquet(tmp_path, images), says)


def test_labels_that_are_no_integers(tmp_path: Path) -> None:
    types = {"labels": pa.list_(pa.float64())}
    for wrong in (2.5, float("nan")):
        path = parquet(tmp_path, with_image(labels=[3.0, wrong]), types)
        refused(path, f"row 3: an item of 'labels' is {wrong}")


def test_other_columns_that_are_refused(tmp_path: Path) -> None:
    refused(parquet(tmp_path, lists(), box_format="yxyx"), "box format is 'yxyx', expected one of")
    images = [{key: value for key, value in row.items() if key != "labels"} for row in lists()]
    refused(parquet(tmp_path, images), "no column 'labels'")
    images = [{key: value for key, value in row.items() if key != "boxes"} for row in lists()]
    refused(parquet(tmp_path, images), "no columns for boxes")


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("labels", [3] * 7, "column 'labels' has type int64, expected lists"),
        ("boxes", [2.5] * 7, "column 'boxes' has type double, expected lists"),
        ("segmentations", ["x"] * 7, "column 'segmentations' has type string, expected lists"),
        ("labels", [["a"] * n for n in COUNTS.values()], "items of type string, expected numbers"),
        ("boxes", [["a"] * 4 * n for n in COUNTS.values()], "items of type string"),
    ],
)
def test_columns_of_another_type(column: str, values: list[Any], says: str, tmp_path: Path) -> None:
    images = [image | {column: value} for image, value in zip(lists(), values, strict=True)]
    refused(parquet(tmp_path, images), says)


def test_a_detection_without_box_or_mask(tmp_path: Path) -> None:
    mask = encoded(np.eye(4, dtype=np.uint8))
    images = [
        {key: image[key] for key in ("image_id", "scores", "labels")}
        | {"segmentations": [mask] * len(image["scores"])}
        for image in lists()
    ]
    images[3]["segmentations"] = [*images[3]["segmentations"][1:], None]
    refused(parquet(tmp_path, images), "row 3: a detection has neither box nor mask")


def test_images_without_any_detection(tmp_path: Path) -> None:
    """The items of the lists are of no type then."""
    nothing = {"scores": [], "labels": [], "boxes": []}
    path = parquet(tmp_path, [{"image_id": number} | nothing for number in (7, 8)])
    assert pq.read_schema(path).field("scores").type == pa.list_(pa.null())
    assert len(lvdet.read_detections(path)) == 0


def test_an_unknown_image_is_named_by_its_row(tmp_path: Path) -> None:
    gt, path = truth(tmp_path), parquet(tmp_path, with_image(image_id=99))
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.evaluate(gt, path)
    says = f"{path}, row 3: image_id 99 is not in {gt} (2 detections)"
    assert one_line(caught.value) == says
    assert says in [str(problem) for problem in check(gt, path)]


def test_texts_as_image_ids_and_masks(tmp_path: Path) -> None:
    pixels = np.zeros((50, 40), dtype=np.uint8)
    pixels[3:9, 4:8] = 1
    images = [
        image | {"image_id": name, "segmentations": [encoded(pixels)] * len(image["scores"])}
        for name, image in zip(["12", "000000000042"], [lists()[3], lists()[0]], strict=True)
    ]
    path, gt = parquet(tmp_path, images), truth(tmp_path)
    plain = records([images[0] | {"image_id": 12}, images[1] | {"image_id": 7}])
    plain = [row | {"segmentation": encoded(pixels)} for row in plain]
    assert_holds(lvdet.read_detections(path, images=gt), plain)
    images[1]["segmentations"] = images[1]["segmentations"][1:]
    path = parquet(tmp_path, images)
    with pytest.raises(lvdet.InputError, match="row 1: 'segmentations' has 4 items"):
        lvdet.read_detections(path, images=gt)
