"""Which images are predicted, and under which ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lvdet.errors import InputError
from lvdet.inference.image_list import (
    annotated_images,
    images_in,
    images_of,
    sidecar,
    write_sidecar,
)


def write(path: Path, images: list[dict[str, Any]], **others: Any) -> Path:
    path.write_text(json.dumps({"images": images, "categories": [], **others}))
    return path


def test_file_names_and_addresses(tmp_path: Path) -> None:
    """As COCO and LVIS have them; annotations are not needed."""
    folder = tmp_path / "coco"
    (folder / "val2017").mkdir(parents=True)
    for name in ("a.jpg", "val2017/b.jpg", "c.jpg"):
        (folder / name).touch()
    source = write(
        tmp_path / "val.json",
        [
            {"id": 7, "file_name": "a.jpg"},
            {"id": -2, "coco_url": "http://images/val2017/b.jpg"},
            {"id": 3, "coco_url": "http://images/val2017/c.jpg"},
            {"id": 9, "file_name": "val2014_b.jpg", "coco_url": "http://images/val2017/b.jpg"},
            {"id": 10, "file_name": "old/c.jpg", "coco_url": "http://images/val2017/b.jpg"},
            {"id": 11, "file_name": "a.jpg", "coco_url": "http://images/val2017/b.jpg"},
        ],
        categories=[{"id": 4, "name": "cat"}],
    )
    listed = images_of(source, folder)
    assert listed.images == [
        (-2, folder / "val2017/b.jpg"),
        (3, folder / "c.jpg"),
        (7, folder / "a.jpg"),
        (9, folder / "val2017/b.jpg"),
        (10, folder / "val2017/b.jpg"),
        (11, folder / "a.jpg"),
    ]
    assert listed.categories == {4: "cat"}
    for wanted in ("-2", "b.jpg", "b", "val2017/b.jpg"):
        assert listed.find(wanted)[0] == -2
    with pytest.raises(InputError, match="no image has the id or file name 'd'"):
        listed.find("d")


def test_classes(tmp_path: Path) -> None:
    """Those that only the file has are refused, those that only the model has are noted."""
    (tmp_path / "a.jpg").touch()
    categories = [{"id": number, "name": f"c{number}"} for number in (1, 3, 4, 7)]
    images = [{"id": 7, "file_name": "a.jpg"}]
    listed = images_of(write(tmp_path / "val.json", images, categories=categories), tmp_path)
    same = [1, 3, 4, 7], ["c1", "c3", "c4", "c7"]
    listed.require_classes_of(*same)
    assert listed.missing_note(*same) is None
    with pytest.raises(InputError) as error:
        listed.require_classes_of([1, 4], ["c1", "c4"])
    assert str(error.value) == (
        f"{tmp_path / 'val.json'}: 2 of 4 categories are not among the checkpoint's 2 classes, "
        "such as 3 'c3'; their AP would be 0"
    )
    more = [0, 1, 2, 3, 4, 7], ["c0", "c1", "c2", "c3", "c4", "c7"]
    listed.require_classes_of(*more)
    assert listed.missing_note(*more) == (
        f"{tmp_path / 'val.json'} lacks 2 of the checkpoint's 6 classes, such as 0 "
        "'c0'; detections of these classes are written too"
    )
    folder = images_in(tmp_path)
    folder.require_classes_of(*more)
    assert folder.missing_note(*more) is None


def test_a_folder(tmp_path: Path) -> None:
    for name in ("b.png", "a.JPG", "notes.txt", ".hidden.png"):
        (tmp_path / name).touch()
    (tmp_path / "inner.png").mkdir()
    listed = images_in(tmp_path)
    assert listed.images == [(1, tmp_path / "a.JPG"), (2, tmp_path / "b.png")]
    out = sidecar(tmp_path / "found.json")
    assert out.name == "found.images.json"
    write_sidecar(listed, [4], ["cat"], out)
    again = annotated_images(out, tmp_path)
    assert (again.images, again.categories) == (listed.images, {4: "cat"})


def test_what_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.jpg").touch()
    cases: list[tuple[list[Any], str]] = [
        (
            [{"id": 1, "file_name": "a.jpg"}, {"id": 1, "file_name": "a.jpg"}],
            "image id 1 occurs more than once",
        ),
        ([{"id": "1", "file_name": "a.jpg"}], "image row 0"),
        (["a.jpg"], "row 0, byte 12: expected"),
        ([{"id": 1}], "neither 'file_name' nor 'coco_url'"),
        ([{"id": 1, "file_name": "../a.jpg"}], "lies outside the image folder"),
        ([{"id": 1, "file_name": "b.jpg"}], "1 of 1 images are missing, the first is b.jpg"),
        ([], "no images"),
    ]
    for images, says in cases:
        with pytest.raises(InputError, match=says):
            images_of(write(tmp_path / "val.json", images), tmp_path)
    for source, folder, says in (
        (tmp_path / "val.json", None, "pass --images FOLDER"),
        (tmp_path / "a.jpg", None, "an image, expected"),
        (tmp_path / "none", None, "no such annotation file or folder"),
        (tmp_path, tmp_path, "is a folder of images; --images applies only to annotation files"),
        (tmp_path / "empty", None, "no images found"),
    ):
        with pytest.raises(InputError, match=says):
            images_of(source, folder)
