"""`lvdet calibrate fit`, `apply`, `compare` and `measure` as they are run."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import lvdet
from cli.run_lvdet import Done, lvdet_call, lvdet_command
from cli.small_set import COCO, FOUND, LVIS, pair, save
from lvdet.calibration.calibrate import SHOWN
from lvdet.calibration.fitting import METHODS
from lvdet.simulation.simulate import Settings, simulate_training
from tabled import write_case


class Files(NamedTuple):
    """Annotations and results of a validation and a training set."""

    val: tuple[Path, Path]
    train: tuple[Path, Path]

    @property
    def dt(self) -> Path:
        return self.val[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    settings = Settings(images=20, classes=10, dets_per_image=40, bias=1.0, seed=5)
    return Files(
        write_case(*lvdet.simulate(**asdict(settings)), tmp_path_factory.mktemp("val")),
        write_case(
            *simulate_training(settings, 30, overconfidence=1.0), tmp_path_factory.mktemp("train")
        ),
    )


@pytest.fixture(scope="module")
def calibrator(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibrator") / "cal.json"
    lvdet.Calibrator("beta").fit(*files.train).save(path)
    return path


def calibrate(*arguments: str | Path, **environment: str) -> Done:
    return lvdet_call("calibrate", *arguments, **environment)


# Fit


def test_fit(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "cal.json"
    done = lvdet_command("calibrate", "fit", *files.train, "-o", out).good()
    fitted = lvdet.Calibrator().fit(*files.train)
    assert done.out == f"wrote {out}: {fitted.summary()}\n"
    assert done.err == ""
    fitted.save(tmp_path / "library.json")
    assert out.read_bytes() == (tmp_path / "library.json").read_bytes()


@pytest.mark.parametrize(
    ("options", "recipe", "fitting"),
    [
        *((["--method", method], {"method": method}, {}) for method in METHODS),
        (
            ["--method", "platt", "--grouping", "frequency"],
            {"method": "platt", "grouping": "frequency"},
            {},
        ),
        (
            ["--method", "beta", "--missing", "keep", "--iou-threshold", "0.5"],
            {"method": "beta", "missing": "keep"},
            {"iou_threshold": 0.5},
        ),
        (
            ["--method", "isotonic", "--dets-per-class", "20", "--iou", "bbox", "--threads", "2"],
            {"method": "isotonic"},
            {"dets_per_class": 20, "iou": "bbox"},
        ),
    ],
    ids=str,
)
def test_fit_as_asked_for(
    options: list[str],
    recipe: dict[str, str],
    fitting: dict[str, Any],
    files: Files,
    tmp_path: Path,
) -> None:
    out = tmp_path / "cal.json"
    calibrate("fit", *files.train, "--output", out, *options).good()
    lvdet.Calibrator(**recipe).fit(*files.train, **fitting).save(tmp_path / "library.json")
    assert out.read_bytes() == (tmp_path / "library.json").read_bytes()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--method", "betacal"], "method is 'betacal', expected one of"),
        (["--grouping", "group"], "grouping is 'group', expected one of"),
        (["--missing", "zero"], "hierarchical calibration covers every class"),
        (["--iou-threshold", "75"], "IoU threshold is 75"),
        (["--dets-per-class", "-1"], "limit on detections is -1"),
        (["--iou", "mask"], "iou is 'mask'"),
        (["--threads", "0"], "threads is 0"),
    ],
    ids=str,
)
def test_fits_that_make_no_sense(
    options: list[str], says: str, files: Files, tmp_path: Path
) -> None:
    calibrate("fit", *files.train, "-o", tmp_path / "cal.json", *options).refused(says)
    assert list(tmp_path.iterdir()) == []


def test_coco_files_have_no_frequencies_to_group_by(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, COCO)
    out = tmp_path / "cal.json"
    options = ("--method", "platt", "--grouping", "frequency")
    calibrate("fit", gt, dt, "-o", out, *options).refused("have no 'frequency'")
    assert not out.exists()
    calibrate("fit", gt, dt, "-o", out, "--method", "platt", "--missing", "frequency").good()


def test_fit_to_logits(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"score": 2.5}])
    calibrate("fit", gt, dt, "-o", tmp_path / "cal.json").refused(f"{dt}: score is 2.5", "sigmoid")
    assert not (tmp_path / "cal.json").exists()


@pytest.mark.parametrize("target", ["cal.txt", "cal", "cal.json.gz", "cal.parquet"])
def test_a_calibrator_is_json(target: str, files: Files, tmp_path: Path) -> None:
    calibrate("fit", *files.train, "-o", tmp_path / target).refused("unknown extension", ".json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["fit", "compare", "measure"])
@pytest.mark.parametrize("target", ["nowhere/out.json", "folder.json", "dt.json/out.json"])
def test_targets_that_cannot_be(command: str, target: str, tmp_path: Path) -> None:
    """Refused before the work, as a failure to write."""
    gt, dt = pair(tmp_path)
    (tmp_path / "folder.json").mkdir()
    done = calibrate(command, gt, dt, "--output", tmp_path / target)
    done.refused(f"{tmp_path / target}: cannot write", code=1)
    assert {path.name for path in tmp_path.iterdir()} == {"gt.json", "dt.json", "folder.json"}


@pytest.mark.parametrize("command", ["fit", "compare", "measure"])
@pytest.mark.parametrize("which", ["gt", "dt"])
def test_files_that_are_not_there(command: str, which: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    (gt if which == "gt" else dt).unlink()
    options = ("-o", tmp_path / "cal.json") if command == "fit" else ()
    calibrate(command, gt, dt, *options).refused(f"{which}.json: ")


@pytest.mark.parametrize("command", ["fit", "compare", "measure"])
def test_files_of_the_wrong_kind(command: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    options = ("-o", tmp_path / "cal.json") if command == "fit" else ()
    calibrate(command, dt, gt, *options).refused("dt.json")
    save(dt, '[{"image_id": 1}]')
    calibrate(command, gt, dt, *options).refused("dt.json")
    save(dt, [FOUND[0] | {"image_id": 77}])
    calibrate(command, gt, dt, *options).refused("image_id 77 is not in")
    save(dt, [FOUND[0] | {"category_id": 77}])
    calibrate(command, gt, dt, *options).refused("none of its category ids (77)")


# Measure


def test_measure(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "errors.json"
    done = lvdet_command("calibrate", "measure", *files.val, "--output", out).good()
    measured = lvdet.Calibrator("identity").measure(*files.val)
    assert done.out == f"{measured}\n"
    assert json.loads(out.read_text()) == measured.to_dict()
    for head in ("ECE", "MCE", "adaptive", "Brier", "log loss"):
        assert head in done.out


def test_measure_as_asked_for(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "errors.json"
    done = calibrate(
        *("measure", *files.val, "--output", out, "--iou-threshold", "0.5"),
        *("--dets-per-class", "30", "--iou", "bbox"),
    ).good()
    measured = lvdet.Calibrator("identity").measure(
        *files.val, iou_threshold=0.5, dets_per_class=30
    )
    assert done.out == f"{measured}\n"
    assert "correct at IoU 0.5" in done.out
    assert json.loads(out.read_text()) == measured.to_dict()


def test_measure_by_hand(tmp_path: Path) -> None:
    """The cat of 0.5 is right, the dog of 0.75 is wrong."""
    done = calibrate("measure", *pair(tmp_path)).good()
    assert re.search(r"^\s*all +2 +62\.50 +75\.00 +62\.50 +0\.4062 ", done.out, re.MULTILINE)
    assert done.err == ""


def test_errors_need_an_ending_that_is_known(files: Files, tmp_path: Path) -> None:
    calibrate("measure", *files.val, "--output", tmp_path / "errors").refused("unknown extension")
    assert list(tmp_path.iterdir()) == []


def test_warnings_are_told(tmp_path: Path) -> None:
    """Of a class that the annotations do not have."""
    gt, dt = pair(tmp_path, LVIS, [*FOUND, FOUND[0] | {"category_id": 77}])
    for command in ("measure", "compare"):
        options = ("--folds", "2", "--methods", "platt") if command == "compare" else ()
        done = calibrate(command, gt, dt, *options).good()
        assert done.err.startswith("warning: ")
        assert "77" in done.err


def test_apply_to_results_that_name_images_by_file(
    files: Files, calibrator: Path, tmp_path: Path
) -> None:
    """The same scores as with plain ids are the oracle; boxes may be fractions too."""
    gt = json.loads(files.val[0].read_text())
    names = {image["id"]: Path(image["file_name"]).stem for image in gt["images"]}
    records = json.loads(files.dt.read_text())
    named = tmp_path / "named.json"
    named.write_text(
        json.dumps([one | {"image_id": "x" + names[one["image_id"]]} for one in records])
    )
    for image in gt["images"]:
        image["file_name"] = "x" + image["file_name"]
    truth = tmp_path / "gt.json"
    truth.write_text(json.dumps(gt))
    plain, out = tmp_path / "plain.json", tmp_path / "out.json"
    calibrate("apply", calibrator, files.dt, "-o", plain).good()
    calibrate("apply", calibrator, named, "-o", out, "--images", truth).good()
    assert out.read_bytes() == plain.read_bytes()

    fitted = lvdet.Calibrator.load(calibrator)
    expected = fitted.transform(files.dt)
    for images in (truth, lvdet.read_ground_truth(truth)):
        new = fitted.transform(named, images=images)
        assert new.score.tobytes() == expected.score.tobytes()
        assert new.image_ids[new.image].tolist() == expected.image_ids[expected.image].tolist()
    again = lvdet.Calibrator("beta").fit_transform(truth, named)
    direct = lvdet.Calibrator("beta").fit_transform(files.val[0], files.dt)
    assert again.score.tobytes() == direct.score.tobytes()
    measured = fitted.measure(truth, named)
    assert measured.errors == fitted.measure(files.val[0], files.dt).errors
    calibrate("apply", calibrator, named, "-o", tmp_path / "none.json").refused(
        "image_id", "--images"
    )
    assert not (tmp_path / "none.json").exists()


# Compare


def test_compare_with_a_training_set(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    done = lvdet_command(
        "calibrate", "compare", *files.val, "--train", *files.train, "--output", out
    ).good()
    table = lvdet.calibrate(*files.val, train=files.train)
    assert done.out == f"{table}\n"
    assert json.loads(out.read_text()) == table.to_dict()
    assert [block.name for block in table.blocks] == ["train", "oracle"]
    assert [*table.blocks[0].rows] == [*SHOWN]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--methods", "platt"], {"methods": ["platt"]}),
        (["--methods", " platt, temperature,"], {"methods": ["platt", "temperature"]}),
        (["--methods", "platt", "--folds", "3"], {"methods": ["platt"], "folds": 3}),
        (["--methods", "platt", "--no-oracle"], {"methods": ["platt"], "oracle": False}),
        (
            ["--methods", "beta", "--grouping", "all", "--missing", "keep", "--folds", "2"],
            {"methods": ["beta"], "grouping": "all", "missing": "keep", "folds": 2},
        ),
        (
            ["--methods", "histogram", "--iou-threshold", "0.5", "--dets-per-class", "25"],
            {"methods": ["histogram"], "iou_threshold": 0.5, "dets_per_class": 25},
        ),
    ],
    ids=str,
)
def test_compare_as_asked_for(
    options: list[str], asked: dict[str, Any], files: Files, tmp_path: Path
) -> None:
    out = tmp_path / "table.json"
    done = calibrate("compare", *files.val, *options, "--output", out).good()
    table = lvdet.calibrate(*files.val, **asked)
    assert json.loads(out.read_text()) == table.to_dict()
    assert done.out == f"{table}\n"


def test_tables_in_every_format(files: Files, tmp_path: Path) -> None:
    outputs = [tmp_path / f"table.{ending}" for ending in ("json", "md", "tex", "TEX")]
    options = [word for path in outputs for word in ("--output", str(path))]
    calibrate("compare", *files.val, "--folds", "2", "--methods", "platt,beta", *options).good()
    table = lvdet.calibrate(*files.val, folds=2, methods=["platt", "beta"])
    of_json, markdown, latex, upper = (path.read_text() for path in outputs)
    assert json.loads(of_json) == table.to_dict()
    assert upper == latex
    pool = [block.rows["platt"].pool["AP"] for block in table.blocks]
    for text in (markdown, latex):
        assert text.count("Platt scaling") == 2
        for block, value in zip(table.blocks, pool, strict=True):
            assert f"{100 * value:.2f}" in text
            assert f"AP-Pool, 10000/class, {block.title}" in text
    assert markdown.count("### ") == 2
    assert "| Calibration | AP-Pool | APr | APc | APf | AP-Fixed | ECE |" in markdown
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 2
    assert r"\label{tab:calibration-folds}" in latex
    assert r"\label{tab:calibration-oracle}" in latex


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--methods", " , "], "no calibration methods to compare"),
        (["--methods", "platt,plat"], "method is 'plat', expected one of"),
        (["--folds", "21"], "folds is 21"),
        (["--output", "table.csv"], "unknown extension '.csv', expected one of .json, .md, .tex"),
        (["--output", "table"], "unknown extension ''"),
        (["--grouping", "x", "--methods", "platt"], "grouping is 'x'"),
        (["--iou-threshold", "2"], "IoU threshold is 2"),
    ],
    ids=str,
)
def test_comparisons_that_make_no_sense(options: list[str], says: str, files: Files) -> None:
    calibrate("compare", *files.val, *options).refused(says)


def test_one_bad_target_of_two(files: Files, tmp_path: Path) -> None:
    """Nothing is written, not even what could be."""
    outputs = ("--output", tmp_path / "a.json", "--output", tmp_path / "b.csv")
    calibrate("compare", *files.val, *outputs).refused("b.csv: unknown extension")
    assert list(tmp_path.iterdir()) == []


def test_a_training_set_of_other_classes(files: Files, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    calibrate("compare", *files.val, "--train", gt, dt, "--methods", "platt").refused(
        f"{dt}: its annotations "
    )


def test_an_order_that_changed_is_told(files: Files) -> None:
    options = ("--train", *files.train, "--no-oracle", "--methods", "platt,histogram")
    done = calibrate("compare", *files.val, *options).good()
    table = lvdet.calibrate(
        *files.val, train=files.train, oracle=False, methods=["platt", "histogram"]
    )
    (row,) = [table.blocks[0].rows["histogram"]]
    assert row.reordered
    assert f"Histogram bin ({len(row.reordered)} class" in done.out
    assert "Platt scaling (" not in done.out


def test_no_warning_of_python_comes_through(files: Files, tmp_path: Path) -> None:
    """Of divisions by nothing and the like: a process of its own, with all of them on."""
    gt, dt = pair(tmp_path)
    for arguments in (
        ("fit", gt, dt, "-o", tmp_path / "cal.json"),
        ("compare", gt, dt, "--folds", "2", "--methods", ",".join(METHODS)),
        ("measure", gt, dt),
    ):
        done = lvdet_command("calibrate", *arguments, PYTHONWARNINGS="error").good()
        assert done.err == ""


# Apply


@pytest.mark.parametrize("ending", ["json", "jsonl", "ndjson", "parquet"])
def test_apply(ending: str, files: Files, calibrator: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out.{ending}"
    done = calibrate("apply", calibrator, files.dt, "-o", out).good()
    assert done.out == f"wrote {out}: 800 detections, calibrated by beta\n"
    written, before = lvdet.read_detections(out), lvdet.read_detections(files.dt)
    new = lvdet.Calibrator.load(calibrator).transform(before)
    assert written.score.tolist() == new.score.tolist()
    assert written.box.tolist() == before.box.tolist()
    assert written.image_ids[written.image].tolist() == before.image_ids[before.image].tolist()
    assert (
        written.category_ids[written.category].tolist()
        == before.category_ids[before.category].tolist()
    )


def test_apply_as_a_process_of_its_own(files: Files, calibrator: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    lvdet_command("calibrate", "apply", calibrator, files.dt, "--output", out).good()
    evaluated = lvdet.evaluate(files.val[0], out)["pool"].metrics
    row = (
        lvdet.calibrate(*files.val, train=files.train, methods=["beta"], oracle=False)
        .blocks[0]
        .rows["beta"]
    )
    for name, value in row.pool.items():
        assert evaluated[name] == pytest.approx(value, abs=1e-12)
    assert not math.isnan(row.pool["AP"])


def test_apply_keeps_masks(tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=6, classes=4, dets_per_image=10, masks=True, seed=1)
    lvdet.write_detections(dt, tmp_path / "dt.json")
    lvdet.Calibrator("platt").fit(gt, dt).save(tmp_path / "cal.json")
    out = tmp_path / "out.json"
    calibrate("apply", tmp_path / "cal.json", tmp_path / "dt.json", "-o", out).good()
    before = json.loads((tmp_path / "dt.json").read_text())
    after = json.loads(out.read_text())
    assert len(after) == len(before) == 60
    for old, new in zip(before, after, strict=True):
        assert old.pop("score") != new.pop("score")
        assert old == new


def test_apply_to_several_files(files: Files, calibrator: Path, tmp_path: Path) -> None:
    table = lvdet.read_detections(files.dt)
    lvdet.write_detections(table[:300], tmp_path / "part-1.json")
    lvdet.write_detections(table[300:], tmp_path / "part-2.parquet")
    out = tmp_path / "out.json"
    calibrate("apply", calibrator, f"{tmp_path}/part-*", "-o", out).good()
    new = lvdet.Calibrator.load(calibrator).transform(table)
    assert lvdet.read_detections(out).score.tolist() == new.score.tolist()


def test_apply_to_standard_input(files: Files, calibrator: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = lvdet_call(
        "calibrate", "apply", calibrator, "-", "-o", out, input=files.dt.read_bytes()
    ).good()
    assert "800 detections" in done.out
    assert len(lvdet.read_detections(out)) == 800


def test_apply_to_the_file_itself(files: Files, calibrator: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "dt.json", files.dt.read_bytes())
    calibrate("apply", calibrator, path, "-o", path).good()
    new = lvdet.Calibrator.load(calibrator).transform(lvdet.read_detections(files.dt))
    assert lvdet.read_detections(path).score.tolist() == new.score.tolist()
    assert [one.name for one in tmp_path.iterdir()] == ["dt.json"]


def test_apply_to_nothing(calibrator: Path, tmp_path: Path) -> None:
    empty, out = save(tmp_path / "empty.json", "[]"), tmp_path / "out.json"
    done = calibrate("apply", calibrator, empty, "-o", out).good()
    assert "0 detections" in done.out
    assert json.loads(out.read_text()) == []


def test_apply_what_is_no_calibrator(files: Files, tmp_path: Path) -> None:
    path, out = tmp_path / "cal.json", tmp_path / "out.json"
    calibrate("apply", path, files.dt, "-o", out).refused(f"{path}: No such file")
    for content in (LVIS, {"lvdet_calibrator": 2}):
        done = calibrate("apply", save(path, content), files.dt, "-o", out)
        done.refused(f"{path}: invalid calibrator file: ")
    assert not out.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"category_id": 77}, ["the calibrator was fitted on", "do not include category_id 77"]),
        ({"score": 3.25}, ["row 1: score is 3.25", "sigmoid"]),
        ({"score": "high"}, ["score"]),
        ({"bbox": [1, 2, 3]}, ["bbox has 3 numbers, expected 4"]),
    ],
    ids=["class", "logit", "text", "box"],
)
def test_apply_to_rows_that_do_not_fit(
    change: dict[str, Any], says: list[str], calibrator: Path, files: Files, tmp_path: Path
) -> None:
    """Nothing is written, and what was there stays."""
    known = int(lvdet.read_ground_truth(files.val[0]).categories.ids[0])
    row = {"image_id": 1, "category_id": known, "bbox": [0, 0, 5, 5], "score": 0.5}
    dt = save(tmp_path / "dt.json", [row, row | change])
    out = save(tmp_path / "out.json", "as it was")
    calibrate("apply", calibrator, dt, "-o", out).refused(str(dt), *says)
    assert out.read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"dt.json", "out.json"}


@pytest.mark.parametrize("target", ["out.txt", "out", "out.csv", "out.npz"])
def test_apply_writes_results_alone(
    target: str, files: Files, calibrator: Path, tmp_path: Path
) -> None:
    calibrate("apply", calibrator, files.dt, "-o", tmp_path / target).refused(target)
    assert list(tmp_path.iterdir()) == []


def test_apply_to_a_target_that_cannot_be(files: Files, calibrator: Path, tmp_path: Path) -> None:
    out = tmp_path / "nowhere" / "out.json"
    calibrate("apply", calibrator, files.dt, "-o", out).refused(f"{out}: cannot write", code=1)
    assert list(tmp_path.iterdir()) == []


def test_apply_what_was_fitted_by_histograms(files: Files, tmp_path: Path) -> None:
    """All that the library call gives, the command gives: a histogram's scores too."""
    cal, out = tmp_path / "cal.json", tmp_path / "out.json"
    calibrate("fit", *files.train, "-o", cal, "--method", "histogram").good()
    calibrate("apply", cal, files.dt, "-o", out).good()
    before = lvdet.read_detections(files.dt)
    new = lvdet.Calibrator("histogram").fit(*files.train).transform(before)
    assert lvdet.read_detections(out).score.tolist() == new.score.tolist()
    assert np.unique(new.score).size > 20, "ties are parted"


# Thresholds


def test_thresholds_and_what_is_left_above_them(files: Files, tmp_path: Path) -> None:
    out = [tmp_path / f"thresholds{ending}" for ending in (".json", ".csv", ".md", ".tex")]
    options = [text for path in out for text in ("-o", str(path))]
    done = calibrate(
        "thresholds", *files.val, *options, "--iou-threshold", "0", "--dets-per-image", "30"
    ).good()
    chosen = lvdet.find_thresholds(*files.val, iou_threshold=0, dets_per_image=30)
    assert json.loads(out[0].read_text()) == chosen.to_dict()
    assert out[1].read_text() == chosen.to_csv().replace("\r\n", "\n")
    assert out[2].read_text() == chosen.to_markdown()
    assert out[3].read_text() == chosen.to_latex()
    assert done.out.splitlines()[0] == chosen.title()
    assert "oLRP" in done.out
    errors = tmp_path / "errors.json"
    calibrate(
        "measure",
        *files.val,
        *("--thresholds", out[1], "--laece-iou-threshold", "0.1", "--dets-per-image", "20"),
        *("-o", errors),
    ).good()
    expected = lvdet.Calibrator("identity").measure(
        *files.val, thresholds=out[1], laece_iou_threshold=0.1, dets_per_image=20
    )
    content = json.loads(errors.read_text())
    assert content["measures"] == expected.to_dict()["measures"]
    laece = content["measures"][1]
    assert (laece["name"], laece["budget"], laece["thresholds"]) == (
        "LaECE",
        "20/image",
        str(out[1]),
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--iou-threshold", "1"], "IoU threshold is 1"),
        (["--dets-per-image", "-1"], "limit on detections is -1"),
        (["-o", "t.parquet"], "unknown extension '.parquet'"),
    ],
    ids=str,
)
def test_thresholds_that_make_no_sense(options: list[str], says: str, files: Files) -> None:
    calibrate("thresholds", *files.val, *options).refused(says)
