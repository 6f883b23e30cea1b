"""One file of `predict` has AP-Old, AP-Fixed and AP-Pool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import lvdet
from inference.random_detector import RandomDetector, random_model, write_images
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.data.batch import Batch
from lvdet.training.model.candidates import Candidates

torch.set_num_threads(1)
CLASSES = 4


class Mapped(RandomDetector):
    """Scores without ties, as they are or with a strictly increasing map of each class."""

    def __init__(self, powers: list[float], factors: list[float]) -> None:
        super().__init__(CLASSES, rois=60, levels=1 << 20)
        self.powers, self.factors = torch.tensor(powers), torch.tensor(factors)

    def candidates(self, features: list[torch.Tensor], batch: Batch) -> Candidates:
        found = super().candidates(features, batch)
        return replace(found, score=found.score**self.powers * self.factors)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, Path]]:
    return write_images(tmp_path_factory.mktemp("images"), 12)


@pytest.fixture(scope="module")
def annotations(images: list[tuple[int, Path]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of what the detector finds, moved a little."""
    folder = tmp_path_factory.mktemp("annotations")
    model = random_model(Mapped([1.0] * CLASSES, [1.0] * CLASSES))
    chosen = Settings(dets_per_class=0, dets_per_image=40, workers=0, masks=False)
    predict(model, images, folder / "all.json", chosen)
    rows = json.loads((folder / "all.json").read_text())[::7]
    rng = np.random.default_rng(0)
    content = {
        "images": [
            {"id": i, "file_name": path.name, "height": 70, "width": 70} for i, path in images
        ],
        "categories": [
            {"id": i, "name": name}
            for i, name in zip(model.category_ids.tolist(), model.category_names, strict=True)
        ],
        "annotations": [
            {
                "id": 1 + number,
                "image_id": row["image_id"],
                "category_id": row["category_id"],
                "bbox": [value + rng.uniform(0, 2) for value in row["bbox"]],
                "area": row["bbox"][2] * row["bbox"][3],
                "iscrowd": 0,
            }
            for number, row in enumerate(rows)
        ],
    }
    path = folder / "annotations.json"
    path.write_text(json.dumps(content))
    return path


def written(model: RandomDetector, images: list[tuple[int, Path]], out: Path, **kept: int) -> Path:
    predict(random_model(model), images, out, Settings(**kept, workers=0, masks=False))  # type: ignore[arg-type]
    return out


def test_the_union_has_what_each_budget_alone_has(
    images: list[tuple[int, Path]], annotations: Path, tmp_path: Path
) -> None:
    """AP-Old is that of a file of the best of each image, AP-Fixed and AP-Pool those of a file of
    the best of each class."""
    model = Mapped([0.5, 1, 2, 3], [1, 0.9, 0.5, 0.2])
    budgets = {"dets_per_image": 6, "dets_per_class": 50}
    both, by_image, by_class = (
        lvdet.evaluate(
            annotations,
            written(model, images, tmp_path / f"{number}.json", **kept),
            iou="bbox",
            **budgets,  # type: ignore[arg-type]
        )
        for number, kept in enumerate(
            [budgets, {**budgets, "dets_per_class": 0}, {**budgets, "dets_per_image": 0}]
        )
    )
    assert both["old"].AP == by_image["old"].AP > 0
    assert both["fixed"].AP == by_class["fixed"].AP > 0
    assert both["pool"].AP == by_class["pool"].AP
    assert by_class["old"].AP != both["old"].AP


def test_ap_fixed_does_not_see_a_map_of_the_scores_of_a_class(
    images: list[tuple[int, Path]], annotations: Path, tmp_path: Path
) -> None:
    """One that is strictly increasing, of classes whose budget is full; AP-Old and AP-Pool do."""
    kept = {"dets_per_image": 6, "dets_per_class": 50}
    results = []
    for number, (powers, factors) in enumerate(
        [([1.0] * CLASSES, [1.0] * CLASSES), ([0.5, 1, 2, 3], [1, 0.9, 0.5, 0.2])]
    ):
        out = written(Mapped(powers, factors), images, tmp_path / f"{number}.json", **kept)
        table = lvdet.read_detections(out)
        assert np.bincount(table.category).min() >= 50
        for category in range(CLASSES):
            score = table.score[table.category == category]
            assert len(np.unique(score)) == len(score)
        results.append(lvdet.evaluate(annotations, out, iou="bbox", **kept))  # type: ignore[arg-type]
    assert results[0]["fixed"].AP == results[1]["fixed"].AP > 0
    assert results[0]["old"].AP != results[1]["old"].AP
    assert results[0]["pool"].AP != results[1]["pool"].AP
