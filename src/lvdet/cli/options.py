"""Arguments and options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lvdet.threads import set_threads

Annotations: TypeAlias = Annotated[
    Path, typer.Argument(metavar="GT", help="LVIS or COCO annotations (.json, .json.gz).")
]
Results: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DT",
        help="Results: JSON list, JSON lines, either gzipped, Parquet, npz, a folder or a pattern "
        "of such files, or - for standard input.",
    ),
]
Iou: TypeAlias = Annotated[
    str | None,
    typer.Option(help="bbox, segm or boundary. Default: segm where the results have masks."),
]
ExactLvis: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exact-lvis",
        help="Repeat the quirks of lvis (for COCO files, of pycocotools) to the bit.",
    ),
]


def _set_threads(threads: int | None) -> int | None:
    """Sets the number of threads for the whole process, or returns to the default."""
    set_threads(threads)
    return threads


Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        callback=_set_threads,
        help="Number of threads. Default: LVDET_THREADS, else one per core.",
    ),
]
