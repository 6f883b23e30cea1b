"""Other projects under patch(): the same as with the packages themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tidecv.quantify

from integrations.side_by_side import printed
from lvdet.integrations import patch, unpatch
from oracles.cases import coco_case
from oracles.error_cases import error_case
from oracles.tide_reference import diagnose_by_tide


@pytest.fixture
def patched() -> Iterator[None]:
    patch()
    yield
    unpatch()


def test_tidecv(patched: None) -> None:
    annotations, results = error_case(1, federated=False, masks=True)
    assert tidecv.quantify.mask_utils.__name__ == "lvdet.integrations.pycocotools.mask"
    ours = diagnose_by_tide(annotations, results, masks=True)
    unpatch()
    assert tidecv.quantify.mask_utils.__name__ == "pycocotools.mask"
    theirs = diagnose_by_tide(annotations, results, masks=True)
    assert ours == theirs


def test_torchvision_s_dataset(patched: None, tmp_path: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    image = pytest.importorskip("PIL.Image")
    annotations, _ = coco_case(5, masks=True)
    for one in annotations["images"]:
        one["file_name"] = f"{one['id']}.png"
        image.fromarray(np.zeros((one["height"], one["width"], 3), np.uint8)).save(
            tmp_path / one["file_name"]
        )
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    dataset, _ = printed(datasets.CocoDetection, tmp_path, path)
    assert type(dataset.coco).__module__ == "lvdet.integrations.pycocotools.coco"
    found = [one for place in range(len(dataset)) for one in dataset[place][1]]
    assert sorted(one["id"] for one in found) == sorted(
        one["id"] for one in annotations["annotations"]
    )
