"""Columns of tables: their validation and selection."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.threads import thread_count


def require_columns(
    table: object, source: str, columns: dict[str, tuple[type[np.generic], tuple[int, ...]]]
) -> None:
    """Checks that attributes are arrays of the given type and shape, and makes them contiguous.

    The native kernels use these arrays without checks, so all errors are raised here.
    """
    for name, (dtype, shape) in columns.items():
        array: Any = getattr(table, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
            came = (
                f"{array.dtype} with shape {array.shape}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            wanted = f"{np.dtype(dtype).name} with shape {shape}"
            raise InputError(f"{source}: {name} is {came}, expected {wanted}")
        if not array.flags.c_contiguous:
            object.__setattr__(table, name, np.ascontiguousarray(array))


def require_rows(source: str, name: str, rows: Any, count: int) -> None:
    """Checks that a column holds row numbers of a table of `count` rows."""
    if len(rows) and not (rows.min() >= 0 and rows.max() < count):
        raise InputError(
            f"{source}: {name} holds {rows.min()} to {rows.max()}, expected rows 0 to {count - 1}"
        )


@overload
def take(column: NDArray[np.bool_], rows: NDArray[np.int32]) -> NDArray[np.bool_]: ...
@overload
def take(column: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]: ...
def take(column: Any, rows: NDArray[np.int32]) -> Any:
    """Computes column[rows] on all threads."""
    if column.dtype == bool:
        return _native.take_flags(column.view(np.uint8), rows, thread_count()).view(np.bool_)
    return _native.take_rows(column, rows, thread_count())
