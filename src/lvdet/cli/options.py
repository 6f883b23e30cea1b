"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from lvdet.threads import set_threads

Annotations: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="GT",
        help="LVIS or COCO annotations, .json or .json.gz: a path or an s3://, gs:// or hf:// URL.",
    ),
]
Results: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DT",
        help="Detections: JSON or JSON lines (optionally gzipped), Parquet or npz; a folder "
        "or glob of such files; an s3://, gs:// or hf:// URL; or - for standard input.",
    ),
]
Iou: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Match boxes (bbox), masks (segm) or mask boundaries (boundary). Default: segm if "
        "both files have masks, otherwise bbox.",
    ),
]
ExactLvis: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exact-lvis",
        help="Reproduce lvis (for COCO files, pycocotools) exactly, quirks included.",
    ),
]
DropDuplicates: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--drop-duplicates",
        help="If all detections of an image are repeated exactly, count them once. Distributed "
        "samplers that pad the last batch cause such repeats.",
    ),
]


def _result(extensions: str) -> Any:
    return typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"Write the result; the extension selects the format: {extensions}. Repeatable.",
    )


#: Output files of verbs that compute a result; only results with rows can be CSV.
Outputs: TypeAlias = Annotated[list[Path] | None, _result(".json, .md or .tex")]
RowOutputs: TypeAlias = Annotated[list[Path] | None, _result(".json, .csv, .md or .tex")]
_DETECTIONS = typer.Option(
    "--output",
    "-o",
    metavar="OUT",
    help="Output file of detections: .json, .jsonl, .ndjson or .parquet.",
)
#: Output file of verbs that write detections.
DetectionsOutput: TypeAlias = Annotated[Path, _DETECTIONS]
OptionalDetections: TypeAlias = Annotated[Path | None, _DETECTIONS]
#: Annotations for verbs whose only required input is a results file.
ImagesOf: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="GT",
        help="Annotations; needed if image ids are file names or boxes are fractions of the "
        "image size.",
    ),
]
#: Machine-readable summary for verbs that mainly write something else.
Summary: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Also write a summary as JSON.")
]


def _set_threads(threads: int | None) -> int | None:
    """Sets the number of threads for the whole process; None restores the default."""
    set_threads(threads)
    return threads


Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        callback=_set_threads,
        metavar="N",
        help="Number of threads. Default: LVDET_THREADS, or one per core.",
    ),
]
