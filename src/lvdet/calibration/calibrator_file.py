"""The calibrator file: plain JSON, read without executing code.

{"lvdet_calibrator": 1, "method": …, "grouping": …, "missing": …, "fitted_on": {…},
 "classes": {"id": […], "name": […], "frequency": […], "detections": […], "right": […],
             "map": […]},
 "maps": [{"shape": "log-odds", "a": …, "b": …, "c": …},
          {"shape": "steps", "edges": […], "values": […]},
          {"shape": "lines", "scores": […], "values": […]}]}
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.fitting import Fitted, Recipe
from lvdet.calibration.labelled_scores import require_iou_threshold
from lvdet.calibration.maps import Floats, Lines, LogOdds, Map, Steps
from lvdet.errors import InputError
from lvdet.files.opening import read_small
from lvdet.files.remote_path import input_path
from lvdet.files.writing import write_whole
from lvdet.matching.match_options import IOU_KINDS
from lvdet.tables.categories import FREQUENCIES, Categories
from lvdet.tables.values import require_limit

VERSION = 1
_KEY = "lvdet_calibrator"


@dataclass(frozen=True)
class Origin:
    """What a calibrator was fitted on."""

    ground_truth: str
    detections: str
    iou: str
    iou_threshold: float
    dets_per_class: int


@dataclass(frozen=True, eq=False)
class Record:
    """Everything that makes up a calibrator: how and on what it was fitted, and the result.

    detections, right: [C] int64, how many detections of each class it was fitted on, and how many
                       of them were correct
    """

    recipe: Recipe
    origin: Origin
    categories: Categories
    detections: NDArray[np.int64]
    right: NDArray[np.int64]
    fitted: Fitted


def write_record(record: Record, path: str | os.PathLike[str]) -> None:
    """Writes the file atomically."""
    categories = record.categories
    content = {
        _KEY: VERSION,
        **asdict(record.recipe),
        "fitted_on": asdict(record.origin),
        "classes": {
            "id": categories.ids.tolist(),
            "name": list(categories.names),
            "frequency": categories.frequency.tolist(),
            "detections": record.detections.tolist(),
            "right": record.right.tolist(),
            "map": record.fitted.of_class.tolist(),
        },
        "maps": [_described(score_map) for score_map in record.fitted.maps],
    }
    with write_whole(path) as file:
        file.write(json.dumps(content).encode())
        file.write(b"\n")


def read_record(path: str | os.PathLike[str]) -> Record:
    """Reads a file and rejects it unless all of it is consistent."""
    name = str(input_path(path))
    try:
        return _record(_parsed(read_small(path)))
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    except InputError as error:
        raise InputError(f"{name}: invalid calibrator file: {error}") from None


def _parsed(text: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> float:
        raise InputError(f"it contains {constant}, expected finite numbers")

    try:
        content = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise InputError("it is nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON ({error})") from None
    except ValueError:
        raise InputError("it contains a number with thousands of digits") from None
    if not isinstance(content, dict) or _KEY not in content:
        raise InputError(f"{_KEY!r} is missing")
    version = content[_KEY]
    if version != VERSION or isinstance(version, bool):
        raise InputError(f"its version is {version!r:.40}, but this lvdet reads version {VERSION}")
    return content


def _record(content: dict[str, Any]) -> Record:
    recipe = Recipe(*(_text(content, key) for key in ("method", "grouping", "missing")))
    if recipe != Recipe.of(recipe.method, recipe.grouping, recipe.missing or None):
        raise InputError("method, grouping and missing are inconsistent")
    classes = _object(content, "classes")
    ids = _whole(classes, "id")
    names, frequency = _texts(classes, "name", len(ids)), _texts(classes, "frequency", len(ids))
    if not set(frequency) <= {*FREQUENCIES, ""}:
        raise InputError("a frequency is not r, c or f")
    listed = content.get("maps")
    if not isinstance(listed, list):
        raise InputError("'maps' is not a list")
    maps = tuple(_map(item, place) for place, item in enumerate(listed))
    of_class = _whole(classes, "map", len(ids))
    if ((of_class < 0) | (of_class >= len(maps))).any():
        raise InputError(f"a class refers to a map beyond the {len(maps):,} in the file")
    detections, right = (_whole(classes, key, len(ids)) for key in ("detections", "right"))
    if (right < 0).any() or (right > detections).any():
        raise InputError("'right' is not between 0 and 'detections'")
    return Record(
        recipe,
        _origin(_object(content, "fitted_on")),
        Categories(ids, tuple(names), np.array(frequency, dtype="U1")),
        detections,
        right,
        Fitted(maps, of_class),
    )


def _origin(on: dict[str, Any]) -> Origin:
    iou = _text(on, "iou")
    if iou not in IOU_KINDS:
        raise InputError(f"iou is {iou!r:.40}, expected one of {', '.join(IOU_KINDS)}")
    threshold = float(_numbers(on, "iou_threshold", scalar=True)[0])
    require_iou_threshold(threshold)
    limit = int(_whole(on, "dets_per_class", scalar=True)[0])
    require_limit(limit)
    return Origin(_text(on, "ground_truth"), _text(on, "detections"), iou, threshold, limit)


def _described(score_map: Map) -> dict[str, Any]:
    if isinstance(score_map, LogOdds):
        return {"shape": "log-odds", **asdict(score_map)}
    if isinstance(score_map, Steps):
        return {
            "shape": "steps",
            "edges": score_map.edges.tolist(),
            "values": score_map.values.tolist(),
        }
    return {
        "shape": "lines",
        "scores": score_map.scores.tolist(),
        "values": score_map.values.tolist(),
    }


def _map(item: Any, place: int) -> Map:
    """A map that gives a probability for every score."""
    try:
        if not isinstance(item, dict) or not isinstance(item.get("shape"), str):
            raise InputError("'shape' is missing")
        make = _SHAPES.get(item["shape"])
        if make is None:
            raise InputError(f"shape {item['shape']!r:.40} is unknown")
        return make(item)
    except InputError as error:
        raise InputError(f"map {place:,}: {error}") from None


def _log_odds(item: dict[str, Any]) -> LogOdds:
    a, b, c = (float(_numbers(item, key, scalar=True)[0]) for key in "abc")
    if a < 0 or b < 0:
        raise InputError("a or b is below 0")
    return LogOdds(a, b, c)


def _steps(item: dict[str, Any]) -> Steps:
    edges = _numbers(item, "edges")
    return Steps(_rising(edges, "edges"), _chances(_numbers(item, "values", len(edges) + 1)))


def _lines(item: dict[str, Any]) -> Lines:
    scores = _numbers(item, "scores")
    if not len(scores):
        raise InputError("'scores' is empty")
    return Lines(_rising(scores, "scores"), _chances(_numbers(item, "values", len(scores))))


_SHAPES: dict[str, Callable[[dict[str, Any]], Map]] = {
    "log-odds": _log_odds,
    "steps": _steps,
    "lines": _lines,
}


def _rising(values: Floats, key: str) -> Floats:
    if (values[1:] <= values[:-1]).any() or (values < 0).any() or (values > 1).any():
        raise InputError(f"{key!r} must increase strictly between 0 and 1")
    return values


def _chances(values: Floats) -> Floats:
    if (values < 0).any() or (values > 1).any():
        raise InputError("'values' must be between 0 and 1")
    return values


def _object(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        raise InputError(f"{key!r} is not an object")
    return value


def _text(content: dict[str, Any], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str):
        raise InputError(f"{key!r} is not a string")
    return value


def _texts(content: dict[str, Any], key: str, count: int) -> list[str]:
    values = content.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{key!r} is not a list of strings")
    return _counted(values, key, count)


def _whole(
    content: dict[str, Any], key: str, count: int | None = None, *, scalar: bool = False
) -> NDArray[np.int64]:
    """64-bit integers."""
    values = [content.get(key)] if scalar else content.get(key)
    if not isinstance(values, list) or not all(
        isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        for value in values
    ):
        raise InputError(f"{key!r} must contain only 64-bit integers")
    return np.array(_counted(values, key, count), dtype=np.int64)


def _numbers(
    content: dict[str, Any], key: str, count: int | None = None, *, scalar: bool = False
) -> Floats:
    """Finite numbers."""
    values = [content.get(key)] if scalar else content.get(key)
    if not isinstance(values, list) or not all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    ):
        raise InputError(f"{key!r} must contain only numbers")
    try:
        array = np.array(_counted(values, key, count), dtype=np.float64)
    except OverflowError:  # a whole number beyond all floats
        array = np.array([np.inf])
    if not np.isfinite(array).all():
        raise InputError(f"{key!r} contains numbers that are too large")
    return array


def _counted(values: list[Any], key: str, count: int | None) -> list[Any]:
    if count is not None and len(values) != count:
        raise InputError(f"{key!r} has {len(values):,} entries, expected {count:,}")
    return values
