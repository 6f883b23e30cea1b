"""Prediction with a real detector: checkpoint, loader, network, NMS, masks and files together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import lvdet
from inference.brute_force import assert_same, brute_force, records_of
from inference.tiny_run import IDS, NAMES, write_run
from lvdet.errors import InputError
from lvdet.inference import validation
from lvdet.inference.image_list import annotated_images
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.loop.processes import Process
from lvdet.training.records.checkpoint import LoadedModel, load_model

torch.set_num_threads(1)
ALONE = Process(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedModel:
    return load_model(folder / "run", torch.device("cpu"))


def test_as_by_brute_force(folder: Path, model: LoadedModel, tmp_path: Path) -> None:
    images = annotated_images(folder / "val.json", folder / "images").images
    chosen = Settings(dets_per_image=0, dets_per_class=40, score=1e-7, batch=3, workers=0)
    predict(model, images, tmp_path / "out.json", chosen)
    expected = brute_force(model, images, dets_per_class=40, score=1e-7, nms=0.5, batch=3)
    assert len(expected) == 160
    found = records_of(tmp_path / "out.json")
    assert_same(found, expected)
    assert len({row["score"] for row in found}) > 100
    assert {row["category_id"] for row in found} == set(IDS)
    assert len({row["segmentation"]["counts"] for row in found}) > 50
    lvdet.evaluate(folder / "val.json", tmp_path / "out.json", iou="segm")


def test_evaluated_while_training(
    folder: Path, model: LoadedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In training mode before and after; classes of a checkpoint, or of the annotations. What the
    evaluation warns of is for the log, not for the screen."""
    content = json.loads((folder / "val.json").read_text())
    content["annotations"][0]["id"] = 0  # one of the things that are warned of
    val = tmp_path / "val.json"
    val.write_text(json.dumps(content))
    config = replace(model.config, data=replace(model.config.data, val=str(val)))
    model.detector.train()
    before = [tensor.clone() for tensor in model.detector.state_dict().values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            validation,
            "Settings",
            lambda **_: Settings(dets_per_image=0, dets_per_class=30, workers=0),
        )
        result = validation.evaluate(model.detector, config, tmp_path, 30, ALONE)
    assert model.detector.training
    after = model.detector.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    path = tmp_path / "predictions" / "step-000000030.json"
    expected = lvdet.evaluate(val, path)
    assert list(result) == ["old", "fixed", "pool", "warnings"]
    assert result["fixed"]["AP"] == expected["fixed"].AP
    assert result["warnings"] == expected.warnings
    assert any("object with id 0" in text for text in result["warnings"])
    assert capsys.readouterr() == ("", "")
    json.dumps(result, allow_nan=False)
    model.detector.eval()


def test_leftovers_of_another_run(
    folder: Path, model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unfinished prediction with other settings is replaced."""
    small = Settings(dets_per_image=0, dets_per_class=5, workers=0, overwrite=True)
    monkeypatch.setattr(validation, "Settings", lambda **_: small)
    path = folder / "run" / "predictions" / "step-000000031.json"
    work = path.with_name(path.name + ".work")
    work.mkdir(parents=True)
    (work / "settings.json").write_text("{}")
    assert "fixed" in validation.evaluate(model.detector, model.config, folder / "run", 31, ALONE)
    assert len(records_of(path)) == 20


def test_annotations_that_name_classes_otherwise(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "val.json").read_text())
    content["categories"][2]["name"] = "hornet"
    (tmp_path / "other.json").write_text(json.dumps(content))
    listed = annotated_images(tmp_path / "other.json", folder / "images")
    with pytest.raises(InputError, match="category 5 is 'hornet', but 'wasp_nest' in the"):
        listed.require_classes_of(IDS, NAMES)


def test_annotations_with_classes_that_are_not_trained(
    folder: Path, model: LoadedModel, tmp_path: Path
) -> None:
    """Refused before anything is predicted."""
    content = json.loads((folder / "val.json").read_text())
    content["categories"].append({"id": 10, "name": "hornet"})
    (tmp_path / "other.json").write_text(json.dumps(content))
    data = replace(model.config.data, val=str(tmp_path / "other.json"))
    config = replace(model.config, data=data)
    with pytest.raises(InputError, match=r"1 of 5 categories are not among .* 10 'hornet'"):
        validation.evaluate(model.detector, config, folder / "run", 32, ALONE)
    assert not (folder / "run" / "predictions" / "step-000000032.json").exists()
