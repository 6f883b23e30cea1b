"""What a finding says to do repairs the file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from wrong_files import WRONG

import lvdet
from cli.run_lvdet import lvdet_call
from lvdet.errors import InputError
from tabled import Tables


@pytest.fixture(scope="module")
def honest() -> Tables:
    return lvdet.simulate(images=150, classes=40, dets_per_image=60, style="coco", seed=4)


@pytest.mark.parametrize(
    "name",
    ["corners", "centres", "fractions", "corners in fractions", "centres in fractions",
     "ids one higher", "ids one lower"],
)  # fmt: skip
def test_the_command_of_a_finding(
    honest: Tables, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, dt = honest
    monkeypatch.chdir(tmp_path)
    lvdet.write_ground_truth(gt, "gt.json")
    lvdet.write_detections(WRONG[name][1](gt, dt), "dt.json")
    (finding,) = lvdet.audit("gt.json", "dt.json").implausible
    commands = [part.split(", and repair")[0] for part in finding.remedy.split("with: lvdet ")[1:]]
    for command in commands:
        verb, *arguments = shlex.split(command.rstrip("."))
        done = lvdet_call(verb, *arguments)
        assert done.code == (2 if verb == "check" else 0), done
    fixed = lvdet.read_detections("FIXED.json")
    assert np.allclose(fixed.box, dt.box, atol=1e-9)
    # Ids that the annotations do not have say nothing of what they stand for.
    known = np.isin(fixed.category_ids[fixed.category], gt.categories.ids)
    assert known.mean() > 0.9
    same = fixed.category_ids[fixed.category] == dt.category_ids[dt.category]
    assert same[known].all()
    assert lvdet.audit("gt.json", "FIXED.json").implausible == []


def test_boxes_that_cannot_be_corners_are_refused(honest: Tables, tmp_path: Path) -> None:
    _, dt = honest
    lvdet.write_detections(dt, tmp_path / "dt.json")
    with pytest.raises(InputError, match=r"row [\d,]+: bbox \[.*\] is not xyxy"):
        lvdet.convert(tmp_path / "dt.json", tmp_path / "out.json", box_format="xyxy")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--box-format", "yxyx"], "box format is 'yxyx', expected one of xywh, xyxy, cxcywh"),
        (
            ["--box-format", "xywhn"],
            "box format xywhn needs the image sizes: pass --images",
        ),
        (["--category-map", "no.json"], "no.json: No such file"),
        (["--category-map", "list.json"], "list.json: expected an object of class ids"),
        (["--category-map", "text.json"], "text.json: 'cat' is mapped to 1, expected integers"),
        (
            ["--category-map", "join.json", "--dets-per-class", "5"],
            "the category map merges classes, which cannot be combined with a limit",
        ),
    ],
)
def test_bad_repairs(
    honest: Tables,
    options: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lvdet.write_detections(honest[1], "dt.json")
    Path("list.json").write_text("[1]")
    Path("text.json").write_text(json.dumps({"cat": 1}))
    Path("join.json").write_text(json.dumps({"1": 7, "2": 7}))
    done = lvdet_call("convert", "dt.json", "-o", "out.json", *options)
    assert done.code == 2
    assert says in done.err
    assert not Path("out.json").exists()
