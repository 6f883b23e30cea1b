"""The classes of an annotation file, and named groups of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.tables.columns import require_columns
from lvdet.tables.description import counted, describe_html, describe_line

#: LVIS's three frequency groups: classes in at most 10, at most 100 and more training images.
FREQUENCIES = ("r", "c", "f")
#: Their names.
FREQUENCY_NAMES = MappingProxyType(
    dict(zip(FREQUENCIES, ("rare", "common", "frequent"), strict=True))
)


@dataclass(frozen=True, eq=False, repr=False)
class Categories:
    """The classes, by ascending id; elsewhere a class is its row in this table.

    ids:       [C] int64
    names:     C strings
    frequency: [C] str, "r", "c" or "f", or "" if the file does not say
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    frequency: NDArray[np.str_]

    def __post_init__(self) -> None:
        count = len(self.ids)
        require_columns(self, "categories", {"ids": (np.int64, (count,))})
        if (self.ids[1:] <= self.ids[:-1]).any():
            raise InputError("categories: ids must be strictly increasing")
        if len(self.names) != count or len(self.frequency) != count:
            raise InputError(
                f"categories: {count} ids, {len(self.names)} names, {len(self.frequency)} "
                "frequencies, expected the same number"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return describe_line(
            self,
            counted(len(self), "class", "classes"),
            *(f"{len(rows):,} {name}" for name, rows in self.groups().items()),
        )

    def _repr_html_(self) -> str:
        sizes = {f"classes ({name})": len(rows) for name, rows in self.groups().items()}
        return describe_html(self, {"classes": len(self), **sizes})

    def groups(self) -> dict[str, NDArray[np.int64]]:
        """The frequency groups as row indices; empty for files without frequencies."""
        if not np.isin(self.frequency, FREQUENCIES).any():
            return {}
        return {name: np.flatnonzero(self.frequency == name) for name in FREQUENCIES}

    def group_numbers(self) -> NDArray[np.int32]:
        """[C] a number for each frequency that occurs; 0 for all classes if there are none."""
        return np.unique(self.frequency, return_inverse=True)[1].reshape(-1).astype(np.int32)

    def select(self, wanted: Iterable[int | str]) -> NDArray[np.int64]:
        """Rows of the classes given by id or name, ascending and unique."""
        if not isinstance(wanted, Iterable):
            raise InputError(f"classes are {wanted!r}, expected a list of names and ids")
        by_id = {int(value): row for row, value in enumerate(self.ids)}
        by_name = {value: row for row, value in enumerate(self.names)}
        rows = set()
        for item in wanted:
            row = by_name.get(item) if isinstance(item, str) else by_id.get(int(item))
            if row is None and isinstance(item, str):
                with suppress(ValueError):
                    row = by_id.get(int(item))
            if row is None:
                kind = "named" if isinstance(item, str) else "with id"
                raise InputError(f"no class {kind} {item!r} in the annotations")
            rows.add(row)
        return np.array(sorted(rows), dtype=np.int64)

    def subset(self, text: str) -> NDArray[np.int64]:
        """Rows given on a command line: letters of "rcf", or comma-separated ids and names."""
        letters = set(text)
        if text and letters <= set(FREQUENCIES) and text not in self.names:
            groups = self.groups()
            if not groups:
                raise InputError(
                    f"classes {text!r} selects frequency groups, but the categories in the "
                    "annotations have no 'frequency'"
                )
            return np.sort(np.concatenate([groups[letter] for letter in sorted(letters)]))
        names = [part.strip() for part in text.split(",") if part.strip()]
        if not names:
            raise InputError(f"classes {text!r} names no classes")
        return self.select(names)


def resolve_groups(
    categories: Categories, groups: Mapping[str, Iterable[int | str]] | None
) -> dict[str, NDArray[np.int64]]:
    """The frequency groups and the caller's groups, as rows of `categories`."""
    resolved = categories.groups()
    for name, wanted in (groups or {}).items():
        if name in FREQUENCIES:
            raise InputError(f"group {name!r} is reserved for a frequency group: choose another")
        resolved[name] = categories.select(wanted)
    return resolved
