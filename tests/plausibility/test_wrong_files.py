"""Every wrong file is named, with what to do, by every verb and from every format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wrong_files import WRONG

import lvdet
from lvdet.plausibility.findings import findings
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results
from tabled import Tables

STYLES = ("lvis", "coco")
ENDINGS = (".json", ".parquet", ".jsonl")


def rotated(every: int) -> list[Any]:
    """Each wrong file in each format: of every so many files one format is tested always, the rest
    where there is time."""
    return [
        (name, ending)
        if place % every == 0 and ending == ENDINGS[place // every % 3]
        else pytest.param(name, ending, marks=pytest.mark.long)
        for place, name in enumerate(WRONG)
        for ending in ENDINGS
    ]


def with_gaps(gt: GroundTruth) -> GroundTruth:
    """Classes whose ids have gaps and whose names are in another order, as COCO's; images whose
    names are."""
    count = len(gt.categories)
    rng = np.random.default_rng(5)
    names = tuple(f"{letter:03d}" for letter in rng.permutation(count))
    gaps = np.cumsum(np.where(np.arange(count) % 4 == 3, 2, 1)).astype(np.int64)
    files = tuple(f"{place:04d}.jpg" for place in rng.permutation(len(gt.images)))
    return replace(
        gt,
        categories=replace(gt.categories, ids=gaps, names=names),
        images=replace(gt.images, file_names=files),
    )


@pytest.fixture(scope="module", params=STYLES)
def honest(request: pytest.FixtureRequest) -> Tables:
    gt, dt = lvdet.simulate(images=200, classes=60, dets_per_image=100, style=request.param, seed=3)
    new = with_gaps(gt)
    ids = new.categories.ids[np.searchsorted(gt.categories.ids, dt.category_ids)]
    return new, replace(dt, category_ids=ids)


def test_nothing_is_said_of_the_honest_file(honest: Tables) -> None:
    assert findings(honest[0], Results.of(honest[1])) == []


@pytest.mark.parametrize("name", WRONG)
def test_tables(honest: Tables, name: str) -> None:
    gt, dt = honest
    kind, wrong = WRONG[name]
    (found,) = findings(gt, Results.of(wrong(gt, dt)))
    assert found.kind == kind
    assert found.count > 0
    assert all(np.isfinite(value) for value in found.evidence.values())
    assert dt.source in found.sentence
    assert "\n" not in str(found)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", WRONG)
def test_files(honest: Tables, name: str, ending: str, tmp_path: Path) -> None:
    gt, dt = honest
    kind, wrong = WRONG[name]
    truth, path = tmp_path / "gt.json", tmp_path / f"dt{ending}"
    lvdet.write_ground_truth(gt, truth)
    lvdet.write_detections(wrong(gt, dt), path)
    audited = lvdet.audit(truth, path)
    assert [one.kind for one in audited.implausible] == [kind]
    if kind == "score-scale":  # AP is that of the repaired file
        assert "not publishable" not in audited.standing.values()
    else:
        assert set(audited.standing.values()) == {"not publishable"}
        assert all(
            "not publishable: the results file looks wrong" in line for line in audited.verdict
        )
    sentence = str(audited.implausible[0])
    assert sentence in audited.warnings
    assert sentence in lvdet.evaluate(truth, path).warnings
    assert str(path) in sentence
    assert sentence in [one.what for one in lvdet.check(truth, path)]


@pytest.mark.parametrize(("name", "ending"), rotated(1))
def test_compare(honest: Tables, name: str, ending: str, tmp_path: Path) -> None:
    gt, dt = honest
    _, wrong = WRONG[name]
    path = tmp_path / f"dt{ending}"
    lvdet.write_detections(wrong(gt, dt), path)
    compared = lvdet.compare(gt, [dt, path], resamples=100)
    (text,) = [str(one) for one in lvdet.audit(gt, path).implausible]
    assert text in compared.warnings


@pytest.mark.parametrize(("name", "ending"), rotated(3))
def test_report(name: str, ending: str, tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=200, classes=60, dets_per_image=100, seed=3)
    gt = with_gaps(gt)
    dt = replace(dt, category_ids=gt.categories.ids[dt.category_ids - 1])
    _, wrong = WRONG[name]
    path = tmp_path / f"dt{ending}"
    lvdet.write_detections(wrong(gt, dt), path)
    (text,) = [str(one) for one in lvdet.audit(gt, path).implausible]
    page = lvdet.report(gt, [path])
    assert text in page.warnings


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["classes permuted", "ids one higher", "images shifted"])
def test_many_classes_with_few_objects_each(name: str, ending: str, tmp_path: Path) -> None:
    """As the files of `lvdet demo`; most detections are of classes that are not verified."""
    gt, dt = lvdet.simulate(
        images=500, classes=1203, dets_per_image=300, bias=1.0, class_bias=0.7, seed=0
    )
    kind, wrong = WRONG[name]
    path = tmp_path / f"dt{ending}"
    lvdet.write_detections(wrong(gt, dt), path)
    (found,) = lvdet.audit(gt, path).implausible
    assert found.kind == kind
