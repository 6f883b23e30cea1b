"""`lvdet predict` as a user runs it."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from cli.run_lvdet import lvdet_call
from inference.brute_force import records_of
from inference.tiny_run import write_run
from training.weights.test_foreign_detector import detectron2_state

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("tiny"))


QUICK = ("--dets-per-class", "10", "--dets-per-image", "0", "--workers", "0", "--device", "cpu")


def test_annotation_file(folder: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "out.json", tmp_path / "told.json"
    call = ("predict", folder / "run", folder / "val.json", "--images", folder / "images", *QUICK)
    done = lvdet_call(*call, "-o", out, "--summary", told).good()
    assert (
        f"wrote {out}: 40 detections of 4 classes (4 with 10 or more) on 5 images, 8.0 per image"
        in done.out
    )
    assert re.search(r"\ntook \d+\.\d s, including \d+\.\d s before the first batches\n$", done.out)
    rows = records_of(out)
    assert len(rows) == 40
    assert {row["image_id"] for row in rows} <= set(range(100, 105))
    summary = json.loads(told.read_text())
    assert summary["files"] == [
        {"path": str(out), "nms": 0.5, "detections": 40, "classes": 4, "full_classes": 4}
    ]
    assert (summary["images"], summary["masks"], summary["step"]) == (5, True, 12)
    assert 0 < summary["starting"] < summary["seconds"]
    assert sorted(os.listdir(tmp_path)) == ["out.json", "told.json"]
    lvdet_call(*call, "-o", out).refused("already exists; pass --overwrite to replace it")
    lvdet_call(*call, "-o", out, "--overwrite", "--no-masks").good()
    assert "segmentation" not in records_of(out)[0]


def test_both_budgets(folder: Path, tmp_path: Path) -> None:
    call = ("predict", folder / "run", folder / "val.json", "--images", folder / "images", *QUICK)
    out = ("-o", tmp_path / "out.json", "--overwrite", "--no-masks")
    done = lvdet_call(*call, *out, "--dets-per-image", "20").good()
    rows = records_of(tmp_path / "out.json")
    assert f"{len(rows)} detections of 4 classes (4 with 10 or more)" in done.out
    assert 100 < len(rows) <= 140
    done = lvdet_call(*call, *out, "--dets-per-image", "20", "--dets-per-class", "0").good()
    assert "100 detections of 4 classes on 5 images, 20.0 per image" in done.out


def test_folder_and_several_thresholds(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    call = ("predict", folder / "run", folder / "images", "-o", out, "--nms", "0.3,0.7", *QUICK)
    done = lvdet_call(*call).good()
    assert "out.images.json: the ids of 5 images" in done.out
    assert sorted(os.listdir(tmp_path)) == [
        "out.images.json",
        "out.nms0.3.jsonl",
        "out.nms0.7.jsonl",
    ]
    ids = json.loads((tmp_path / "out.images.json").read_text())["images"]
    assert ids[2] == {"id": 3, "file_name": "2.png"}


def test_picture_alone(folder: Path, tmp_path: Path) -> None:
    """Without -o only that image is predicted, and nothing else is left."""
    call = ("predict", folder / "run", folder / "images", "--image", "3.png", *QUICK)
    done = lvdet_call(*call, "--picture", tmp_path / "three.png", "--above", "0").good()
    assert done.out == f"wrote {tmp_path / 'three.png'}: 40 detections above 0 on 3.png\n"
    with Image.open(tmp_path / "three.png") as picture:
        assert max(picture.size) > 200
    assert os.listdir(tmp_path) == ["three.png"]


def test_damaged_images(folder: Path, tmp_path: Path) -> None:
    """The error says how to continue, and the end names the skipped images."""
    shutil.copytree(folder / "images", tmp_path / "images")
    (tmp_path / "images" / "3.png").write_bytes(b"no picture")
    out, told = tmp_path / "out.json", tmp_path / "told.json"
    call = ("predict", folder / "run", tmp_path / "images", "-o", out, *QUICK)
    lvdet_call(*call).refused(
        "3.png: cannot read the image", "run the command again with --skip-damaged to resume"
    )
    assert (tmp_path / "out.json.work").exists()
    done = lvdet_call(*call, "--skip-damaged", "--summary", told).good()
    assert done.err == "note: damaged images, left without detections: 1 (3.png)\n"
    assert "on 5 images, 8.0 per image" in done.out
    assert json.loads(told.read_text())["damaged"] == [{"id": 4, "file_name": "3.png"}]


def test_other_classes(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "val.json").read_text())
    other = tmp_path / "other.json"
    out = ("-o", tmp_path / "out.json", *QUICK)
    call = ("predict", folder / "run", other, "--images", folder / "images", *out)
    wasp = content["categories"].pop(2)
    content["annotations"] = [a for a in content["annotations"] if a["category_id"] != wasp["id"]]
    other.write_text(json.dumps(content))
    done = lvdet_call(*call).good()
    assert "lacks 1 of the checkpoint's 4 classes, such as 5 'wasp_nest'" in done.err
    content["categories"] += [wasp, {"id": 10, "name": "hornet"}, {"id": 11, "name": "moth"}]
    other.write_text(json.dumps(content))
    lvdet_call(*call, "--overwrite").refused("2 of 6 categories are", "10 'hornet'")


def test_refusals(folder: Path, tmp_path: Path) -> None:
    """One line, before the work begins, with nothing left behind."""
    call = ("predict", folder / "run", folder / "images")
    out = ("-o", tmp_path / "out.json", "--device", "cpu")
    lvdet_call(*call).refused("pass -o FILE for the detections")
    lvdet_call(*call, *out, "--nms", "0.5,half").refused("--nms is '0.5,half'")
    lvdet_call(*call, *out, "--nms", "1.5").refused("thresholds from 0 to 1")
    none = ("--dets-per-class", "0", "--dets-per-image", "0")
    lvdet_call(*call, *out, *none).refused("dets_per_class and dets_per_image are both 0")
    lvdet_call(*call, *out, "--precision", "fp8").refused("expected fp32 or bf16")
    lvdet_call(*call, *out, "--batch", "x").refused("--batch", "see --help")
    lvdet_call(*call, *out, "--image", "3").refused("pass --picture and --image together")
    lvdet_call(*call, *out, "--image", "9", "--picture", tmp_path / "a.png").refused(
        "file name '9'"
    )
    lvdet_call(*call, *out, "--image", "3", "--picture", tmp_path / "a.jpg").refused(".png")
    lvdet_call(*call, "-o", tmp_path / "out.txt").refused("unknown extension")
    lvdet_call(*call, "-o", tmp_path / "none" / "out.json").refused("no such folder", code=1)
    lvdet_call(*call, "-o", tmp_path / "out.json", "--device", "gpu").refused("--device is 'gpu'")
    lvdet_call("predict", tmp_path, folder / "images", *out).refused("no checkpoint")
    lvdet_call("predict", folder / "run", folder / "val.json", *out).refused("pass --images")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_text("no picture")
    lvdet_call("predict", folder / "run", tmp_path / "images", *out, "--workers", "0").refused(
        "a.png: cannot read the image"
    )


@pytest.mark.long
def test_a_checkpoint_of_detectron2(folder: Path, tmp_path: Path) -> None:
    """Its classes are the annotations' categories; a folder of images does not name them."""
    torch.manual_seed(0)
    state = {name: tensor.numpy() for name, tensor in detectron2_state(4, 1).items()}
    model, out = tmp_path / "model.pkl", tmp_path / "out.json"
    model.write_bytes(pickle.dumps({"model": state}, 4))
    images, val = ("--images", folder / "images"), folder / "val.json"
    done = lvdet_call("predict", model, val, *images, "-o", out, *QUICK, "--no-masks").good()
    assert re.search(r"wrote .*out\.json: \d+ detections of [1-4] classes", done.out)
    assert {row["category_id"] for row in records_of(out)} <= {2, 3, 5, 9}
    call = ("predict", model, folder / "images", "-o", out, *QUICK)
    lvdet_call(*call).refused("does not name its 4 classes; pass --annotations")
    run = ("predict", folder / "run", val, *images, "-o", out, "--overwrite", *QUICK)
    lvdet_call(*run, "--annotations", val).refused("do not apply to a checkpoint of lvdet")
