"""A map for every class: whose detections it is fitted on, and what classes get without any."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lvdet
from calibration.made_samples import Rows, drawn_rows, joined, samples_of_classes
from lvdet.calibration.calibrator_file import Origin
from lvdet.calibration.fitting import GROUPINGS, METHODS, MISSING, Fitted, Recipe, fit_classes
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.methods import FITS
from lvdet.calibration.order import calibrated
from tabled import write_case

GRID = np.linspace(0, 1, 201)
LEAST = 2.0**-40
#: Methods whose maps are found by steps, up to a tolerance.
OPTIMISED = ("beta", "platt", "temperature")
NOBODY: Rows = (np.zeros(0), np.zeros(0, dtype=bool))

#: Classes of all kinds: 0 and 5 rare, of which 0 has no detection and 5 none that is right; 1 and
#: 3 common; 2 and 4 frequent, of which 4 has none that is right.
PARTS: list[Rows] = [
    NOBODY,
    drawn_rows(1, 60),
    drawn_rows(2, 300, power=2.0),
    drawn_rows(3, 80, power=0.5),
    drawn_rows(4, 20, none_right=True),
    drawn_rows(5, 15, none_right=True),
    drawn_rows(6, 40, power=0.7),
]
FREQUENCY = "rcfcfrr"
SILENT = (0, 4, 5)


@pytest.fixture(scope="module")
def samples() -> Samples:
    made = samples_of_classes(PARTS, FREQUENCY)
    assert [row for row, count in enumerate(made.right_counts()) if not count] == list(SILENT)
    return made


def of_classes(fitted: Fitted, row: int) -> list[float]:
    """What scores of a class become."""
    category = np.full(len(GRID), row, dtype=np.int32)
    return fitted.new_scores(category, GRID).tolist()


def alone(method: str, parts: list[Rows]) -> Any:
    """What scores become by a fit of these rows and nothing else; where many classes share a call
    of the optimiser, as far as its tolerance goes."""
    score, right = joined(parts)
    (found,) = FITS[method](score, right, np.array([0, len(score)]))
    new = calibrated(found, GRID).tolist()
    return pytest.approx(new, rel=1e-6, abs=1e-9) if method in OPTIMISED else new


def with_frequency(letter: str, parts: list[Rows] = PARTS) -> list[Rows]:
    return [part for part, own in zip(parts, FREQUENCY, strict=True) if own == letter]


# Grouping


@pytest.mark.parametrize("method", FITS)
def test_by_frequency_is_a_fit_of_the_rows_together(method: str, samples: Samples) -> None:
    fitted = fit_classes(samples, Recipe.of(method, "frequency"))
    for row, letter in enumerate(FREQUENCY):
        assert of_classes(fitted, row) == alone(method, with_frequency(letter))
    assert len(fitted.maps) == 3


@pytest.mark.parametrize("method", FITS)
def test_all_is_a_fit_of_all_rows_together(method: str, samples: Samples) -> None:
    fitted = fit_classes(samples, Recipe.of(method, "all"))
    for row in range(len(PARTS)):
        assert of_classes(fitted, row) == alone(method, PARTS)
    assert len(fitted.maps) == 1


#: Classes that are hard to fit: told apart without a mistake, turned round, all equal, one row,
#: only right ones, next to no score, next to 1, and a great many rows.
HARD: list[Rows] = [
    (np.array([0.9, 0.8, 0.2, 0.1]), np.array([True, True, False, False])),
    (np.array([0.9, 0.8, 0.2, 0.1]), np.array([False, False, True, True])),
    (np.full(30, 0.25), np.arange(30) < 10),
    (np.array([0.5]), np.array([True])),
    (np.linspace(0.1, 0.9, 40), np.ones(40, dtype=bool)),
    (np.geomspace(1e-9, 1e-4, 50), np.arange(50) % 7 == 0),
    (1 - np.geomspace(1e-9, 1e-4, 50), np.arange(50) % 3 > 0),
    (np.array([0.0, 0.0, 1.0, 1.0]), np.array([False, True, True, False])),
    drawn_rows(7, 3000, power=3.0),
]


@pytest.mark.parametrize("method", FITS)
def test_classes_do_not_disturb_each_other(method: str) -> None:
    """An ordinary class has the same map among hard ones as by itself."""
    ordinary = [PARTS[row] for row in (1, 2, 3, 6)]
    made = samples_of_classes([*HARD, *ordinary, *HARD], "-" * (2 * len(HARD) + 4))
    fitted = fit_classes(made, Recipe.of(method))
    for place, part in enumerate(ordinary):
        assert of_classes(fitted, len(HARD) + place) == alone(method, [part])
    for row in range(len(made.categories)):
        new = np.array(of_classes(fitted, row))
        assert np.isfinite(new).all()
        assert ((new >= 0) & (new <= 1)).all()


def test_classes_of_no_frequency_are_a_group_of_their_own() -> None:
    parts = [drawn_rows(seed, 50, power=seed / 2) for seed in range(1, 5)]
    fitted = fit_classes(samples_of_classes(parts, "-r-r"), Recipe.of("platt", "frequency"))
    for row in range(4):
        assert of_classes(fitted, row) == alone("platt", parts[row % 2 :: 2])


def test_files_without_frequencies_have_no_frequency_groups() -> None:
    parts = [drawn_rows(seed, 50) for seed in range(3)]
    with pytest.raises(lvdet.InputError, match="have no 'frequency'"):
        fit_classes(samples_of_classes(parts, "---"), Recipe.of("platt", "frequency"))


def test_coco_files_have_no_frequency_groups() -> None:
    pair = lvdet.simulate(images=10, classes=5, style="coco", seed=0)
    with pytest.raises(lvdet.InputError, match="have no 'frequency'"):
        lvdet.Calibrator("platt", grouping="frequency").fit(*pair)
    with pytest.raises(lvdet.InputError, match="have no 'frequency'"):
        lvdet.calibrate(*pair, methods=["platt"], grouping="frequency")


# Classes of which nothing right was seen


@pytest.mark.parametrize("method", FITS)
def test_missing_is_zero(method: str, samples: Samples) -> None:
    """Below all that other classes get, and in order: 0 as far as a ranking can tell."""
    fitted = fit_classes(samples, Recipe.of(method, missing="zero"))
    for row in SILENT:
        new = of_classes(fitted, row)
        assert max(new) <= LEAST
        assert min(new) > 0
        assert all(low < high for low, high in itertools.pairwise(new))


@pytest.mark.parametrize("method", FITS)
def test_missing_keeps(method: str, samples: Samples) -> None:
    fitted = fit_classes(samples, Recipe.of(method, missing="keep"))
    for row in SILENT:
        assert of_classes(fitted, row) == GRID.tolist()


@pytest.mark.parametrize("method", FITS)
def test_missing_is_the_fit_of_the_frequency_group(method: str, samples: Samples) -> None:
    fitted = fit_classes(samples, Recipe.of(method, missing="frequency"))
    for row in SILENT:
        assert of_classes(fitted, row) == alone(method, with_frequency(FREQUENCY[row]))


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("missing", MISSING)
def test_what_is_missing_does_not_touch_the_others(
    method: str, missing: str, samples: Samples
) -> None:
    """Each of them has the fit of its own rows."""
    fitted = fit_classes(samples, Recipe.of(method, missing=missing))
    for row in set(range(len(PARTS))) - set(SILENT):
        assert of_classes(fitted, row) == alone(method, [PARTS[row]])


#: No rare class has a correct detection.
POOR = [*PARTS[:6], drawn_rows(6, 40, none_right=True)]


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("grouping", ["class", "frequency"])
def test_a_frequency_group_without_a_right_one(method: str, grouping: str) -> None:
    made = samples_of_classes(POOR, FREQUENCY)
    rare = [row for row, letter in enumerate(FREQUENCY) if letter == "r"]
    by_all = fit_classes(made, Recipe.of(method, grouping, "frequency"))
    kept = fit_classes(made, Recipe.of(method, grouping, "keep"))
    zero = fit_classes(made, Recipe.of(method, grouping, "zero"))
    for row in rare:
        assert of_classes(by_all, row) == alone(method, POOR)
        assert of_classes(kept, row) == GRID.tolist()
        assert max(of_classes(zero, row)) <= LEAST
    # The frequent class without a right one has a group that has.
    others = alone(method, with_frequency("f", POOR))
    assert of_classes(by_all, 4) == others
    if grouping == "frequency":
        assert of_classes(kept, 4) == others
        assert of_classes(zero, 4) == others


@pytest.mark.parametrize("method", FITS)
def test_without_frequencies_missing_is_the_fit_of_all(method: str) -> None:
    made = samples_of_classes(PARTS, "-------")
    fitted = fit_classes(made, Recipe.of(method, missing="frequency"))
    for row in SILENT:
        assert of_classes(fitted, row) == alone(method, PARTS)


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("empty", [False, True])
def test_nothing_right_at_all(method: str, grouping: str, empty: bool) -> None:
    part = NOBODY if empty else drawn_rows(1, 30, none_right=True)
    made = samples_of_classes([part, NOBODY, part], "rcf")
    for missing in MISSING:
        fitted = fit_classes(made, Recipe.of(method, grouping, missing))
        for row in range(3):
            new = of_classes(fitted, row)
            assert new == GRID.tolist() if missing == "keep" else max(new) <= LEAST


def test_missing_classes_of_coco_files_get_the_fit_of_all() -> None:
    gt, dt = lvdet.simulate(images=30, classes=8, style="coco", dets_per_image=30, seed=2)
    rare = int(dt.category_ids[-1])
    silent = gt.where(gt.categories.ids[gt.category] != rare)
    every = lvdet.Calibrator("beta", grouping="all").fit(silent, dt).transform(dt)
    found = lvdet.Calibrator("beta", missing="frequency").fit(silent, dt).transform(dt)
    here = dt.category_ids[dt.category] == rare
    assert here.any()
    assert found.score[here].tolist() == every.score[here].tolist()
    assert found.score[~here].tolist() != every.score[~here].tolist()


# Hierarchical calibration has an answer for everybody


@pytest.mark.parametrize("frequency", [FREQUENCY, "-------", "rrrrrrr", "r-r-r-r"])
@pytest.mark.parametrize("parts", [PARTS, POOR, [NOBODY] * 7, [drawn_rows(9, 2)] * 7])
def test_hierarchical_has_a_chance_for_every_class(parts: list[Rows], frequency: str) -> None:
    fitted = fit_classes(samples_of_classes(parts, frequency), Recipe.of("hierarchical"))
    assert len(fitted.maps) == len(fitted.of_class) == 7
    for row in range(7):
        new = np.array(of_classes(fitted, row))
        assert np.isfinite(new).all()
        assert ((new >= 0) & (new <= 1)).all()
        assert (np.diff(new) > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_no_classes_at_all(method: str) -> None:
    none = samples_of_classes([NOBODY], "-")
    none = replace(
        none,
        offsets=none.offsets[:1],
        categories=lvdet.Categories(none.categories.ids[:0], (), none.categories.frequency[:0]),
    )
    fitted = fit_classes(none, Recipe.of(method))
    assert fitted.maps == ()
    assert len(fitted.of_class) == 0
    assert len(fitted.new_scores(np.zeros(0, dtype=np.int32), np.zeros(0))) == 0


# Recipes


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("missing", [None, *MISSING])
def test_recipes_that_make_sense(method: str, grouping: str, missing: str | None) -> None:
    own = "keep" if method == "identity" else "zero"
    assert Recipe.of(method, grouping, missing) == Recipe(method, grouping, missing or own)
    recipe = lvdet.Calibrator(method, grouping=grouping, missing=missing).recipe
    assert recipe == Recipe.of(method, grouping, missing)


def test_the_recipe_by_default() -> None:
    assert lvdet.Calibrator().recipe == Recipe("hierarchical", "class", "")


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"method": "betacal"}, "method is 'betacal', expected one of identity, histogram"),
        ({"method": "Beta"}, "method is 'Beta'"),
        ({"method": ""}, "method is ''"),
        ({"method": None}, "method is None"),
        ({"method": 3}, "method is 3"),
        ({"method": ["beta"]}, "method is ['beta']"),
        ({"grouping": "classes"}, "grouping is 'classes', expected one of class, frequency, all"),
        ({"grouping": None}, "grouping is None"),
        ({"missing": "0"}, "missing is '0', expected one of zero, keep, frequency"),
        ({"missing": ""}, "missing is ''"),
        ({"missing": 0}, "missing is 0"),
        (
            {"method": "hierarchical", "grouping": "all"},
            "choose another method to set grouping or missing",
        ),
        (
            {"method": "hierarchical", "grouping": "frequency"},
            "choose another method to set grouping or missing",
        ),
        ({"method": "hierarchical", "missing": "zero"}, "covers every class"),
    ],
)
def test_recipes_that_make_no_sense(recipe: dict[str, Any], says: str) -> None:
    for make in (Recipe.of, lvdet.Calibrator):
        with pytest.raises(lvdet.InputError) as caught:
            make(**{"method": "beta"} | recipe)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


# New scores


@pytest.mark.parametrize("method", METHODS)
def test_new_scores_are_those_of_each_row_alone(method: str, samples: Samples) -> None:
    """In whatever order the rows are, and however many are mapped at once."""
    fitted = fit_classes(samples, Recipe.of(method))
    rng = np.random.default_rng(3)
    category = rng.integers(0, len(PARTS), 300).astype(np.int32)
    score = np.concatenate([rng.random(150), np.round(rng.random(148), 2), [0.0, 1.0]])
    new = fitted.new_scores(category, score)
    slow = [
        calibrated(fitted.maps[fitted.of_class[row]], np.array([value]))[0]
        for row, value in zip(category, score, strict=True)
    ]
    assert new.tolist() == slow
    some = rng.permutation(300)[:77]
    assert fitted.new_scores(category[some], score[some]).tolist() == new[some].tolist()


def test_new_scores_of_nothing(samples: Samples) -> None:
    fitted = fit_classes(samples, Recipe.of("beta"))
    assert fitted.new_scores(np.zeros(0, dtype=np.int32), np.zeros(0)).tolist() == []


@pytest.mark.parametrize("method", METHODS)
def test_progress_ends_with_everything(method: str, samples: Samples) -> None:
    told: list[tuple[int, int]] = []
    fit_classes(samples, Recipe.of(method), update=lambda done, total: told.append((done, total)))
    assert told
    done, total = told[-1]
    assert done == total > 0
    assert all(one <= of for one, of in told)


# Calibrators of samples and of tables


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrator_has_what_was_fitted(method: str, samples: Samples) -> None:
    origin = Origin("train.json", "results.json", "bbox", 0.75, 10_000)
    calibrator = lvdet.Calibrator(method).fit_samples(samples, origin)
    record = calibrator.record_
    assert record.origin == origin
    assert record.detections.tolist() == [len(part[0]) for part in PARTS]
    assert record.right.tolist() == [int(part[1].sum()) for part in PARTS]
    fitted = fit_classes(samples, Recipe.of(method))
    ids = np.repeat(samples.categories.ids, len(GRID))
    table = lvdet.Detections.from_arrays(
        np.ones_like(ids), ids[::-1], np.tile(GRID, len(PARTS)), np.ones((len(ids), 4))
    )
    new = calibrator.transform(table).score.reshape(len(PARTS), -1)[::-1]
    assert new.tolist() == [of_classes(fitted, row) for row in range(len(PARTS))]


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("zero", "3 classes without a correct detection: scores lowered to almost 0"),
        ("keep", "3 classes without a correct detection: scores unchanged"),
        ("frequency", "3 classes without a correct detection: fit of the frequency group"),
        (None, "3 classes without a correct detection: inferred from the other classes"),
    ],
)
def test_the_summary(missing: str | None, says: str, samples: Samples) -> None:
    origin = Origin("train.json", "results.json", "bbox", 0.75, 10_000)
    method = "hierarchical" if missing is None else "beta"
    calibrator = lvdet.Calibrator(method, missing=missing).fit_samples(samples, origin)
    right = sum(int(part[1].sum()) for part in PARTS)
    by = " by class" if missing else ""
    assert calibrator.summary() == (
        f"{method}{by}, fitted on 515 detections ({right} correct) of 7 classes; {says}"
    )


def test_the_summary_without_frequencies() -> None:
    made = samples_of_classes([drawn_rows(8, 30), drawn_rows(9, 30, none_right=True)], "--")
    origin = Origin("train.json", "results.json", "bbox", 0.75, 10_000)
    calibrator = lvdet.Calibrator("beta", missing="frequency").fit_samples(made, origin)
    assert calibrator.summary().endswith("1 class without a correct detection: fit of all classes")


def test_fitting_again_forgets_what_was_before(samples: Samples) -> None:
    origin = Origin("a", "b", "bbox", 0.75, 10_000)
    other = samples_of_classes([drawn_rows(8, 30)], "f")
    calibrator = lvdet.Calibrator("platt").fit_samples(samples, origin)
    assert calibrator.fit_samples(other, origin) is calibrator
    assert len(calibrator.categories_) == 1


@pytest.mark.parametrize("iou_threshold", [0.5, 0.75])
def test_a_fit_to_files_is_that_to_tables(iou_threshold: float, tmp_path: Any) -> None:
    gt, dt = lvdet.simulate(images=20, classes=8, dets_per_image=40, seed=6)
    paths = write_case(gt, dt, tmp_path)
    options: dict[str, Any] = {"iou_threshold": iou_threshold, "dets_per_class": 30}
    of_tables = lvdet.Calibrator("beta").fit(gt, dt, **options)
    of_files = lvdet.Calibrator("beta").fit(*paths, **options)
    new = of_tables.transform(dt).score
    assert of_files.transform(dt).score.tobytes() == new.tobytes()
    assert of_files.transform(paths[1]).score.tolist() == new.tolist()
    assert of_files.record_.origin == Origin(*map(str, paths), "bbox", iou_threshold, 30)
