"""Arrays of any framework as NumPy's, without importing the framework."""

from __future__ import annotations

from typing import Any


def to_numpy(values: Any) -> Any:
    """Tensors, also of a GPU or with gradients, as arrays; anything else as it is."""
    for name in ("detach", "cpu"):
        if hasattr(values, name):
            values = getattr(values, name)()
    if not hasattr(values, "numpy"):
        return values
    try:
        return values.numpy()
    except TypeError:  # bfloat16, which NumPy does not have
        return values.float().numpy()
