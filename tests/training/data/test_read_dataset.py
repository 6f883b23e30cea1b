"""Annotation files to columns, and what is said of those that cannot be used."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.training.data import json_arrays, read_dataset
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
    made.annotation(20, 2, (7.5, 0, 5, 5))  # half a pixel of it is in the image
    return made


def test_columns(small):
    data = small.read()
    assert len(data) == 3
    assert data.image_ids.tolist() == [30, 10, 20]
    assert data.size.tolist() == [[20, 40], [16, 16], [8, 8]]
    assert data.category_ids.tolist() == [2, 5, 7]
    assert data.category_names == ["class 2", "class 5", "class 7"]
    assert data.frequency == ["r", "c", "f"]
    assert data.first.tolist() == [0, 1, 4, 4]
    assert data.label.tolist() == [2, 1, 0, 1]
    assert data.box.tolist() == [[35, 0, 40, 5], [1, 2, 4, 6], [2.5, 3, 3.5, 4], [5, 5, 13, 13]]
    assert data.image_count.tolist() == [1, 1, 1]
    assert data.instance_count.tolist() == [1, 2, 1]
    assert [classes.tolist() for classes in data.image_classes] == [[2], [0, 1], []]
    assert data.trainable.tolist() == [0, 1]
    assert [data.path(row).name for row in range(3)] == ["30.png", "10.png", "20.png"]
    assert data.path(1).is_file()


def test_masks(small):
    shapes = small.read().shapes
    assert [part.tolist() for part in shapes.polygons(1)] == [
        [[1, 2], [4, 2], [4, 6]],
        [[0, 0], [1, 0], [1, 1], [0, 1]],
    ]
    assert shapes.runs(1) is None
    assert shapes.polygons(2) == []
    assert shapes.runs(2).tolist() == [51, 1, 204]
    assert shapes.polygons(0)[0].tolist() == [[35, -5], [55, -5], [55, 5], [35, 5]]
    assert shapes.known.tolist() == [True] * 4


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
        for place, annotation in enumerate(of_image, start=at.start):
            if isinstance(annotation["segmentation"], dict):
                assert data.shapes.runs(place).tolist() == annotation["segmentation"]["counts"]
            else:
                points = np.concatenate([p.ravel() for p in data.shapes.polygons(place)])
                assert points.tolist() == annotation["segmentation"][0]
    for name in range(7):
        of_class = [a["image_id"] for a in made.annotations if a["category_id"] == name + 1]
        assert data.instance_count[name] == len(of_class)
        assert data.image_count[name] == len(set(of_class))


def same(a, b):
    for name in ("image_ids", "size", "category_ids", "first", "label", "box", "file_names"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("coordinates", "part_ends", "parts", "text", "letters"):
        np.testing.assert_array_equal(getattr(a.shapes, name), getattr(b.shapes, name))


@pytest.mark.parametrize("chunk", [1, 7, 100])
@pytest.mark.parametrize("indent", [None, 3])
def test_layout_and_chunks_change_nothing(small, chunk, indent, monkeypatch):
    small.category(9, name='née \\ "[{' + "\U0001f600")
    expected = small.read()
    monkeypatch.setattr(json_arrays, "CHUNK", chunk)
    path = small.write(indent=indent, ensure_ascii=False)
    news = []
    data = read_dataset(path, small.folder, update=lambda done, of: news.append((done, of)))
    same(data, expected)
    assert data.category_names[-1] == 'née \\ "[{\U0001f600'
    assert news[-1] == (path.stat().st_size,) * 2


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
    assert found == ["30.png", "train2017/10.png", "20.png"]
    small.images[1]["file_name"] = "other/x.png"
    with pytest.raises(InputError, match=r"1 of 3 images are not there, the first is other/x\.png"):
        small.read()


def test_missing_images(small):
    (small.folder / "10.png").unlink()
    (small.folder / "20.png").unlink()
    with pytest.raises(InputError, match=r"2 of 3 images are not there, the first is 10\.png"):
        small.read()
    with pytest.raises(InputError, match="nowhere: there is no such folder"):
        read_dataset(small.write(), small.folder / "nowhere")


@pytest.mark.parametrize(
    "name", ["../10.png", "a/../../10.png", "/etc/passwd", "..\\10.png", "x\0.png"]
)
def test_no_name_leads_out_of_the_folder(small, name):
    small.images[1]["file_name"] = name
    with pytest.raises(InputError, match=r"images, number 1: file name .* leads out of"):
        small.read()
    del small.images[1]["file_name"]
    small.images[1]["coco_url"] = "http://images.example/../10.png"
    with pytest.raises(InputError, match="leads out of"):
        small.read()


def test_every_cut_file_is_an_input_error(small):
    path = small.write()
    text = path.read_text()
    for end in range(0, len(text), 11):
        path.write_text(text[:end])
        with pytest.raises(InputError, match=r"not JSON: .* at character") as error:
            read_dataset(path, small.folder)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected an object at character 0"),
        ("[]", "expected an object at character 0"),
        ("{}", "'annotations' is missing"),
        ('{"annotations": [], "images": []}', "'categories' is missing"),
        ('{"annotations": {}}', "expected 'annotations' as an array at character 16"),
        ('{"annotations": [1]}', "annotations, number 0: is not an object"),
        ('{"annotations": [}', "expecting value at character 17"),
        ('{"annotations": [] "images"', "expected ',' or '}' at character 19"),
        ("{} x", "expected the end at character 3"),
        ('{"a": ' + "[" * 100_000, "too many brackets within each other"),
    ],
)
def test_not_what_is_expected(small, text, says):
    path = small.folder / "a.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_dataset(path, small.folder)
    assert str(error.value).startswith(f"{path}: ")
    assert says in str(error.value)


def test_files_that_cannot_be_read(small):
    with pytest.raises(InputError, match="No such file"):
        read_dataset(small.folder / "none.json", small.folder)
    with pytest.raises(InputError, match="directory"):
        read_dataset(small.folder, small.folder)
    (small.folder / "a.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8"):
        read_dataset(small.folder / "a.json", small.folder)


NOT_A_NUMBER = float("nan")


@pytest.mark.parametrize(
    ("kind", "number", "change", "says"),
    [
        ("annotations", 1, {"image_id": 99}, "annotations, number 1: there is no image 99"),
        ("annotations", 6, {"category_id": 3}, "annotations, number 6: there is no category 3"),
        ("annotations", 2, {"bbox": [1, 2, 3]}, "number 2: bbox has 3 numbers, expected 4"),
        ("annotations", 2, {"bbox": ["a", 2, 3, 4]}, "number 2: bbox or an id is not a number"),
        ("annotations", 2, {"bbox": None}, "number 2: bbox or an id is not a number"),
        ("annotations", 6, {"bbox": [0, NOT_A_NUMBER, 3, 4]}, "number 6: a number of bbox is inf"),
        ("annotations", 2, {"image_id": "10"}, "must be whole numbers"),
        ("annotations", 2, {"image_id": 1 << 70}, "is not a number that can be used"),
        ("annotations", 4, {"segmentation": [[1, 2, 3]]}, "number 4: segmentation has a polygon"),
        ("annotations", 4, {"segmentation": [["x"] * 6]}, "not a list of numbers"),
        ("annotations", 4, {"segmentation": [1, 2, 3, 4]}, "not a list of numbers"),
        (
            "annotations",
            6,
            {"segmentation": [[1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, NOT_A_NUMBER]]},
            "number 6: a polygon's number is infinite",
        ),
        ("annotations", 2, {"segmentation": "x"}, "neither polygons nor run lengths"),
        ("annotations", 2, {"segmentation": {"counts": "04"}}, "no 'size' of [height, width]"),
        ("annotations", 2, {"segmentation": {"size": [16, 16]}}, "has no 'counts'"),
        ("annotations", 2, {"segmentation": {"size": [1 << 70, 1], "counts": "0"}}, "the 'size' ["),
        ("annotations", 2, {"segmentation": {"size": [16, 16], "counts": [-1, 3]}}, "not numbers"),
        (
            "annotations",
            6,
            {"segmentation": {"size": [16, 8], "counts": "04"}},
            "number 6: its mask is 8 x 16 pixels, its image 8 x 8",
        ),
        ("images", 1, {"id": 30}, "two of the images have the same id"),
        ("images", 1, {"id": "30"}, "images, number 1: has no 'id' that is a whole number"),
        ("images", 1, {"width": 0}, "images, number 1: is 0 x 16 pixels"),
        ("images", 1, {"file_name": None}, "neither 'file_name' nor 'coco_url'"),
        ("categories", 0, {"id": 5}, "two of the categories have the same id"),
        ("categories", 2, {"name": 5}, "categories, number 2: has no 'id'"),
    ],
)
def test_what_is_wrong_is_said(small, kind, number, change, says):
    getattr(small, kind)[number] |= change
    with pytest.raises(InputError) as error:
        small.read()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("key", ["image_id", "category_id", "bbox"])
def test_missing_keys(small, key):
    del small.annotations[3][key]
    with pytest.raises(InputError, match=f"annotations, number 3: has no '{key}'"):
        small.read()


def test_empty_lists(small):
    for kind in ("images", "categories"):
        content = small.content() | {kind: [], "annotations": []}
        path = small.folder / "a.json"
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=f"there are no {kind}"):
            read_dataset(path, small.folder)


def test_no_annotations_is_a_dataset(small):
    small.annotations.clear()
    data = small.read()
    assert data.first.tolist() == [0, 0, 0, 0]
    assert data.image_count.tolist() == [0, 0, 0]
    assert [len(classes) for classes in data.image_classes] == [0, 0, 0]
    assert not len(data.trainable)
