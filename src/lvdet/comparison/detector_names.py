"""Names of detectors: no longer than needed to tell them apart, and safe to print."""

from __future__ import annotations

from collections.abc import Sequence

from lvdet.errors import InputError
from lvdet.rendering.table_text import plain


def given_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    """The given names, checked: one for each detector."""
    if isinstance(names, str) or len(names) != count:
        raise InputError(f"{len(names)} names for {count} detectors, expected one each")
    cleaned = tuple(plain(str(name)).strip() for name in names)
    if not all(cleaned) or len(set(cleaned)) < count:
        raise InputError(
            f"names are {', '.join(map(repr, cleaned))}, expected distinct, non-empty names"
        )
    return cleaned


def short_names(sources: Sequence[str]) -> tuple[str, ...]:
    """The ends of paths, with as many parts as needed to tell them apart; equal paths are
    numbered."""
    parts = [plain(source).replace("\\", "/").rstrip("/").split("/") for source in sources]
    names: list[str] = []
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(set(map(tuple, parts))):
            break
    taken: set[str] = set()
    found = []
    for name in names:
        number, unique = 1, name
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken.add(unique)
        found.append(unique)
    return tuple(found)
