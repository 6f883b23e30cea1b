"""A match as bytes, for tests that compare two of them."""

from __future__ import annotations

from lvdet.tables.matches import Matches

COLUMNS = (
    *("detection", "position", "together", "category_offsets", "truth"),
    *("partner", "overlap"),
)


def match_bytes(matches: Matches) -> dict[str, bytes]:
    """Every column that is there, by name."""
    columns = {name: getattr(matches, name) for name in COLUMNS}
    columns |= zip(("wrong", "hits", "bits"), matches.outcomes.columns, strict=True)
    return {name: column.tobytes() for name, column in columns.items() if column is not None}
