"""Calibrators as files: what is saved is what is loaded, and all else is refused in a line."""

from __future__ import annotations

import copy
import gzip
import json
import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from calibration.made_samples import read_samples
from calibration.valid_file import (
    SCORES,
    VALID,
    changed,
    copied,
    every_score_of,
    places,
    saved,
    without,
)
from cli.run_lvdet import python_program
from lvdet.calibration.fitting import GROUPINGS, METHODS, MISSING
from tabled import Tables

Json = dict[str, Any]


@pytest.fixture(scope="module")
def pair() -> Tables:
    return lvdet.simulate(images=30, classes=14, dets_per_image=60, bias=1.0, seed=3)


def refused(path: Path, *says: str) -> str:
    """Loading it is refused in one line that names the file and has the words."""
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.Calibrator.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: "), text
    assert "\n" not in text
    assert len(text) < 400 + len(str(path)), text
    for words in says:
        assert words in text, text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return text


# Saved and loaded

RECIPES: list[tuple[str, Json]] = [
    *((method, {}) for method in METHODS),
    *(("platt", {"grouping": grouping}) for grouping in GROUPINGS),
    *(("isotonic", {"missing": missing}) for missing in MISSING),
    ("histogram", {"grouping": "frequency", "missing": "frequency"}),
]


@pytest.mark.parametrize(("method", "options"), RECIPES)
def test_what_is_saved_is_what_is_loaded(
    method: str, options: Json, pair: Tables, tmp_path: Path
) -> None:
    gt, dt = pair
    fitted = lvdet.Calibrator(method, **options).fit(gt, dt)
    fitted.save(tmp_path / "cal.json")
    loaded = lvdet.Calibrator.load(tmp_path / "cal.json")
    for table in (dt, every_score_of(gt.categories)):
        new = fitted.transform(table).score
        assert loaded.transform(table).score.tobytes() == new.tobytes()
    assert loaded.recipe == fitted.recipe
    assert loaded.record_.origin == fitted.record_.origin
    assert loaded.summary() == fitted.summary()
    assert repr(loaded) == repr(fitted)
    assert loaded.categories_.ids.tolist() == gt.categories.ids.tolist()
    assert loaded.categories_.names == gt.categories.names
    assert loaded.categories_.frequency.tolist() == gt.categories.frequency.tolist()
    loaded.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "cal.json").read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_the_file_is_plain_json(method: str, pair: Tables, tmp_path: Path) -> None:
    gt, dt = pair
    lvdet.Calibrator(method).fit(gt, dt, iou="bbox", iou_threshold=0.5, dets_per_class=100).save(
        tmp_path / "cal.json"
    )

    def no_constant(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    text = (tmp_path / "cal.json").read_text(encoding="ascii")
    content = json.loads(text, parse_constant=no_constant)
    assert list(content) == list(VALID)
    assert content["lvdet_calibrator"] == 1
    assert content["method"] == method
    assert content["grouping"] == "class"
    own = {"hierarchical": "", "identity": "keep"}
    assert content["missing"] == own.get(method, "zero")
    assert content["fitted_on"] == {
        "ground_truth": gt.source,
        "detections": dt.source,
        "iou": "bbox",
        "iou_threshold": 0.5,
        "dets_per_class": 100,
    }
    assert content["classes"].keys() == VALID["classes"].keys()
    assert content["classes"]["id"] == gt.categories.ids.tolist()
    assert {len(column) for column in content["classes"].values()} == {len(gt.categories)}
    keys = {map_["shape"]: set(map_) for map_ in VALID["maps"]}
    for item in content["maps"]:
        assert set(item) == keys[item["shape"]]


def test_counts_in_the_file(pair: Tables, tmp_path: Path) -> None:
    """Those of the labels it was fitted on."""
    samples = read_samples(*pair)
    lvdet.Calibrator("platt").fit(*pair).save(tmp_path / "cal.json")
    classes = json.loads((tmp_path / "cal.json").read_text())["classes"]
    for row in range(len(samples.categories)):
        labels = samples.right[samples.rows(row)].tolist()
        assert classes["detections"][row] == len(labels)
        assert classes["right"][row] == sum(labels)
    assert min(classes["right"]) == 0, "a class without a right one is among them"


def test_the_file_by_hand(tmp_path: Path) -> None:
    """A file that lvdet has not written, its maps computed here."""
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = every_score_of(loaded.categories_)
    new = loaded.transform(table).score.reshape(3, len(SCORES))
    a, b, c = 1.5, 0.25, -0.5
    for score, odds, step, line in zip(SCORES.tolist(), *new.tolist(), strict=True):
        if 0 < score < 1:
            expected = 1 / (1 + math.exp(-(a * math.log(score) - b * math.log(1 - score) + c)))
            assert odds == pytest.approx(max(expected, 2**-40), rel=1e-6)
        assert step == pytest.approx(
            0.125 if score < 0.25 else 2**-40 if score < 0.5 else 1.0, rel=1e-6
        )
        expected = 0.2 if score <= 0.5 else 0.7 if score >= 0.9 else 0.2 + (score - 0.5) * 1.25
        assert line == pytest.approx(expected, rel=1e-6)
    assert loaded.summary() == (
        "beta by class, fitted on 12 detections (9 correct) of 3 classes; 1 class without a "
        "correct detection: scores lowered to almost 0"
    )
    assert repr(loaded) == "Calibrator('beta', grouping='class', 3 classes)"


def test_names_that_are_no_ascii(tmp_path: Path) -> None:
    content = changed(("classes", "name"), ["猫", 'a"b\\', "\ud800"])
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", content))
    loaded.save(tmp_path / "again.json")
    again = lvdet.Calibrator.load(tmp_path / "again.json")
    assert again.categories_.names == ("猫", 'a"b\\', "\ud800")


def test_numbers_of_numpy_can_be_saved(pair: Tables, tmp_path: Path) -> None:
    """A threshold that comes out of an array."""
    fitted = lvdet.Calibrator("platt").fit(*pair, iou_threshold=np.float32(0.5))
    fitted.save(tmp_path / "cal.json")
    content = json.loads((tmp_path / "cal.json").read_text())
    assert content["fitted_on"]["iou_threshold"] == 0.5


# Written whole or not at all


def test_a_target_that_cannot_be_written(pair: Tables, tmp_path: Path) -> None:
    fitted = lvdet.Calibrator("platt").fit(*pair)
    with pytest.raises(lvdet.OutputError, match="cannot write"):
        fitted.save(tmp_path / "nowhere" / "cal.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(lvdet.OutputError, match="cannot write"):
        fitted.save(tmp_path / "folder.json")
    with pytest.raises(lvdet.OutputError, match="No space left"):
        fitted.save("/dev/full")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]
    assert list((tmp_path / "folder.json").iterdir()) == []


SAVE_ON_A_FULL_DISK = """
import resource, signal, sys
import lvdet
calibrator = lvdet.Calibrator.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    calibrator.save(sys.argv[2])
except lvdet.OutputError as error:
    print(error)
"""


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_what_was_there(there: bool, tmp_path: Path) -> None:
    """A real limit on the size of files."""
    source, out = saved(tmp_path / "cal.json", VALID), tmp_path / "out"
    out.mkdir()
    if there:
        saved(out / "cal.json", "as it was")
    done = python_program(SAVE_ON_A_FULL_DISK, source, out / "cal.json")
    assert done.err == ""
    assert done.out.startswith(f"{out / 'cal.json'}: cannot write: "), done
    assert [path.name for path in out.iterdir()] == ["cal.json"] * there
    assert not there or (out / "cal.json").read_text() == "as it was"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    calibrator = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(lvdet.OutputError, match="cannot write: Permission denied"):
        calibrator.save(folder / "cal.json")
    assert list(folder.iterdir()) == []


def test_nothing_is_written_before_a_fit(tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="is not fitted"):
        lvdet.Calibrator("beta").save(tmp_path / "cal.json")
    assert list(tmp_path.iterdir()) == []


# Files that are not calibrators at all


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "cal.json", "No such file")


def test_a_folder(tmp_path: Path) -> None:
    refused(tmp_path, "Is a directory")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"\n", "not JSON"),
        (b"calibrator\n", "not JSON"),
        (b"\x00\xff\xfe\x80" * 50, "not JSON"),
        (gzip.compress(json.dumps(VALID).encode(), mtime=0), "not JSON"),
        (json.dumps(VALID).encode() * 2, "not JSON"),
        (json.dumps(VALID).replace('"', "'").encode(), "not JSON"),
        (json.dumps(VALID).encode("latin-1").replace(b"cat", b"c\xe4t"), "not JSON"),
        (b"[]", "'lvdet_calibrator' is missing"),
        (b'["lvdet_calibrator"]', "'lvdet_calibrator' is missing"),
        (json.dumps([VALID]).encode(), "'lvdet_calibrator' is missing"),
        (b'"lvdet_calibrator"', "'lvdet_calibrator' is missing"),
        (b"1", "'lvdet_calibrator' is missing"),
        (b"null", "'lvdet_calibrator' is missing"),
        (b"{}", "'lvdet_calibrator' is missing"),
        (
            b'{"images": [], "categories": [], "annotations": []}',
            "'lvdet_calibrator' is missing",
        ),
        (b'[{"image_id": 1, "category_id": 3, "score": 0.5}]', "'lvdet_calibrator' is missing"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "it is nested too deeply"),
        (b'{"lvdet_calibrator":' * 100_000, "it is nested too deeply"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else None,
)
def test_what_is_no_calibrator(content: bytes, says: str, tmp_path: Path) -> None:
    refused(saved(tmp_path / "cal.json", content), f"invalid calibrator file: {says}")


def test_deep_nesting_inside_a_file(tmp_path: Path) -> None:
    text = json.dumps(VALID).replace('"maps": [', '"maps": [' + "[" * 100_000)
    refused(saved(tmp_path / "cal.json", text), "it is nested too deeply")


def test_cut_off_at_every_byte(tmp_path: Path) -> None:
    text = json.dumps(VALID).encode()
    for length in range(len(text)):
        refused(saved(tmp_path / "cal.json", text[:length]), "not JSON")
    lvdet.Calibrator.load(saved(tmp_path / "cal.json", text))


class Harmful:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (os.environ["HARMFUL_FOLDER"],)


def test_a_pickle_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMFUL_FOLDER", str(tmp_path / "harm"))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(Harmful(), protocol)
        refused(saved(tmp_path / "cal.json", data), "not JSON")
        assert not (tmp_path / "harm").exists()
    pickle.loads(data)
    assert (tmp_path / "harm").exists(), "the pickle does what it is feared for"


# Another version


def test_another_version_needs_nothing_else(tmp_path: Path) -> None:
    refused(saved(tmp_path / "cal.json", {"lvdet_calibrator": 2, "other": 1}), "version is 2")


# Recipes


@pytest.mark.parametrize("key", ["method", "grouping", "missing"])
@pytest.mark.parametrize("value", ["", "Beta", "classes", "none", "beta\nplatt", "é"])
def test_an_unknown_recipe(key: str, value: str, tmp_path: Path) -> None:
    text = refused(saved(tmp_path / "cal.json", changed((key,), value)))
    if value or key != "missing":
        assert f"{key} is {value!r}, expected one of" in text
    else:
        assert "inconsistent" in text


@pytest.mark.parametrize(
    ("method", "grouping", "missing"),
    [
        ("hierarchical", "class", "zero"),
        ("hierarchical", "frequency", ""),
        ("hierarchical", "all", "keep"),
        ("beta", "class", ""),
        ("identity", "all", ""),
    ],
)
def test_recipes_that_do_not_fit(method: str, grouping: str, missing: str, tmp_path: Path) -> None:
    content = VALID | {"method": method, "grouping": grouping, "missing": missing}
    refused(
        saved(tmp_path / "cal.json", content),
        "hierarchical calibration" if method == "hierarchical" else "inconsistent",
    )


# Keys and types

KEYS = [path for path in places() if isinstance(path[-1], str)]


@pytest.mark.parametrize("path", KEYS, ids=str)
def test_a_missing_key(path: tuple[str | int, ...], tmp_path: Path) -> None:
    refused(saved(tmp_path / "cal.json", without(path)), f"'{path[-1]}'")


OTHER_TYPES: list[Any] = [None, True, 7, -1.5, "text", "", [], {}, [[]], [None], {"a": 1}]


@pytest.mark.parametrize("path", places(), ids=str)
def test_other_types(path: tuple[str | int, ...], tmp_path: Path) -> None:
    """Whatever is not of the type that was there is refused, by the name of its key."""
    there: Any = VALID
    for key in path:
        there = there[key]
    number = isinstance(there, int | float)
    for value in OTHER_TYPES:
        if isinstance(value, bool) or not number:
            same = type(value) is type(there)
        else:
            same = isinstance(value, int if isinstance(there, int) else int | float)
        if same:
            continue
        path_ = saved(tmp_path / "cal.json", changed(path, value))
        key = next(key for key in reversed(path) if isinstance(key, str))
        text = refused(path_)
        if key == "lvdet_calibrator":
            assert "version" in text
        elif path[:1] == ("maps",) and len(path) == 2:
            assert f"map {path[1]}: 'shape' is missing" in text
        else:
            assert f"'{key}'" in text, (value, text)


def test_more_keys_than_there_are_do_no_harm(tmp_path: Path) -> None:
    path = saved(tmp_path / "cal.json", VALID | {"note": {"by": "hand"}})
    assert len(lvdet.Calibrator.load(path).categories_) == 3


# Values that cannot be

#: Where, what is there instead, and what is said.
IMPOSSIBLE: list[tuple[tuple[str | int, ...], Any, str]] = [
    *(
        (("lvdet_calibrator",), version, f"version is {version!r}, but this lvdet reads version 1")
        for version in (0, 2, -1, 1.5, "1", "", True, False, None, [1], {"1": 1})
    ),
    (("lvdet_calibrator",), "x" * 10**6, "version"),
    *(((key,), "x" * 10**6, f"{key} is 'xxx") for key in ("method", "grouping", "missing")),
    *(
        (("classes", key), (VALID["classes"][key] * 2)[:count], f"'{key}' has {count} entries")
        for key in ("name", "frequency", "detections", "right", "map")
        for count in (0, 2, 4)
    ),
    (("classes", "id"), [3, 4], "'name' has 3 entries, expected 2"),
    *(
        (("classes", "id"), ids, "ids must be strictly increasing")
        for ids in ([3, 3, 9], [4, 3, 9], [3, 9, 9], [9, 4, 3])
    ),
    *(
        (("classes", key, 2), value, f"'{key}' must contain only 64-bit integers")
        for key in ("id", "detections", "right", "map")
        for value in (2**63, -(2**63) - 1, 2**64, 10**400)
    ),
    *(
        (("classes", "map", 1), place, "a class refers to a map beyond the 3 in the file")
        for place in (-1, 3, 10**6, 2**62, -(2**63))
    ),
    (("maps",), [], "beyond the 0 in the file"),
    *(
        (("classes", "frequency", 0), value, "a frequency is not r, c or f")
        for value in ("x", "R", "rare", "rc")
    ),
    # The second class has no detection and none that is right.
    *(
        (("classes", key, 1), value, "'right' is not between 0 and 'detections'")
        for key, value in (("detections", -1), ("right", -1), ("right", 1))
    ),
    (("fitted_on", "iou"), "masks", "iou is 'masks'"),
    (("fitted_on", "iou_threshold"), 0, "IoU threshold is 0"),
    (("fitted_on", "iou_threshold"), 1.5, "IoU threshold is 1.5"),
    (("fitted_on", "iou_threshold"), -0.5, "IoU threshold is -0.5"),
    (("fitted_on", "dets_per_class"), -1, "limit on detections is -1"),
    (("maps", 0), {"shape": "spline"}, "map 0: shape 'spline' is unknown"),
    (("maps", 0), {"shape": ""}, "map 0: shape '' is unknown"),
    (("maps", 0), {"shape": "x" * 10**6}, "is unknown"),
    (("maps", 0), {"shape": ["steps"]}, "map 0: 'shape' is missing"),
    (("maps", 0, "a"), -1e-300, "map 0: a or b is below 0"),
    (("maps", 0, "b"), -2, "map 0: a or b is below 0"),
    (("maps", 0, "a"), 10**400, "map 0: 'a' contains numbers that are too large"),
    (("maps", 0, "c"), [0.5], "map 0: 'c' must contain only numbers"),
    *(
        (("maps", 1, "edges"), edges, "map 1: 'edges' must increase strictly between 0 and 1")
        for edges in ([0.5, 0.5], [0.5, 0.25], [-0.1, 0.25], [0.5, 1.1])
    ),
    (("maps", 1, "edges"), [0.5], "map 1: 'values' has 3 entries, expected 2"),
    (("maps", 1, "edges"), [], "map 1: 'values' has 3 entries, expected 1"),
    (("maps", 1, "values"), [], "map 1: 'values' has 0 entries, expected 3"),
    (("maps", 1, "values"), [0, 0.5, 1.0001], "map 1: 'values' must be between 0 and 1"),
    (("maps", 1, "values"), [-1e-9, 0.5, 1], "map 1: 'values' must be between 0 and 1"),
    (("maps", 1, "values"), [10**400, 0, 1], "map 1: 'values' contains numbers that are too large"),
    *(
        (("maps", 2, "scores"), scores, "map 2: 'scores' must increase strictly between 0 and 1")
        for scores in ([0.1, 0.1, 0.9], [0.1, 0.9, 0.5], [0.1, 0.5, 2])
    ),
    (("maps", 2, "scores"), [0.1, 0.5], "map 2: 'values' has 3 entries, expected 2"),
    (("maps", 2, "values"), [0.1, 0.5, 1.5], "map 2: 'values' must be between 0 and 1"),
    (("maps", 2), {"shape": "lines", "scores": [], "values": []}, "map 2: 'scores' is empty"),
]


@pytest.mark.parametrize(("path", "value", "says"), IMPOSSIBLE, ids=lambda value: str(value)[:30])
def test_values_that_cannot_be(
    path: tuple[str | int, ...], value: Any, says: str, tmp_path: Path
) -> None:
    refused(saved(tmp_path / "cal.json", changed(path, value)), says)


# Classes


def test_the_highest_and_the_lowest_id(tmp_path: Path) -> None:
    ids = [-(2**63), 0, 2**63 - 1]
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", changed(("classes", "id"), ids)))
    assert loaded.categories_.ids.tolist() == ids
    assert len(loaded.transform(every_score_of(loaded.categories_))) == 3 * len(SCORES)


def test_a_frequency_that_is_not_known(tmp_path: Path) -> None:
    path = saved(tmp_path / "cal.json", changed(("classes", "frequency"), ["", "", ""]))
    assert lvdet.Calibrator.load(path).categories_.groups() == {}


def test_no_class_at_all(tmp_path: Path) -> None:
    """Nothing to calibrate, and no class to request."""
    classes: Json = {key: [] for key in VALID["classes"]}
    path = saved(tmp_path / "cal.json", VALID | {"classes": classes, "maps": []})
    loaded = lvdet.Calibrator.load(path)
    assert len(loaded.categories_) == 0
    with pytest.raises(lvdet.InputError, match="category_id 3"):
        loaded.transform(lvdet.Detections.from_arrays([1], [3], [0.5], [[0, 0, 1, 1]]))


# Maps


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("key", ["1.5", "0.25", "-0.5", "0.125", "0.1", "0.75", "10000", "3"])
def test_numbers_that_json_does_not_have(key: str, constant: str, tmp_path: Path) -> None:
    text = json.dumps(VALID).replace(f" {key}", f" {constant}", 1)
    assert constant in text or f"[{key}" in text
    text = text if constant in text else text.replace(f"[{key}", f"[{constant}", 1)
    refused(saved(tmp_path / "cal.json", text), f"it contains {constant}, expected finite numbers")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 399, "-1" + "0" * 399])
@pytest.mark.parametrize(
    "path", [path for path in places() if path[-1] in ("a", "b", "c", "iou_threshold")]
)
def test_numbers_beyond_all_floats(
    path: tuple[str | int, ...], number: str, tmp_path: Path
) -> None:
    text = json.dumps(changed(path, "HERE")).replace('"HERE"', number)
    refused(saved(tmp_path / "cal.json", text), f"'{path[-1]}' contains numbers that are too large")


@pytest.mark.parametrize("path", [("maps", 1, "values", 0), ("classes", "id", 0), ("note",)])
def test_numbers_of_5000_digits(path: tuple[str | int, ...], tmp_path: Path) -> None:
    """More than Python reads; the line does not advise to change Python."""
    text = json.dumps(changed(path, "HERE")).replace('"HERE"', "7" * 5000)
    found = refused(saved(tmp_path / "cal.json", text), "a number with thousands of digits")
    assert "set_int_max_str_digits" not in found


def test_numbers_that_are_absurd_but_finite(tmp_path: Path) -> None:
    """No warning, and chances all the same."""
    for item in (
        {"shape": "log-odds", "a": 1.7e308, "b": 0, "c": 0},
        {"shape": "log-odds", "a": 0, "b": 1.7e308, "c": -1.7e308},
        {"shape": "log-odds", "a": 1.7e308, "b": 1.7e308, "c": 1.7e308},
        {"shape": "log-odds", "a": 1.7e308, "b": 1.7e308, "c": -1.7e308},
        {"shape": "lines", "scores": [0, 5e-324, 1e-310, 1], "values": [0, 1, 0, 1]},
        {"shape": "steps", "edges": [5e-324], "values": [1, 0]},
    ):
        path = saved(tmp_path / "cal.json", changed(("maps", 0), item))
        chances_of(lvdet.Calibrator.load(path))


# One place changed at random


def chances_of(calibrator: lvdet.Calibrator) -> None:
    """Every class and score has a chance."""
    for scores in (SCORES, np.array([5e-324, 5e-311, 1e-308, 2.0**-149])):
        new = calibrator.transform(every_score_of(calibrator.categories_, scores)).score
        assert np.isfinite(new).all()
        assert ((new >= 0) & (new <= 1)).all(), new


def chances_or_refused(path: Path) -> None:
    """A calibrator that gives chances, or an error in a line; nothing else."""
    try:
        loaded = lvdet.Calibrator.load(path)
    except lvdet.InputError:
        refused(path)
    else:
        chances_of(loaded)


SIMPLE: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 5),
    st.sampled_from([2**63, -(2**63), 10**400, 1e-310, 5e-324, 1.7e308, -0.0, 0.0, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1),
    st.text(max_size=5),
    st.sampled_from([*METHODS, *GROUPINGS, *MISSING, "r", "steps", "lines", "log-odds", "segm"]),
)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["shape", "a", "edges", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=600)
@given(data=st.data())
def test_one_place_changed(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = data.draw(st.sampled_from(places()), label="place")
    kind = data.draw(st.sampled_from(["value", "delete", "repeat"]), label="kind")
    if kind == "value":
        content = changed(path, data.draw(VALUES, label="value"))
    elif kind == "delete":
        content = without(path)
    else:
        content, holder = copied(path)
        if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))  # type: ignore[index]
    file = saved(tmp_path_factory.getbasetemp() / "changed.json", content)
    chances_or_refused(file)


@settings(max_examples=600)
@given(at=st.integers(0, len(json.dumps(VALID)) - 1), new=st.binary(max_size=3))
def test_one_byte_changed(at: int, new: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = json.dumps(VALID).encode()
    file = saved(tmp_path_factory.getbasetemp() / "byte.json", text[:at] + new + text[at + 1 :])
    chances_or_refused(file)


# Applied to what does not fit


def test_a_class_that_the_calibrator_does_not_know(tmp_path: Path) -> None:
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = lvdet.Detections.from_arrays(
        [1, 1, 1], [3, 77, 5], [0.5, 0.5, 0.5], np.ones((3, 4)), source="new.json"
    )
    with pytest.raises(lvdet.InputError) as caught:
        loaded.transform(table)
    assert str(caught.value) == (
        "new.json: the calibrator was fitted on train.json for 3 classes, which do not include "
        "category_id 5, 77"
    )


@pytest.mark.parametrize("score", [-2.5, 1.5, 1 + 1e-5, -1e-5, 1e300])
def test_scores_that_are_logits(score: float, tmp_path: Path) -> None:
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = lvdet.Detections.from_arrays(
        [1, 1, 1], [3, 4, 9], [0.5, score, 7.0], np.ones((3, 4)), source="new.json"
    )
    with pytest.raises(lvdet.InputError) as caught:
        loaded.transform(table)
    text = str(caught.value)
    assert text.startswith(f"new.json, row 1: score is {score:g}, ")
    assert "sigmoid" in text


def test_scores_that_rounding_moved_out_of_0_to_1(tmp_path: Path) -> None:
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = lvdet.Detections.from_arrays(
        [1] * 4, [3, 3, 9, 9], [1 + 5e-7, -5e-7, 1 + 5e-7, -5e-7], np.ones((4, 4))
    )
    ends = table.with_scores([1.0, 0.0, 1.0, 0.0])
    assert loaded.transform(table).score.tolist() == loaded.transform(ends).score.tolist()


def test_nothing_to_transform(tmp_path: Path) -> None:
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = lvdet.Detections.from_arrays([], [], [], np.zeros((0, 4)))
    assert len(loaded.transform(table)) == 0


def test_transforming_leaves_the_table_and_the_rest_of_it_alone(tmp_path: Path) -> None:
    loaded = lvdet.Calibrator.load(saved(tmp_path / "cal.json", VALID))
    table = every_score_of(loaded.categories_)
    before = table.score.copy()
    new = loaded.transform(table)
    assert table.score.tolist() == before.tolist()
    assert new.box is table.box
    assert new.category_ids.tolist() == table.category_ids.tolist()
    assert new.score.dtype == np.float64


@pytest.mark.parametrize(
    "act",
    [
        lambda calibrator, table: calibrator.record_,
        lambda calibrator, table: calibrator.categories_,
        lambda calibrator, table: calibrator.summary(),
        lambda calibrator, table: calibrator.transform(table),
        lambda calibrator, table: calibrator.class_rows(table.category_ids, "x"),
    ],
)
def test_a_calibrator_that_was_not_fitted(
    act: Callable[[lvdet.Calibrator, lvdet.Detections], Any],
) -> None:
    calibrator = lvdet.Calibrator("beta")
    table = lvdet.Detections.from_arrays([1], [3], [0.5], [[0, 0, 1, 1]])
    assert repr(calibrator) == "Calibrator('beta', grouping='class', not fitted)"
    with pytest.raises(lvdet.InputError, match="is not fitted: call `fit`"):
        act(calibrator, table)
