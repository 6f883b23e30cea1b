"""Where detections go: the compiled sink, or the plain one where there is no compiled core."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lvdet.writers.top_k_base import TopKBase


def compiled() -> bool:
    """Whether lvdet's compiled core is installed."""
    try:
        import lvdet._native  # noqa: F401
    except ImportError:
        return False
    return True


def require_format(path: Path) -> None:
    """Refuses a file that cannot be written on this machine."""
    if compiled():
        from lvdet.files.detection_files import require_ending as require
    else:
        from lvdet.writers.plain_writer import require_plain_ending as require
    require(path)


def open_sink(
    path: Path, *, per_class: int, box_format: str, category_ids: Sequence[int]
) -> TopKBase:
    """A sink of class rows that replaces what is there, or goes on with a journal."""
    kind: type[TopKBase]
    if compiled():
        from lvdet.writers.top_k_writer import TopKWriter as kind  # noqa: N813
    else:
        from lvdet.writers.plain_writer import PlainTopKWriter as kind  # noqa: N813
    return kind(
        path,
        per_class=per_class,
        box_format=box_format,
        category_ids=category_ids,
        overwrite=True,
    )


def class_counts(path: Path) -> Counter[int]:
    """How many detections of each category id a file has."""
    counts: Counter[int] = Counter()
    if not compiled():
        for record in plain_records(path):
            counts[record["category_id"]] += 1
        return counts
    import numpy as np

    from lvdet.files.stream import detection_tables

    for table in detection_tables(path, masks=False):
        found = np.bincount(table.category, minlength=len(table.category_ids))
        counts.update(dict(zip(table.category_ids.tolist(), found.tolist(), strict=True)))
    return +counts


def records_of_image(path: Path, image_id: int) -> list[dict[str, Any]]:
    """The detections of an image, as COCO has them."""
    if not compiled():
        return [record for record in plain_records(path) if record["image_id"] == image_id]
    from lvdet.files.detections_json import json_rows
    from lvdet.files.stream import detection_tables

    found: list[dict[str, Any]] = []
    for table in detection_tables(path):
        rows = table[table.image_ids[table.image] == image_id]
        text = json_rows(rows, 0, len(rows), separator="\n")
        found += [json.loads(line) for line in text.splitlines()]
    return found


def plain_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file that `PlainTopKWriter` has written, one a line."""
    with open(path, "rb") as file:
        for line in file:
            text = line.strip().lstrip(b"[").rstrip(b",")
            if text and text != b"]":
                yield json.loads(text[:-1] if text.endswith(b"}]") else text)
