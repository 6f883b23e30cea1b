"""docs/reproducing.md is followed as written, on small files; the projects' packages are the
oracle."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from lvis import eval as lvis_eval

import lvdet
from cli.run_lvdet import lvdet_call
from lvdet.evaluation.presets import PRESETS
from oracles.boundary_reference import boundary_ious
from oracles.cases import coco_case, lvis_case, without_boxes
from oracles.coco_reference import evaluate_coco, evaluate_coco_at
from oracles.lvis_reference import cut_per_class, cut_per_image, evaluate_lvis

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reproducing.md").read_text()
RECIPES = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
COMMANDS = [line for line in RECIPES if line and not line.startswith("#")]
#: The kind of each file that the page names.
LVIS = ("lvis_v1_val.json", "lvis_v1_minival_inserted_image_name.json")
COCO = ("instances_val2017.json", "v3det_2023_v1_val.json")
RESULTS = ("results.json", "coco_results.json", "v3det_results.json")
Numbers = Mapping[str, float | None]


def preset_of(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("--like") + 1]


def expected(name: str, iou: str, annotations: Any, results: Sequence[Any]) -> Numbers:
    """What the project's evaluator says, by the package that it calls."""
    fixed = cut_per_class(results, 10_000)
    if name == "coco":
        return evaluate_coco(annotations, results, iou)
    if name == "v3det":
        return evaluate_coco_at(annotations, results, "bbox", 300)
    if name == "lvis-challenge-2021":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lvis_eval.mask_utils, "iou", boundary_ious)
            return evaluate_lvis(annotations, fixed, "segm", -1)
    if name in ("lvis", "detectron2"):
        dropped = name == "detectron2" and iou == "segm"
        rows = without_boxes(results) if dropped else results
        return evaluate_lvis(annotations, rows, iou, 300)
    if name in ("glip", "mm-grounding-dino"):
        return evaluate_lvis(annotations, fixed, "bbox", -1)
    best = cut_per_class(cut_per_image(results, 1000), 10_000)
    return evaluate_lvis(annotations, without_boxes(best) if iou == "segm" else best, iou, -1)


def printed(text: str) -> dict[str, float | None]:
    """The numbers of a table with one column, in percent."""
    found = re.findall(r"^(AP\w*|AR\w*) +(\d+\.\d+|–)$", text, re.MULTILINE)
    return {name: None if value == "–" else float(value) for name, value in found}


def test_the_page_has_every_preset() -> None:
    assert {preset_of(command) for command in COMMANDS} == set(PRESETS)
    rows = dict(re.findall(r"^\| `([\w-]+)` \| `([\w/,]+)` \|", PAGE, re.MULTILINE))
    assert rows == {name: one.chain for name, one in PRESETS.items()}
    sources = PAGE[PAGE.index("## Sources of the presets") :]
    for name in PRESETS:
        assert f"| `{name}` |" in sources


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("command", COMMANDS)
def test_a_recipe(command: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *words = shlex.split(command)
    verb, truth, results, *options = words
    assert (program, verb) == ("lvdet", "evaluate")
    assert truth in LVIS + COCO
    assert results in RESULTS
    annotations, found = (lvis_case if truth in LVIS else coco_case)(90_000 + seed, True)
    monkeypatch.chdir(tmp_path)
    Path(truth).write_text(json.dumps(annotations))
    Path(results).write_text(json.dumps(found))
    done = lvdet_call(verb, truth, results, *options).good()
    name = preset_of(command)
    iou = options[options.index("--iou") + 1] if "--iou" in options else PRESETS[name].iou
    assert iou is not None
    reference = expected(name, iou, annotations, found)
    shown = printed(done.out)
    assert {"AP", "AP50", "AP75"} <= set(shown) & set(reference)
    for metric in set(shown) & set(reference):
        value = reference[metric]
        if value is None:
            assert shown[metric] is None, metric
        else:
            assert shown[metric] == pytest.approx(100 * value, abs=0.0051), metric
    python = lvdet.evaluate(truth, results, iou=iou, like=name)[name].AP
    assert python == pytest.approx(
        reference["AP"] if reference["AP"] is not None else float("nan"), abs=1e-12, nan_ok=True
    )
    for note in PRESETS[name].notes(iou):
        assert note in done.out
