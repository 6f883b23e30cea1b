"""Validates what an inference loop passes, and converts it to NumPy arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.tables.detections import encode_ids


def to_numpy(values: Any) -> Any:
    """Tensors of any framework as arrays, including those on a GPU or with gradients; anything else
    unchanged. No framework is imported."""
    for name in ("detach", "cpu"):
        if hasattr(values, name):
            values = getattr(values, name)()
    if not hasattr(values, "numpy"):
        return values
    try:
        return values.numpy()
    except TypeError:  # bfloat16, which NumPy does not have
        return values.float().numpy()


def whole_number(value: Any, refusal: str) -> int:
    """A 64-bit integer."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(refusal) from None
    if isinstance(value, bool) or not -(2**63) <= number < 2**63:
        raise InputError(refusal)
    return number


def whole_numbers(values: Any, name: str, source: str) -> NDArray[np.int64]:
    """[n] integers; floats with integer values are accepted."""
    values = to_numpy(values)
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1:
        return np.ascontiguousarray(values)
    distinct, places = encode_ids(values, name, source)
    return distinct[places]


def budgets(dets_per_class: Any, dets_per_image: Any) -> tuple[int, int]:
    """The numbers of detections to keep per class and per image, one of which may be 0."""
    numbers = []
    for name, value in (("dets_per_class", dets_per_class), ("dets_per_image", dets_per_image)):
        refusal = f"{name} is {value!r}, expected 0 or more"
        numbers.append(whole_number(value, refusal))
        if numbers[-1] < 0:
            raise InputError(refusal)
    per_class, per_image = numbers
    if per_class == per_image == 0:
        raise InputError(
            "dets_per_class and dets_per_image are both 0, expected at least one above 0"
        )
    return per_class, per_image
