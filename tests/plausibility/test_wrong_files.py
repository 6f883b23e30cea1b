"""Every wrong file is named, with what to do, by every verb and from every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from wrong_files import WRONG

import lvdet
from cli.run_lvdet import lvdet_call
from lvdet.plausibility.findings import findings
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results
from tabled import Tables

STYLES = ("lvis", "coco")
ENDINGS = (".json", ".parquet", ".jsonl")
VERBS = ("evaluate", "check", "audit", "compare", "report")
#: What the reading that fits is called.
READ = {
    "corners": "read as corners [",
    "centres": "read as centres [",
    "fractions": "read as fractions",
    "corners in fractions": "read as corners in fractions",
    "centres in fractions": "read as centres in fractions",
    "y, x, h, w": "read as [y, x, h, w]",
    "x, y, h, w": "read as [x, y, h, w]",
    "mirrored": "mirrored",
    "half the size": "multiplied by 2",
    "the network's size": "resized to 1333 × 800",
    "ids one higher": "with every id one lower",
    "ids one lower": "with every id one higher",
    "places by id": "as places from 0 in the classes ordered by id",
    "places by name": "as places from 0 in the classes ordered by name",
    "images shifted": "one image",
}
Written = Callable[[str, str, str], tuple[Path, Path]]


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


@cache
def honest(style: str) -> Tables:
    """Tables that are what they say."""
    gt, dt = lvdet.simulate(images=200, classes=60, dets_per_image=100, style=style, seed=3)
    new = with_gaps(gt)
    ids = new.categories.ids[np.searchsorted(gt.categories.ids, dt.category_ids)]
    return new, replace(dt, category_ids=ids)


def cases() -> Iterator[object]:
    """Each wrong file in one style and format, and in the others where there is time."""
    every = [(style, ending) for ending in ENDINGS for style in STYLES]
    for place, name in enumerate(WRONG):
        for style, ending in every:
            case = (name, style, ending)
            tested = (style, ending) == every[place % len(every)]
            yield case if tested else pytest.param(*case, marks=pytest.mark.long)


@pytest.fixture(scope="session")
def written(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str, str], tuple[Path, Path]]:
    """Annotations and a wrong file, each written once."""
    folder = tmp_path_factory.mktemp("wrong")

    @cache
    def truth(style: str) -> Path:
        lvdet.write_ground_truth(honest(style)[0], folder / f"{style}.json")
        return folder / f"{style}.json"

    @cache
    def write(name: str, style: str, ending: str) -> tuple[Path, Path]:
        path = folder / f"{style} {name}{ending}"
        lvdet.write_detections(WRONG[name][1](*honest(style)), path)
        return truth(style), path

    return write


@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_said_of_the_honest_file(style: str) -> None:
    gt, dt = honest(style)
    assert findings(gt, Results.of(dt)) == []


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", WRONG)
def test_tables(name: str, style: str) -> None:
    gt, dt = honest(style)
    kind, wrong = WRONG[name]
    (found,) = findings(gt, Results.of(wrong(gt, dt)))
    assert found.kind == kind
    assert found.count > 0
    assert all(np.isfinite(value) for value in found.evidence.values())
    assert dt.source in found.sentence
    assert "\n" not in str(found)
    assert READ.get(name, "") in found.sentence
    if kind == "classes" and name != "classes permuted":
        assert found.category_map


@pytest.mark.parametrize(("name", "style", "ending"), list(cases()))
def test_every_verb_says_the_same(name: str, style: str, ending: str, written: Written) -> None:
    kind = WRONG[name][0]
    truth, path = written(name, style, ending)
    (sentence,) = said = [one.what for one in lvdet.check(truth, path) if one.row is None]
    audited = lvdet.audit(truth, path)
    assert [one.kind for one in audited.implausible] == [kind]
    assert [str(one) for one in audited.implausible] == said
    assert str(path) in sentence
    if kind == "score-scale":  # AP equals the repaired file's
        assert "not publishable" not in audited.standing.values()
    else:
        assert set(audited.standing.values()) == {"not publishable"}
        assert all(
            "not publishable: the results file looks wrong" in line for line in audited.verdict
        )
    assert sentence in audited.warnings
    assert sentence in lvdet.evaluate(truth, path).warnings
    assert sentence in lvdet.compare(truth, [honest(style)[1], path], resamples=100).warnings
    assert sentence in lvdet.report(truth, [path], method="temperature").warnings


@pytest.mark.parametrize("verb", VERBS)
def test_the_command_line_says_it(verb: str, written: Written, tmp_path: Path) -> None:
    truth, path = written("corners", "lvis", ".json")
    output = ["-o", str(tmp_path / "page.html")] if verb == "report" else []
    output += [str(path), "--resamples", "100"] if verb == "compare" else []
    done = lvdet_call(verb, str(truth), str(path), *output)
    (finding,) = lvdet.audit(truth, path).implausible
    assert str(finding) in (done.out if verb in ("check", "audit") else done.err)


@cache
def many_classes() -> Tables:
    """As the files of `lvdet demo`; most detections are of classes that are not verified."""
    return lvdet.simulate(
        images=500, classes=1203, dets_per_image=300, bias=1.0, class_bias=0.7, seed=0
    )


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        (name, ending) if place == k else pytest.param(name, ending, marks=pytest.mark.long)
        for place, name in enumerate(["classes permuted", "ids one higher", "images shifted"])
        for k, ending in enumerate(ENDINGS)
    ],
)
def test_many_classes_with_few_objects_each(name: str, ending: str, tmp_path: Path) -> None:
    gt, dt = many_classes()
    kind, wrong = WRONG[name]
    path = tmp_path / f"dt{ending}"
    lvdet.write_detections(wrong(gt, dt), path)
    (found,) = lvdet.audit(gt, path).implausible
    assert found.kind == kind
