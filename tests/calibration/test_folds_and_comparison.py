"""The calibration table: every number equals that from evaluating calibrated results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lvdet
from cli.small_set import pair as small_pair
from comparison.drawn_sets import drawn_detections, drawn_truth
from lvdet.calibration.calibrate import SHOWN
from lvdet.calibration.calibration_table import TITLES, Calibrated, CalibrationTable
from lvdet.calibration.fitting import METHODS
from lvdet.calibration.folds import divided, require_folds
from lvdet.calibration.reliability import calibration_errors
from lvdet.simulation.simulate import Settings, simulate_training
from tabled import Tables, assert_agree, write_case

NAMES = ("AP", "APr", "APc", "APf")
#: Methods whose map never falls.
RISING = ("identity", "beta", "isotonic", "platt", "temperature", "hierarchical")
SETTINGS = Settings(
    images=60, classes=24, dets_per_image=None, bias=1.0, class_bias=0.7, localisation=0.7, seed=11
)
FOLDS = 3


@pytest.fixture(scope="module")
def tables() -> Tables:
    return lvdet.simulate(**asdict(SETTINGS))


@pytest.fixture(scope="module")
def training() -> Tables:
    return simulate_training(SETTINGS, 90, overconfidence=1.0)


@pytest.fixture(scope="module")
def compared(tables: Tables, training: Tables) -> CalibrationTable:
    return lvdet.calibrate(*tables, train=training, folds=FOLDS, methods=METHODS)


def block_rows(table: CalibrationTable, name: str) -> dict[str, Calibrated]:
    (block,) = [block for block in table.blocks if block.name == name]
    return block.rows


def assert_equal(ours: Mapping[str, float], other: Mapping[str, float], what: str) -> None:
    """AP, APr, APc, APf; undefined where undefined."""
    assert_agree(ours, {name: other[name] for name in NAMES}, what)


def assert_is(row: Calibrated, evaluation: lvdet.Evaluation, what: str) -> None:
    """The row is what was evaluated."""
    assert_equal(row.pool, evaluation["pool"].metrics, f"{what}, AP-Pool")
    assert_equal(row.fixed, evaluation["fixed"].metrics, f"{what}, AP-Fixed")


def of_images(tables: Tables, keep: NDArray[np.bool_]) -> Tables:
    """The tables of some images ([I]) alone, as if there had never been others."""
    gt, dt = tables
    rows = np.flatnonzero(keep)
    return drawn_truth(gt, rows), drawn_detections(gt, dt, rows)


def best_of_each_class(dt: lvdet.Detections, limit: int) -> lvdet.Detections:
    """Its best rows, in file order."""
    kept: list[int] = []
    for one in range(len(dt.category_ids)):
        rows = [row for row in range(len(dt)) if dt.category[row] == one]
        kept += sorted(rows, key=lambda row: -dt.score[row])[:limit]
    return dt[np.array(sorted(kept))]


def by_others(method: str, tables: Tables, folds: int) -> Iterator[tuple[Tables, Tables]]:
    """Each part as it is, and with scores of a fit to the other parts."""
    part = divided(len(tables[0].images), folds)
    for number in range(folds):
        gt, dt = of_images(tables, part == number)
        calibrator = lvdet.Calibrator(method).fit(*of_images(tables, part != number))
        yield (gt, dt), (gt, calibrator.transform(dt))


def fold_means(method: str, tables: Tables, folds: int) -> dict[str, dict[str, float]]:
    """AP-Pool and AP-Fixed over the parts."""
    found = [lvdet.evaluate(*new) for _, new in by_others(method, tables, folds)]
    parts = {name: [one[name].metrics for one in found] for name in ("pool", "fixed")}
    return {name: mean_over_parts(values) for name, values in parts.items()}


def mean_over_parts(values: list[Mapping[str, float]]) -> dict[str, float]:
    means = {}
    for name in NAMES:
        known = [one[name] for one in values if not math.isnan(one[name])]
        means[name] = math.fsum(known) / len(known) if known else float("nan")
    return means


# Folds


@pytest.mark.parametrize(("images", "folds"), [(2, 2), (10, 3), (60, 5), (61, 60), (1000, 7)])
def test_parts_are_of_one_size(images: int, folds: int) -> None:
    part = divided(images, folds)
    counts = [int((part == number).sum()) for number in range(folds)]
    assert sum(counts) == images
    assert max(counts) - min(counts) <= 1
    assert min(counts) >= 1


def test_parts_are_the_same_every_time() -> None:
    first = divided(100, 5).tolist()
    np.random.seed(1)  # noqa: NPY002
    assert divided(100, 5).tolist() == first
    assert first != sorted(first)
    assert first != [number % 5 for number in range(100)], "neighbours do not form a part"


@pytest.mark.parametrize("folds", [1, 0, -2, 11, True, 2.0, "5", None])
def test_folds_that_make_no_sense(folds: Any) -> None:
    for act in (require_folds, lambda folds, images: divided(images, folds)):
        with pytest.raises(lvdet.InputError) as caught:
            act(folds, 10)
        assert str(caught.value) == (
            f"folds is {folds!r}, expected an integer from 2 to the number of images (10)"
        )


@pytest.mark.parametrize("folds", [1, 0, 61, True])
def test_a_comparison_of_folds_that_make_no_sense(tables: Tables, folds: Any) -> None:
    with pytest.raises(lvdet.InputError, match=f"folds is {folds!r}, expected .* images .60."):
        lvdet.calibrate(*tables, methods=["platt"], folds=folds)


# Every row is an evaluation


def test_the_simulated_set_has_all_kinds_of_classes(tables: Tables, training: Tables) -> None:
    """Else what follows would show little."""
    calibrator = lvdet.Calibrator("beta").fit(*training)
    assert (calibrator.record_.right == 0).any()
    assert all(len(rows) for rows in tables[0].categories.groups().values())
    assert tables[0].federated


def test_uncalibrated_is_the_evaluation_of_the_results(
    compared: CalibrationTable, tables: Tables
) -> None:
    assert_is(compared.uncalibrated, lvdet.evaluate(*tables), "uncalibrated")
    assert not compared.uncalibrated.reordered
    for block in compared.blocks:
        if block.name != "folds":
            assert block.uncalibrated is compared.uncalibrated


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", ["train", "oracle"])
def test_a_row_is_the_evaluation_of_calibrated_results(
    method: str, block: str, compared: CalibrationTable, tables: Tables, training: Tables
) -> None:
    gt, dt = tables
    calibrator = lvdet.Calibrator(method).fit(*(training if block == "train" else tables))
    row = block_rows(compared, block)[method]
    new = calibrator.transform(dt)
    assert_is(row, lvdet.evaluate(gt, new), f"{method}, {block}")
    assert row.pool["AP"] != compared.uncalibrated.pool["AP"] or method == "identity"


@pytest.mark.parametrize("block", ["train", "oracle"])
@pytest.mark.parametrize("method", RISING)
def test_errors_are_those_of_calibrated_results(
    method: str, block: str, compared: CalibrationTable, tables: Tables, training: Tables
) -> None:
    gt, dt = tables
    calibrator = lvdet.Calibrator(method).fit(*(training if block == "train" else tables))
    expected = lvdet.Calibrator("identity").measure(gt, calibrator.transform(dt)).errors
    found = block_rows(compared, block)[method].errors
    assert asdict(found.overall) == pytest.approx(asdict(expected.overall), abs=1e-12)
    for name, errors in expected.by_frequency.items():
        assert asdict(found.by_frequency[name]) == pytest.approx(
            asdict(errors), abs=1e-12, nan_ok=True
        )


@pytest.mark.parametrize("method", METHODS)
def test_folds_are_evaluations_of_each_part_by_a_fit_to_the_others(
    method: str, compared: CalibrationTable, tables: Tables
) -> None:
    row, means = block_rows(compared, "folds")[method], fold_means(method, tables, FOLDS)
    assert_equal(row.pool, means["pool"], f"{method}, AP-Pool")
    assert_equal(row.fixed, means["fixed"], f"{method}, AP-Fixed")


def test_folds_of_one_image_each() -> None:
    """Most classes are undefined in most parts: those are left out, and parts of 0 are not."""
    settings = replace(
        SETTINGS, images=12, classes=10, candidates_per_image=1, localisation=0.3, seed=9
    )
    tables = lvdet.simulate(**asdict(settings))
    table = lvdet.calibrate(*tables, folds=12, methods=["platt"], oracle=False)
    parts = [lvdet.evaluate(*new)["pool"].metrics for _, new in by_others("platt", tables, 12)]
    rare = [one["APr"] for one in parts]
    assert any(math.isnan(value) for value in rare)
    assert 0.0 in rare
    assert_equal(block_rows(table, "folds")["platt"].pool, mean_over_parts(parts), "platt")


def test_folds_uncalibrated(compared: CalibrationTable, tables: Tables) -> None:
    part = divided(len(tables[0].images), FOLDS)
    evaluations = [lvdet.evaluate(*of_images(tables, part == number)) for number in range(FOLDS)]
    (block,) = [block for block in compared.blocks if block.name == "folds"]
    for name, found in (("pool", block.uncalibrated.pool), ("fixed", block.uncalibrated.fixed)):
        means = mean_over_parts([one[name].metrics for one in evaluations])
        assert_equal(found, means, f"uncalibrated, {name}")
    errors, every = block.uncalibrated.errors.overall, compared.uncalibrated.errors.overall
    assert asdict(errors) == asdict(every)


def test_errors_of_folds_are_those_of_all_scores_together(
    compared: CalibrationTable, tables: Tables
) -> None:
    """Platt keeps the order in a class of one image, hence labels."""
    score, right = [], []
    for _, new in by_others("platt", tables, FOLDS):
        samples = lvdet.Calibrator("identity").measure(*new).samples
        score.append(samples.score)
        right.append(samples.right)
    expected = calibration_errors(np.concatenate(score), np.concatenate(right))
    found_errors = block_rows(compared, "folds")["platt"].errors.overall
    assert found_errors.count == expected.count
    # The order of rows is another: bins of equal count part ties otherwise.
    for name in ("expected", "maximum", "brier", "log_loss"):
        assert getattr(found_errors, name) == pytest.approx(getattr(expected, name), abs=1e-12)


@pytest.mark.parametrize("style", ["lvis", "coco"])
def test_masks_and_coco_files(style: str) -> None:
    settings = replace(
        SETTINGS, images=16, classes=8, style=style, masks=style == "lvis", candidates_per_image=1
    )
    tables = lvdet.simulate(**asdict(settings))
    training = simulate_training(settings, 20)
    methods = ["histogram", "platt", "hierarchical"]
    table = lvdet.calibrate(*tables, train=training, folds=2, methods=methods)
    assert table.inputs["iou"] == ("segm" if style == "lvis" else "bbox")
    for method in methods:
        for block, fitted_on in (("train", training), ("oracle", tables)):
            calibrator = lvdet.Calibrator(method).fit(*fitted_on)
            evaluation = lvdet.evaluate(tables[0], calibrator.transform(tables[1]))
            assert_is(block_rows(table, block)[method], evaluation, f"{style}, {method}, {block}")
        found = block_rows(table, "folds")[method].pool
        assert_equal(found, fold_means(method, tables, 2)["pool"], f"{style}, {method}, folds")


@pytest.mark.parametrize("method", SHOWN)
def test_a_budget_takes_the_best_by_the_detector_s_own_score(
    method: str, tables: Tables, training: Tables
) -> None:
    gt, dt = tables
    limit = 12
    table = lvdet.calibrate(gt, dt, train=training, folds=2, methods=[method], dets_per_class=limit)
    assert table.budget == "12/class"
    best = best_of_each_class(dt, limit)
    assert len(best) < len(dt) / 2
    calibrator = lvdet.Calibrator(method).fit(*training, dets_per_class=limit)
    new = calibrator.transform(best)
    assert_is(block_rows(table, "train")[method], lvdet.evaluate(gt, new), method)
    assert_is(table.uncalibrated, lvdet.evaluate(gt, dt, dets_per_class=limit), "uncalibrated")
    found = block_rows(table, "folds")[method].pool
    assert_equal(found, fold_means(method, (gt, best), 2)["pool"], f"{method}, folds")


@pytest.mark.parametrize("options", [{"missing": "keep"}, {"missing": "frequency"}])
@pytest.mark.parametrize("grouping", ["class", "frequency", "all"])
def test_groupings_and_missing_classes(
    grouping: str, options: dict[str, str], tables: Tables, training: Tables
) -> None:
    """Hierarchical calibration has its own answers."""
    methods = ["isotonic", "hierarchical"]
    table = lvdet.calibrate(
        *tables, train=training, methods=methods, grouping=grouping, oracle=False, **options
    )
    assert [block.name for block in table.blocks] == ["train"]
    isotonic = lvdet.Calibrator("isotonic", grouping=grouping, **options).fit(*training)
    hierarchical = lvdet.Calibrator("hierarchical").fit(*training)
    for method, calibrator in zip(methods, (isotonic, hierarchical), strict=True):
        evaluation = lvdet.evaluate(tables[0], calibrator.transform(tables[1]))
        assert_is(block_rows(table, "train")[method], evaluation, f"{method} by {grouping}")


@pytest.mark.parametrize("threshold", [0.5, 0.62])
def test_another_threshold(threshold: float, tables: Tables, training: Tables) -> None:
    """One of AP's own, and one between them."""
    table = lvdet.calibrate(*tables, train=training, methods=["beta"], iou_threshold=threshold)
    for block, fitted_on in (("train", training), ("oracle", tables)):
        calibrator = lvdet.Calibrator("beta").fit(*fitted_on, iou_threshold=threshold)
        evaluation = lvdet.evaluate(tables[0], calibrator.transform(tables[1]))
        row = block_rows(table, block)["beta"]
        assert_is(row, evaluation, block)
        new = lvdet.Calibrator("identity").measure(
            tables[0], calibrator.transform(tables[1]), iou_threshold=threshold
        )
        assert row.errors.overall.expected == pytest.approx(new.errors.overall.expected, abs=1e-12)


# Order inside a class


def verified(gt: lvdet.GroundTruth, dt: lvdet.Detections) -> NDArray[np.bool_]:
    """[N] detections of classes that were looked for in their image."""
    assert gt.negative is not None
    cells = {
        (gt.images.ids[image], gt.categories.ids[category])
        for image, category in zip(gt.image, gt.category, strict=True)
    }
    for image in range(len(gt.images)):
        lists = gt.negative
        for category in lists.category[lists.offsets[image] : lists.offsets[image + 1]]:
            cells.add((gt.images.ids[image], gt.categories.ids[category]))
    ids = zip(dt.image_ids[dt.image], dt.category_ids[dt.category], strict=True)
    return np.array([one in cells for one in ids])


def changed_classes(gt: lvdet.GroundTruth, dt: lvdet.Detections, new: lvdet.Detections) -> set[int]:
    """Rows of the classes in which two detections that count have another order, or only now or
    no longer a common place."""
    counted = verified(gt, dt)
    changed = set()
    for row, number in enumerate(gt.categories.ids.tolist()):
        here = counted & (dt.category_ids[dt.category] == number)
        before, after = dt.score[here], new.score[here]
        if (
            np.sign(before[:, None] - before[None, :]) != np.sign(after[:, None] - after[None, :])
        ).any():
            changed.add(row)
    return changed


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", ["train", "oracle"])
def test_classes_with_another_order(
    method: str, block: str, compared: CalibrationTable, tables: Tables, training: Tables
) -> None:
    gt, dt = tables
    calibrator = lvdet.Calibrator(method).fit(*(training if block == "train" else tables))
    row = block_rows(compared, block)[method]
    assert row.reordered == changed_classes(gt, dt, calibrator.transform(dt))


@pytest.mark.parametrize("method", METHODS)
def test_classes_with_another_order_in_a_part(
    method: str, compared: CalibrationTable, tables: Tables
) -> None:
    changed: set[int] = set()
    for (gt, dt), (_, new) in by_others(method, tables, FOLDS):
        changed |= changed_classes(gt, dt, new)
    assert block_rows(compared, "folds")[method].reordered == changed


def test_methods_that_never_fall_keep_every_order(compared: CalibrationTable) -> None:
    for block in compared.blocks:
        for method, row in block.rows.items():
            if method in RISING:
                assert not row.reordered, (block.name, method)
        assert any(block.rows[method].reordered for method in ("histogram", "bbq", "bbq-bic"))


def test_ap_fixed_stays_where_no_order_changed(compared: CalibrationTable) -> None:
    for block in compared.blocks:
        for method, row in block.rows.items():
            if not row.reordered:
                what = f"{method}, {block.name}"
                assert_equal(row.fixed, block.uncalibrated.fixed, what)
            elif method == "histogram":
                assert row.fixed["AP"] != block.uncalibrated.fixed["AP"]


def test_notes_name_the_methods_that_changed_an_order(compared: CalibrationTable) -> None:
    notes = compared.notes()
    assert len(notes) == len(compared.blocks)
    for block, note in zip(compared.blocks, notes, strict=True):
        assert note.startswith(f"{block.title}: ")
        for method, row in block.rows.items():
            shown = f"{TITLES[method]} ({len(row.reordered):,} class"
            assert (shown in note) == bool(row.reordered)


# Requests


def test_blocks(tables: Tables, training: Tables) -> None:
    def names(**options: Any) -> list[str]:
        found = lvdet.calibrate(*tables, methods=["temperature"], **options)
        return [f"{block.name}: {block.title}" for block in found.blocks]

    fitted = f"train: fitted on {training[0].source} and {training[1].source}"
    oracle = "oracle: fitted on the evaluated images (oracle)"
    assert names() == ["folds: 5-fold cross-validation over images", oracle]
    assert names(folds=2) == ["folds: 2-fold cross-validation over images", oracle]
    assert names(oracle=False) == ["folds: 5-fold cross-validation over images"]
    assert names(train=training) == [fitted, oracle]
    assert names(train=training, oracle=False) == [fitted]
    assert names(train=training, folds=4) == [
        fitted,
        "folds: 4-fold cross-validation over images",
        oracle,
    ]


def test_methods_in_the_order_they_are_asked_for(tables: Tables) -> None:
    table = lvdet.calibrate(*tables, methods=["platt", "identity", "platt"], folds=2, oracle=False)
    assert list(table.blocks[0].rows) == ["platt", "identity"]
    assert SHOWN == ("histogram", "bbq", "beta", "isotonic", "platt", "hierarchical")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"methods": []}, "no calibration methods to compare"),
        ({"methods": ()}, "no calibration methods to compare"),
        ({"methods": ["platt", "plat"]}, "method is 'plat', expected one of"),
        ({"methods": "platt"}, "method is 'p', expected one of"),
        ({"methods": [None]}, "method is None, expected one of"),
        ({"grouping": "group"}, "grouping is 'group', expected one of"),
        ({"missing": "none"}, "missing is 'none', expected one of"),
        ({"iou_threshold": 0}, "IoU threshold is 0"),
        ({"iou_threshold": 75}, "IoU threshold is 75"),
        ({"iou": "mask"}, "iou is 'mask'"),
        ({"dets_per_class": -1}, "limit on detections is -1"),
    ],
)
def test_what_makes_no_sense(tables: Tables, options: dict[str, Any], says: str) -> None:
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.calibrate(*tables, **{"methods": ["platt"]} | options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_makes_no_sense_is_told_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="no calibration methods"):
        lvdet.calibrate(tmp_path / "none.json", tmp_path / "none.json", methods=[])


# A training set of other classes


def renamed(tables: Tables, row: int, name: str) -> Tables:
    gt, dt = tables
    names = list(gt.categories.names)
    names[row] = name
    return replace(gt, categories=replace(gt.categories, names=tuple(names))), dt


def renumbered(tables: Tables, row: int, number: int) -> Tables:
    """A class of the annotations under another id, and its detections too."""
    gt, dt = tables
    ids = gt.categories.ids.copy()
    assert ids[row] == max(ids), "ids must rise"
    wanted = np.where(dt.category_ids == ids[row], number, dt.category_ids)
    ids[row] = number
    return (
        replace(gt, categories=replace(gt.categories, ids=ids)),
        replace(dt, category_ids=wanted),
    )


def test_a_training_set_without_a_class(tables: Tables, training: Tables) -> None:
    categories = tables[0].categories
    other = renumbered(training, len(categories) - 1, 10_000)
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.calibrate(*tables, train=other, methods=["platt"])
    assert str(caught.value) == (
        f"{training[1].source}: its annotations lack class id {categories.ids[-1]} "
        f"({categories.names[-1]!r}), which is being evaluated"
    )


def test_a_training_set_with_another_name(tables: Tables, training: Tables) -> None:
    categories = tables[0].categories
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.calibrate(*tables, train=renamed(training, 3, "zebra"), methods=["platt"])
    assert str(caught.value) == (
        f"{training[1].source}: its annotations call class id {categories.ids[3]} 'zebra', "
        f"but it is evaluated as {categories.names[3]!r}"
    )


def test_a_training_set_with_more_classes(tables: Tables, training: Tables) -> None:
    """Rows of the two sets are others then; each class has its own map all the same."""
    gt, dt = training
    before = lvdet.calibrate(*tables, train=training, methods=["beta", "histogram"], oracle=False)
    categories = lvdet.Categories(
        np.concatenate([[-7], gt.categories.ids]),
        ("another", *gt.categories.names),
        np.concatenate([["r"], gt.categories.frequency]),
    )
    assert gt.negative is not None
    assert gt.not_exhaustive is not None
    more = replace(
        gt,
        categories=categories,
        category=gt.category + np.int32(1),
        negative=replace(gt.negative, category=gt.negative.category + np.int32(1)),
        not_exhaustive=replace(
            gt.not_exhaustive, category=gt.not_exhaustive.category + np.int32(1)
        ),
    )
    after = lvdet.calibrate(*tables, train=(more, dt), methods=["beta", "histogram"], oracle=False)
    for method, row in before.blocks[0].rows.items():
        found = after.blocks[0].rows[method]
        assert found.pool == row.pool
        assert found.fixed == row.fixed


def test_a_training_set_whose_scores_are_logits(tables: Tables, training: Tables) -> None:
    gt, dt = training
    logits = (gt, dt.with_scores(dt.score * 9 - 4))
    with pytest.raises(lvdet.InputError, match="sigmoid"):
        lvdet.calibrate(*tables, train=logits, methods=["platt"])
    with pytest.raises(lvdet.InputError, match="sigmoid"):
        lvdet.calibrate(*logits, methods=["platt"])


# Files, threads, and what is shown


def test_files_and_tables_give_the_same(tables: Tables, training: Tables, tmp_path: Path) -> None:
    for name in ("val", "train"):
        (tmp_path / name).mkdir()
    val, train = write_case(*tables, tmp_path / "val"), write_case(*training, tmp_path / "train")
    options: dict[str, Any] = {"methods": ["histogram", "hierarchical"], "folds": 2}
    options["dets_per_class"] = 40
    of_tables = lvdet.calibrate(*tables, train=training, **options).to_dict()
    of_files = lvdet.calibrate(*val, train=train, **options).to_dict()
    assert of_files["inputs"]["ground_truth"] == str(val[0])
    assert of_files["blocks"][0]["fitted_on"] == "fitted on {} and {}".format(*train)
    for content in (of_tables, of_files):
        for key in ("ground_truth", "detections"):
            del content["inputs"][key]
        del content["blocks"][0]["fitted_on"]
        del content["warnings"]
    assert of_files == of_tables


def test_plain_values(compared: CalibrationTable, tables: Tables) -> None:
    content = compared.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content.keys() == {"budget", "uncalibrated", "blocks", "inputs", "warnings"}
    assert content["budget"] == "10000/class"
    assert [block["name"] for block in content["blocks"]] == ["train", "folds", "oracle"]
    assert content["inputs"]["images"] == len(tables[0].images)
    for block, shown in zip(compared.blocks, content["blocks"], strict=True):
        assert [row["method"] for row in shown["rows"]] == list(METHODS)
        for row in shown["rows"]:
            one = block.rows[row["method"]]
            assert row["pool"]["AP"] == one.pool["AP"]
            assert row["fixed"]["APr"] == one.fixed["APr"]
            assert row["reordered_classes"] == len(one.reordered)
            assert row["errors"]["all"] == asdict(one.errors.overall)
            assert list(row["errors"]) == ["all", "r", "c", "f"]


def test_what_is_undefined_is_null(tmp_path: Path) -> None:
    """No frequent class; a set of two images."""
    table = lvdet.calibrate(*small_pair(tmp_path), folds=2, methods=["platt"])
    content = table.to_dict()
    json.dumps(content, allow_nan=False)
    assert content["uncalibrated"]["pool"]["APf"] is None
    assert content["uncalibrated"]["errors"]["f"]["expected"] is None
    assert "APf" not in str(table)


def test_the_table_as_text(compared: CalibrationTable) -> None:
    text = str(compared)
    assert text.startswith(f"{compared.title()}\n\n")
    layouts = compared.layouts()
    assert [layout.name for layout in layouts] == ["", "", ""]
    assert [layout.name for layout in compared.layouts(labelled=True)] == [
        "calibration-train",
        "calibration-folds",
        "calibration-oracle",
    ]
    for block, layout in zip(compared.blocks, layouts, strict=True):
        assert layout.title == f"AP-Pool, 10000/class, {block.title}"
        assert layout.title in text
        assert layout.head == ["Calibration", "AP-Pool", *NAMES[1:], "AP-Fixed", "ECE"]
        first, *others = layout.lines
        assert [line[0].value for line in layout.lines] == [
            "Uncalibrated",
            *(TITLES[method] for method in METHODS),
        ]
        assert first[1].value == f"{100 * block.uncalibrated.pool['AP']:.2f}"
        assert first[1].delta == ""
        for line, row in zip(others, block.rows.values(), strict=True):
            shown = [*(row.pool[name] for name in NAMES), row.fixed["AP"]]
            assert [cell.value for cell in line[1:6]] == [f"{100 * value:.2f}" for value in shown]
            delta = round(100 * (row.pool["AP"] - block.uncalibrated.pool["AP"]), 2) + 0.0
            assert line[1].delta == f"{delta:+.2f}"
            assert line[-1].value == f"{100 * row.errors.overall.expected:.2f}"
    assert all(note in text for note in compared.notes())


def test_every_method_has_a_title() -> None:
    assert set(TITLES) == set(METHODS)


def test_an_oracle_knows_best(compared: CalibrationTable) -> None:
    """Fitted on the images it is judged on, binning has no expected error left."""
    rows = block_rows(compared, "oracle")
    silent = block_rows(compared, "train")
    for method in ("histogram", "isotonic"):
        assert rows[method].errors.overall.expected < 1e-5
        assert silent[method].errors.overall.expected > 0.01
