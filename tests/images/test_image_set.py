"""The image set: what LVIS's own tools read from it, its tail, and that only settings change it."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lvis import LVIS
from PIL import Image
from pycocotools import mask as coco_mask

from lvdet.errors import InputError, OutputError
from lvdet.images.class_names import draw_vocabulary
from lvdet.images.image_batch import Batch, make_batch
from lvdet.images.image_set import Settings, Summary, make_image_set
from lvdet.images.scene import World
from lvdet.training.configuration.config import Config

#: pycocotools' arrays are of an older NumPy's kind.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
SMALL = Settings(images=60, val_images=30, classes=40, size=128, objects=8, seed=3)
Made = tuple[Path, Summary, dict[str, dict[str, Any]]]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made") / "set"
    summary = make_image_set(folder, SMALL)
    parts = {
        part: json.loads((folder / "annotations" / f"{part}.json").read_text())
        for part in ("train", "val")
    }
    return folder, summary, parts


def test_lvis_reads_the_files(made: Made) -> None:
    folder, _, parts = made
    for part, number in (("train", 60), ("val", 30)):
        read = LVIS(folder / "annotations" / f"{part}.json")
        assert len(read.get_img_ids()) == number
        assert len(read.get_cat_ids()) == 40
        assert len(read.get_ann_ids()) == len(parts[part]["annotations"])
        (one,) = read.load_anns([1])
        assert read.ann_to_mask(one).sum() == one["area"]


def test_masks_boxes_and_areas_agree(made: Made) -> None:
    for part in made[2].values():
        taken = {
            image["id"]: np.zeros((image["height"], image["width"]), dtype=np.int64)
            for image in part["images"]
        }
        for one in part["annotations"]:
            mask = coco_mask.decode(one["segmentation"])
            assert mask.shape == taken[one["image_id"]].shape
            taken[one["image_id"]] += mask
            assert one["area"] == mask.sum() > 0
            down, across = np.nonzero(mask)
            x, y, width, height = one["bbox"]
            assert (x, y) == (across.min(), down.min())
            assert (x + width - 1, y + height - 1) == (across.max(), down.max())
        assert max(table.max() for table in taken.values()) == 1


def test_pictures_are_there_and_as_large_as_they_say(made: Made) -> None:
    folder, _, parts = made
    for name, part in parts.items():
        files = {path.name for path in (folder / name).iterdir()}
        assert files == {image["file_name"] for image in part["images"]}
        for image in part["images"]:
            with Image.open(folder / name / image["file_name"]) as picture:
                assert picture.size == (image["width"], image["height"])
                assert picture.mode == "RGB"
            assert max(image["width"], image["height"]) == 128
    ids = [image["id"] for part in parts.values() for image in part["images"]]
    assert len(set(ids)) == 90


def test_frequencies_are_those_of_the_training_images(made: Made) -> None:
    _, summary, parts = made
    annotations = parts["train"]["annotations"]
    cells = {(one["image_id"], one["category_id"]) for one in annotations}
    images = Counter(category for _, category in cells)
    objects = Counter(one["category_id"] for one in annotations)
    assert parts["train"]["categories"] == parts["val"]["categories"]
    for one in parts["train"]["categories"]:
        number = images[one["id"]]
        assert one["image_count"] == number >= 1
        assert one["instance_count"] == objects[one["id"]]
        assert one["frequency"] == ("r" if number <= 10 else "c" if number <= 100 else "f")
        assert summary.frequency[one["id"] - 1] == one["frequency"]
    names = [one["name"] for one in parts["train"]["categories"]]
    assert len(set(names)) == 40
    assert {"c", "r"} == set(summary.frequency)
    shown = {one["category_id"] for one in parts["val"]["annotations"]}
    assert len(shown) >= 0.8 * 40
    assert summary.to_dict() == {
        "folder": str(made[0]),
        "classes": 40,
        "train": {
            "images": 60,
            "objects": len(annotations),
            "classes": {
                "frequent": 0,
                "common": summary.frequency.count("c"),
                "rare": summary.frequency.count("r"),
            },
        },
        "val": {
            "images": 30,
            "objects": len(parts["val"]["annotations"]),
            "classes": {
                "frequent": 0,
                "common": sum(summary.frequency[one - 1] == "c" for one in shown),
                "rare": sum(summary.frequency[one - 1] == "r" for one in shown),
            },
        },
    }


def test_lists_of_an_image_are_consistent(made: Made) -> None:
    negatives = partly = 0
    for part in made[2].values():
        positive: dict[int, set[int]] = {image["id"]: set() for image in part["images"]}
        for one in part["annotations"]:
            positive[one["image_id"]].add(one["category_id"])
        for image in part["images"]:
            absent, some = image["neg_category_ids"], image["not_exhaustive_category_ids"]
            assert not positive[image["id"]] & set(absent)
            assert set(some) <= positive[image["id"]]
            for listed in (absent, some):
                assert listed == sorted(set(listed))
                assert all(1 <= category <= 40 for category in listed)
            negatives += len(absent)
            partly += len(some)
    assert negatives > 4 * 90
    assert partly > 0


def test_the_number_of_processes_changes_nothing(made: Made, tmp_path: Path) -> None:
    make_image_set(tmp_path / "two", SMALL, workers=2)
    two, one = content(tmp_path / "two"), content(made[0])
    for files in (one, two):  # its first line names the folder
        files["config.toml"] = files["config.toml"].partition(b"\n")[2]
    assert two == one


def test_as_few_classes_per_image_as_are_asked_for(tmp_path: Path) -> None:
    """Each with more objects, so that there are as many as before; and a tail that ends earlier."""
    asked = replace(SMALL, images=100, val_images=10, classes=20, classes_per_image=2.0, rarest=5.0)
    made = make_image_set(tmp_path / "set", asked)
    cells = int(made.train.image_count.sum())
    assert cells / 100 == pytest.approx(2.0, abs=0.1)
    assert made.train.instance_count.sum() / 100 == pytest.approx(8.0, rel=0.25)
    assert made.train.image_count.min() >= 4
    settings = json.loads((tmp_path / "set" / "synth.json").read_text())
    assert (settings["classes_per_image"], settings["rarest"]) == (2.0, 5.0)
    assert {*SMALL.to_dict()} == {*settings} - {"classes_per_image", "rarest"}


def test_another_seed_is_another_set(made: Made, tmp_path: Path) -> None:
    settings = Settings(images=6, val_images=1, classes=10, size=64, objects=4)
    sets = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        folder = tmp_path / name
        make_image_set(folder, Settings(**{**vars(settings), "seed": seed}))
        sets.append(content(folder))
    a, b, c = sets
    pictures = [name for name in a if name.endswith(".jpg")]
    assert len(pictures) == 7
    assert [a[name] for name in pictures] == [b[name] for name in pictures]
    assert all(a[name] != c[name] for name in pictures)
    assert a["annotations/train.json"] == b["annotations/train.json"]
    assert a["annotations/train.json"] != c["annotations/train.json"]


def test_a_picture_depends_on_the_seed_the_part_and_its_number(tmp_path: Path) -> None:
    vocabulary = draw_vocabulary(np.random.default_rng(0), 3)
    world = World(vocabulary, np.array([0.3, 0.6, 1.0]), 64, 3, 1.0)
    positive = np.arange(3)

    def second(seed: int, part: int, first: int) -> bytes:
        """The file of image first + 1."""
        make_batch(world, Batch(tmp_path, seed, part, first, 1, [positive, positive]))
        return (tmp_path / f"{2:012d}.jpg").read_bytes()

    start = second(5, 0, 7)
    assert start == second(5, 0, 7)
    for other in ((6, 0, 7), (5, 1, 7), (5, 0, 8)):
        assert second(*other) != start
    # The same image whichever batch it is in.
    make_batch(world, Batch(tmp_path, 5, 0, 8, 1, [positive]))
    assert (tmp_path / f"{1:012d}.jpg").read_bytes() == start


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (Settings(images=0), "--images is 0, expected 1 to"),
        (Settings(val_images=0), "--val-images is .*, expected 1 to"),
        (Settings(classes=1), "--classes is 1, expected 2 to 5,760"),
        (Settings(classes=5761), "--classes is 5,761, expected 2 to 5,760"),
        (Settings(size=63), "--size is .*, expected 64 to 4,096"),
        (Settings(objects=0.5), "--objects is .*, expected 1 to 200"),
        (Settings(objects=float("nan")), "--objects is .*, expected 1 to 200"),
        (Settings(size=64, objects=14), "expected 1 to 13 for images of 64 pixels"),
        (Settings(seed=-1), "--seed is .*, expected 0 to"),
        (Settings(images=100), "have room for only 923 classes, not 1,203"),
    ],
)
def test_settings_of_no_set(settings: Settings, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        make_image_set(tmp_path / "set", settings)
    assert not (tmp_path / "set").exists()


TINY = Settings(images=3, val_images=1, classes=2, size=64, objects=2)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="contains other files"):
            make_image_set(tmp_path, TINY, overwrite=overwrite)
    assert content(tmp_path) == {"thesis.txt": b"years of work"}
    with pytest.raises(InputError, match="is a file, expected a folder"):
        make_image_set(tmp_path / "thesis.txt", TINY)


def test_a_set_is_replaced_only_when_asked(tmp_path: Path) -> None:
    make_image_set(tmp_path / "set", Settings(**{**vars(TINY), "images": 9}))
    (tmp_path / "set" / "train" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="or --overwrite"):
        make_image_set(tmp_path / "set", TINY)
    make_image_set(tmp_path / "set", TINY, overwrite=True)
    make_image_set(tmp_path / "new", TINY)
    replaced, new = content(tmp_path / "set"), content(tmp_path / "new")
    assert replaced.pop("train/notes.txt") == b"mine"
    assert replaced.keys() == new.keys()
    assert replaced["annotations/train.json"] == new["annotations/train.json"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_set_that_cannot_be_written_has_no_annotations(workers: int, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    make_image_set(folder, TINY)
    (folder / "val" / f"{61:012d}.jpg").mkdir()
    settings = Settings(images=60, val_images=20, classes=2, size=64, objects=2)
    with pytest.raises(OutputError, match=r"000000000061\.jpg: cannot write"):
        make_image_set(folder, settings, workers=workers, overwrite=True)
    assert not list((folder / "annotations").iterdir())
    assert not (folder / "config.toml").exists()


def test_the_config_has_only_keys_that_exist(made: Made) -> None:
    text = (made[0] / "config.toml").read_text()
    assert text.startswith(f"# lvdet train {made[0] / 'config.toml'}\n")
    config = tomllib.loads(text)
    default = Config()
    for section, keys in config.items():
        assert set(keys) <= {key.name for key in fields(getattr(default, section))}
    for key in ("train", "train_images", "val", "val_images"):
        assert (made[0] / config["data"][key]).exists()
    assert config["model"]["weights"] == "none"
    assert config["input"]["sizes"] == [128]
