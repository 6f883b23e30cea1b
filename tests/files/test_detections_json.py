"""A results file as JSON: any text that means the same gives the same table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from files.record_files import ROWS, WITH_SCORE, assert_holds, bits, save

LAYOUTS = {
    "one line": json.dumps(ROWS),
    "dense": json.dumps(ROWS, separators=(",", ":")),
    "indent 4": json.dumps(ROWS, indent=4),
    "CRLF": json.dumps(ROWS, indent=2).replace("\n", "\r\n"),
    "tabs": json.dumps(ROWS, indent="\t"),
    "sorted keys": json.dumps(ROWS, sort_keys=True),
    "keys backwards": json.dumps([dict(reversed(row.items())) for row in ROWS]),
    "keys in two orders": json.dumps([ROWS[0], dict(reversed(ROWS[1].items()))]),
    "space around": f" \r\n\t{json.dumps(ROWS)}\n\n \t",
    "escaped keys": json.dumps(ROWS).replace("image_id", r"image\u005fid"),
    "all escaped": json.dumps(ROWS).replace("score", r"\u0073\u0063\u006F\u0072\u0065"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, tmp_path: Path) -> None:
    assert json.loads(LAYOUTS[layout]) == ROWS
    assert_holds(lvdet.read_detections(save(tmp_path / "r.json", LAYOUTS[layout])), ROWS)


EXTRAS = [
    '"area": 12.5',
    '"id": 4',
    '"note": null, "crowd": true, "used": false',
    '"deep": {"a": [1, {"b": [[], {}]}], "score": 9, "bbox": [0], "image_id": "x"}',
    '"parts": [{"a": 1},{"b": 2}, {"image_id": 5}]',
    '"text": "},{\\"score\\": 1"',
    r'"text": "\" \\ \/ \b \f \n \r \t é \ud834\udd1e"',
    '"": 1, "image_i": 2, "image_ida": 3, "scor": 4, "bbox ": 5, "IMAGE_ID": 6',
    '"keypoints": [1, 2.5, -3e-7, 0, 1E5]',
    '"score_": -0, "not": NaN',
    '"x": ' + "[" * 200 + "]" * 200,
]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_unknown_keys_are_passed_by(extra: str, place: str, tmp_path: Path) -> None:
    keys = json.dumps(ROWS[0])[1:-1].split(", ", 1)
    at = {"first": 0, "middle": 1, "last": 2}[place]
    record = "{" + ", ".join([*keys[:at], extra, *keys[at:]]) + "}"
    path = save(tmp_path / "r.json", f"[{record}, {json.dumps(ROWS[1])}]")
    assert_holds(lvdet.read_detections(path), ROWS)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ('"score": 0.1', '"score": 0.75'),
        ('"image_id": 9', '"image_id": 7'),
        ('"category_id": 9', r'"category\u005fid": 3'),
        ('"bbox": [0, 0, 1, 1]', '"bbox": [1.5, 2.25, 30.0, 4.125]'),
    ],
)
def test_of_equal_keys_the_last_counts(first: str, last: str, tmp_path: Path) -> None:
    record = f"{{{first}, {json.dumps(ROWS[0])[1:-1]}, {first}, {last}}}"
    assert json.loads(record) == ROWS[0]
    assert_holds(lvdet.read_detections(save(tmp_path / "r.json", f"[{record}]")), ROWS[:1])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("12.0", 12),
        ("1.2e1", 12),
        ("120E-1", 12),
        ("0.12e+2", 12),
        ("-0", 0),
        ("-0.0", 0),
        ("-7", -7),
        ("9007199254740993", 2**53 + 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
@pytest.mark.parametrize("key", ["image_id", "category_id"])
def test_ids(text: str, number: int, key: str, tmp_path: Path) -> None:
    record = json.dumps(ROWS[0] | {key: 0}).replace(f'"{key}": 0', f'"{key}": {text}')
    dt = lvdet.read_detections(save(tmp_path / "r.json", f"[{record}]"))
    assert_holds(dt, [ROWS[0] | {key: number}])


def test_ids_stand_by_first_appearance(tmp_path: Path) -> None:
    ids = [9, 3, 9, 20_000, 3, 1 << 40, 20_000, 9]
    records = [ROWS[0] | {"image_id": a, "category_id": -a} for a in ids]
    dt = lvdet.read_detections(save(tmp_path / "r.json", records))
    assert dt.image_ids.tolist() == [9, 3, 20_000, 1 << 40]
    assert dt.image.tolist() == [0, 1, 0, 2, 1, 3, 2, 0]
    assert_holds(dt, records)


@pytest.mark.parametrize("text", ["[]", " [ ]\n", "[\r\n\t]"])
def test_an_empty_list_holds_no_detections(text: str, tmp_path: Path) -> None:
    dt = lvdet.read_detections(save(tmp_path / "r.json", text))
    assert_holds(dt, [])


# Numbers


def scores(texts: list[str], folder: Path) -> np.ndarray:
    """The texts read as scores and, where their double is a size, as widths."""
    records = [WITH_SCORE % text for text in texts]
    records += [
        f'{{"image_id": 1, "category_id": 2, "score": 1, "bbox": [{text}, 0, 0, 1]}}'
        for text in texts
    ]
    dt = lvdet.read_detections(save(folder / "numbers.json", f"[{', '.join(records)}]"))
    count = len(texts)
    assert bits(dt.box[count:, 0]) == bits(dt.score[:count])
    return dt.score[:count]


NUMBERS = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "0e5",
    "-0E-7",
    "1",
    "-1",
    "0.1",
    "0.10000000000000000555",
    "1e5",
    "1E+5",
    "1e-05",
    "1.0e+007",
    "123456789012345678",
    "1234567890123456789",
    "12345678901234567890",
    "0.1234567890123456789",
    "9007199254740993",
    "9007199254740992.5",
    "9007199254740993.0000000000000000000000000000001",
    "179769313486231570814527423731704356798070567525844996598917476803157260780028538760589558"
    "632766878171540458953514382464234321326889464182768467546703537516986049910576551282076245"
    "490090389328944075868508455133942304583236903222948165808559332123347747797926204144723168"
    "738177180919299881250404026184124858368",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "5e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1e-400",
    "-1e-400",
    "1e-99999999999",
    "0e99999999999",
    "1e301",
    "-1.7976931348623157e308",
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126",
    "3." + "0" * 500 + "1",
    "0." + "0" * 300 + "123",
    "7" * 300,
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_what_float_makes_of_it(text: str, tmp_path: Path) -> None:
    assert bits(scores([text], tmp_path)) == bits([float(text)])


@pytest.mark.parametrize("text", ["0." + "0" * 400 + "1", "-0." + "0" * 330 + "5"])
def test_a_number_too_small_without_an_exponent_is_zero(text: str, tmp_path: Path) -> None:
    assert float(text) == 0.0
    assert bits(scores([text], tmp_path)) == bits([float(text)])


def test_a_number_too_large_with_a_negative_exponent_is_infinite(tmp_path: Path) -> None:
    text = "1" + "0" * 400 + "e-50"
    assert math.isinf(float(text))
    with pytest.raises(lvdet.InputError, match="finite"):
        scores([text], tmp_path)


doubles = st.floats(allow_nan=False, allow_infinity=False)
forms = st.sampled_from(["%r", "%.20g", "%.3e", "%.17g", "%.16e", "%.17E", "%.25e", "%.6f", "%.9g"])
digits = st.text("0123456789", min_size=1, max_size=40)


@st.composite
def long_numbers(draw: st.DrawFn) -> str:
    """A number of any digits, within JSON's grammar; finite."""
    whole = draw(digits).lstrip("0") or "0"
    text = draw(st.sampled_from(["", "-"])) + whole
    if draw(st.booleans()):
        text += "." + draw(digits)
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+", "-"]))
        text += str(draw(st.integers(0, 260)))
    return text


number_texts = st.one_of(
    st.builds(lambda form, value: form % value, forms, doubles), long_numbers()
)


@settings(max_examples=150)
@given(st.lists(number_texts, min_size=1, max_size=60))
def test_numbers_are_exact(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp()
    texts = [text for text in texts if math.isfinite(float(text))]
    assert bits(scores(texts, folder)) == bits([float(text) for text in texts])


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_ids_are_exact(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    records = [ROWS[0] | {"image_id": number, "category_id": ~number} for number in ids]
    path = save(tmp_path_factory.getbasetemp() / "ids.json", records)
    assert_holds(lvdet.read_detections(path), records)


def test_halves_between_doubles(tmp_path: Path) -> None:
    """Decimals exactly between two doubles, and next to that: where two roundings go wrong."""
    rng = np.random.default_rng(0)
    texts = []
    for value in rng.random(300) * 10.0 ** rng.integers(0, 4, 300):
        numerator, denominator = float(value).as_integer_ratio()
        above, below = float(np.nextafter(value, 2 * value)).as_integer_ratio()
        top, bottom = numerator * below + above * denominator, 2 * denominator * below
        for length in (17, 18, 19, 25, 60):
            scaled = top * 10**length // bottom
            for step in (-1, 0, 1):
                text = str(scaled + step).rjust(length + 1, "0")
                texts.append(f"{text[:-length]}.{text[-length:]}")
    assert bits(scores(texts, tmp_path)) == bits([float(text) for text in texts])


values = st.one_of(st.integers(-99, 10**10), st.floats(-1e4, 1e4), st.just(1e-30))
records = st.fixed_dictionaries(
    {
        "image_id": st.integers(-3, 10**18),
        "category_id": st.integers(0, 2000),
        "bbox": st.lists(values.map(abs), min_size=4, max_size=4),
        "score": values,
    },
    optional={"id": st.integers(0, 9), "score ": st.just("}, {")},
)
orders = st.sampled_from([lambda items: items, reversed, sorted])
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n" + " " * 30, "\t:\r\n")])


@settings(max_examples=60)
@given(st.lists(st.tuples(records, orders, separators, st.integers(1, 9)), min_size=1, max_size=9))
def test_records_of_one_layout_and_then_of_another(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[Any, ...]]
) -> None:
    rows, texts = [], []
    for row, order, separators, count in runs:
        rows += [row] * count
        texts += [json.dumps(dict(order(row.items())), separators=separators)] * count
    path = save(tmp_path_factory.getbasetemp() / "runs.json", f"[{', '.join(texts)}]")
    assert_holds(lvdet.read_detections(path), rows)


@pytest.mark.parametrize("between", [",", ", ", "\r\n\t, "])
def test_coordinates_of_every_length(between: str, tmp_path: Path) -> None:
    """With one to nine digits before the point and none to nine behind it, as few characters as a
    word has or more."""
    sides = []
    for length in range(1, 10):
        for whole in {"123456789"[:length], "987000000"[:length], "0"}:
            sides.append(whole)
            for decimals in ("908070605", "000000001", "999999999", "050000000"):
                sides += [f"{whole}.{decimals[:count]}" for count in range(1, 10)]
    sides += [f"{side}e{power}" for side in ("1.5", "12.25", "1234.567") for power in (0, 3, -5)]
    boxes = [
        (f"-{side}", side, side, other) for side, other in zip(sides, sides[::-1], strict=True)
    ]
    records = [
        f'{{"image_id": 1, "category_id": 2, "score": 1, "bbox": [{between.join(box)}]}}'
        for box in boxes
    ]
    dt = lvdet.read_detections(save(tmp_path / "boxes.json", f"[{', '.join(records)}]"))
    assert bits(dt.box.ravel()) == bits([float(side) for box in boxes for side in box])
