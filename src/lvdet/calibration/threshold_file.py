"""The file of thresholds per class, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from lvdet.errors import InputError
from lvdet.files.opening import read_small
from lvdet.files.writing import require_ending

VERSION = 1
KEY = "lvdet_thresholds"


def read_values(path: str | os.PathLike[str]) -> dict[int, float]:
    """The threshold of each class id, NaN if it has none."""
    ending = require_ending(path, (".json", ".csv"))
    try:
        text = read_small(path).decode()
        rows = _of_json(text) if ending == ".json" else _of_csv(text)
        return _values(rows)
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {error.strerror or error}") from None
    except (ValueError, OverflowError, RecursionError, csv.Error, InputError) as error:
        raise InputError(f"{os.fspath(path)}: invalid thresholds file: {error}") from None


def _of_json(text: str) -> Iterable[Any]:
    content = json.loads(text)
    if not isinstance(content, dict) or KEY not in content:
        raise InputError(f"{KEY!r} is missing")
    if content[KEY] != VERSION or isinstance(content[KEY], bool):
        raise InputError(
            f"its version is {content[KEY]!r:.40}, but this lvdet reads version {VERSION}"
        )
    classes = content.get("classes")
    if not isinstance(classes, list):
        raise InputError("'classes' is not a list")
    return classes


def _of_csv(text: str) -> Iterable[Any]:
    rows = csv.DictReader(io.StringIO(text, newline=""), restval="")
    if not {"id", "threshold"} <= set(rows.fieldnames or ()):
        raise InputError("its first line lacks the columns 'id' and 'threshold'")
    for row in rows:
        number, value = row["id"], row["threshold"]
        yield {"id": int(number), "threshold": float(value) if value else None}


def _values(rows: Iterable[Any]) -> dict[int, float]:
    found: dict[int, float] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping) or "threshold" not in row:
            raise InputError(f"class {place:,} has no 'threshold'")
        number, value = row.get("id"), row["threshold"]
        if isinstance(number, bool) or not isinstance(number, int) or number in found:
            raise InputError(f"class {place:,}: id is {number!r:.40}, expected a distinct integer")
        if value is None:
            found[number] = math.nan
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise InputError(
                f"class {place:,}: threshold is {value!r:.40}, expected a number or null"
            )
        else:
            found[number] = float(value)
    return found
