"""Annotation files to columns, and the errors about invalid ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.files.records import masks_from_segmentations
from lvdet.training.data import read_dataset
from lvdet.training.records.vocabulary import Vocabulary
from training.data.small_sets import SmallSet, random_set


@pytest.fixture
def small(tmp_path):
    """Three images, classes not in order, annotations of the images in turn."""
    made = SmallSet(tmp_path / "images")
    for number, name in ((7, "f"), (2, "r"), (5, "c")):
        made.category(number, frequency=name, image_count=99, instance_count=99)
    made.image(30, 20, 40)
    made.image(10, 16, 16)
    made.image(20, 8, 8)
    made.annotation(10, 5, (1, 2, 3, 4), [[1, 2, 4, 2, 4, 6], [0, 0, 1, 0, 1, 1, 0, 1]])
    made.annotation(30, 7, (35, -5, 20, 10))  # reaches over the corner
    made.annotation(10, 2, (2.5, 3, 1, 1), {"size": [16, 16], "counts": [51, 1, 204]})
    made.annotation(30, 7, (0, 0, 8, 0.5))  # too low
    made.annotation(10, 5, (5, 5, 8, 8))
    made.annotation(20, 2, (0, 0, 8, 8), {"size": [8, 8], "counts": "P2"}, iscrowd=1)
    made.annotation(20, 2, (7.5, 0, 5, 5))  # half a pixel is in the image
    return made


def test_columns(small):
    data = small.read()
    assert len(data) == 3
    assert data.image_ids.tolist() == [10, 20, 30]
    assert data.size.tolist() == [[16, 16], [8, 8], [20, 40]]
    assert data.category_ids.tolist() == [2, 5, 7]
    assert data.category_names == ["class 2", "class 5", "class 7"]
    assert data.frequency == ["r", "c", "f"]
    assert data.first.tolist() == [0, 3, 3, 4]
    assert data.label.tolist() == [1, 0, 1, 2]
    assert data.box.tolist() == [[1, 2, 4, 6], [2.5, 3, 3.5, 4], [5, 5, 13, 13], [35, 0, 40, 5]]
    assert data.image_count.tolist() == [1, 1, 1]
    assert data.instance_count.tolist() == [1, 2, 1]
    assert [classes.tolist() for classes in data.image_classes] == [[0, 1], [], [2]]
    assert data.trainable.tolist() == [0, 2]
    assert Vocabulary.of(data).frequencies.images == 2, "EQL's fractions are of these"
    assert [data.path(row).name for row in range(3)] == ["10.png", "20.png", "30.png"]
    assert data.path(1).is_file()


def test_many_annotations_against_a_plain_count(tmp_path):
    made = random_set(tmp_path, images=25)
    data = made.read()
    for row, image in enumerate(made.images):
        of_image = [a for a in made.annotations if a["image_id"] == image["id"]]
        at = slice(data.first[row], data.first[row + 1])
        assert data.label[at].tolist() == [a["category_id"] - 1 for a in of_image]
        corners = [[x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in of_image)]
        assert data.box[at].tolist() == corners
        assert data.image_classes[row].tolist() == sorted({a["category_id"] - 1 for a in of_image})
        expected = masks_from_segmentations([a["segmentation"] for a in of_image], "masks")
        masks = data.masks_of(row)
        assert [masks.row(i) for i in range(len(masks))] == [
            expected.row(i) for i in range(len(of_image))
        ]
        assert masks.kind.tolist() == expected.kind.tolist()
        assert masks.height.tolist() == [image["height"]] * len(masks)
        assert masks.width.tolist() == [image["width"]] * len(masks)
    for name in range(7):
        of_class = [a["image_id"] for a in made.annotations if a["category_id"] == name + 1]
        assert data.instance_count[name] == len(of_class)
        assert data.image_count[name] == len(set(of_class))


def test_forked_processes_share_the_columns(small):
    """No column is a list of objects, whose reference counts would be written to."""
    data = small.read()
    for name in ("image_ids", "size", "first", "label", "box", "file_names", "file_ends"):
        assert isinstance(getattr(data, name), np.ndarray)
    assert all(isinstance(column, np.ndarray) for column in data.masks.columns)
    whole = data.masks_of(0)
    assert np.shares_memory(whole.data, data.masks.data)


def test_frequency_is_for_all_classes_or_for_none(small):
    small.category(9)
    assert small.read().frequency is None


def test_lvis_names_come_from_addresses(small):
    """There in a folder of the address, and straight in the one given; a file name goes first."""
    for record in small.images:
        record["coco_url"] = f"http://images.example/train2017/{record.pop('file_name')}"
    (small.folder / "train2017").mkdir()
    (small.folder / "10.png").rename(small.folder / "train2017" / "10.png")
    data = small.read()
    found = [data.path(row).relative_to(small.folder).as_posix() for row in range(3)]
    assert found == ["train2017/10.png", "20.png", "30.png"]
    small.images[1]["file_name"] = "other/x.png"
    assert small.read().path(1).name == "20.png"
    del small.images[1]["coco_url"]
    with pytest.raises(InputError, match=r"1 of 3 images are missing, the first is other/x\.png"):
        small.read()


def test_missing_images(small):
    (small.folder / "10.png").unlink()
    (small.folder / "20.png").unlink()
    with pytest.raises(InputError, match=r"2 of 3 images are missing, the first is 10\.png"):
        small.read()
    with pytest.raises(InputError, match="nowhere: no such image folder"):
        read_dataset(small.write(), small.folder / "nowhere")


@pytest.mark.parametrize(
    "name", ["../10.png", "a/../../10.png", "/etc/passwd", "..\\10.png", "x\0.png"]
)
def test_no_name_leads_out_of_the_folder(small, name):
    small.images[1]["file_name"] = name
    with pytest.raises(InputError, match=r"image 10 has the file name .* lies outside"):
        small.read()
    del small.images[1]["file_name"]
    small.images[1]["coco_url"] = "http://images.example/../10.png"
    with pytest.raises(InputError, match="lies outside"):
        small.read()


@pytest.mark.parametrize(
    ("kind", "number", "change", "says"),
    [
        ("annotations", 1, {"image_id": 99}, "annotation row 1: image_id 99 is not in"),
        ("annotations", 2, {"bbox": [1, 2, 3]}, "annotation row 2, byte"),
        ("annotations", 2, {"segmentation": {"size": [16, 8], "counts": "P4"}}, "mask is 16 x 8"),
        ("images", 1, {"id": 30}, "image id 30 occurs more than once"),
        ("images", 1, {"width": 0, "file_name": "a"}, "image 10 is 0 x 16 pixels"),
        ("images", 1, {"file_name": ""}, "image 10 has neither 'file_name' nor 'coco_url'"),
    ],
)
def test_what_is_wrong_is_said(small, kind, number, change, says):
    """Most is left to the tests of the reader."""
    getattr(small, kind)[number] |= change
    if "width" in change:
        small.annotations[:] = [a for a in small.annotations if a["image_id"] != 10]
    with pytest.raises(InputError) as error:
        small.read()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_empty_lists(small):
    for kind in ("images", "categories"):
        content = small.content() | {kind: [], "annotations": []}
        path = small.folder / "a.json"
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=f": no {kind}"):
            read_dataset(path, small.folder)


def test_no_annotations_is_a_dataset(small):
    small.annotations.clear()
    data = small.read()
    assert data.first.tolist() == [0, 0, 0, 0]
    assert data.image_count.tolist() == [0, 0, 0]
    assert [len(classes) for classes in data.image_classes] == [0, 0, 0]
    assert not len(data.trainable)
    assert len(data.masks) == 0
