"""`lvdet rerank`: how AP-Old is gamed, on your own results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations, ExactLvis, Iou, Results, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import print_tables, progress_bar, warn
from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.studies.account import Account

EXAMPLES = """\b
Examples:
  lvdet rerank lvis_v1_val.json results.json -o reranked.json
  lvdet rerank gt.json results.json --dets-per-class best --scores gain.json
  lvdet rerank gt.json results.json --account exchanged.jsonl
  lvdet rerank gt.json results.json --image 397133
"""


def run(
    ground_truth: Annotations,
    detections: Results,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the re-ranked results, whole rows: .json, .jsonl, .ndjson or .parquet.",
        ),
    ] = None,
    dets_per_class: Annotated[
        str,
        typer.Option(
            metavar="K|best",
            help="Detections of each class that are kept first; best searches for the number "
            "that raises AP-Old most.",
        ),
    ] = "10000",
    dets_per_image: Annotated[
        int, typer.Option(metavar="N", help="Detections of each image that are kept then.")
    ] = 300,
    account: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Write, a line for each image that changed, what was dropped for what.",
        ),
    ] = None,
    image: Annotated[
        int | None, typer.Option(metavar="ID", help="Print what was dropped for what in an image.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the numbers as JSON.")
    ] = None,
    iou: Iou = None,
    exact_lvis: ExactLvis = False,
    threads: Threads = None,
) -> None:
    """Keep the best of each class, then the best of each image, and see AP-Old rise."""
    from lvdet.files.detection_files import require_ending, write_detections
    from lvdet.studies.reranking import rerank

    if output is not None:
        require_ending(output)
    require_target(output)
    require_target(account, (".jsonl", ".ndjson"))
    require_target(scores, (".json",))
    cap: int | str = dets_per_class
    if dets_per_class != "best":
        try:
            cap = int(dets_per_class.replace(",", "").replace("_", ""))
        except ValueError:
            raise InputError(
                f"--dets-per-class is {dets_per_class!r}, expected a whole number or best"
            ) from None

    result = rerank(
        ground_truth,
        detections,
        dets_per_class=cap,
        dets_per_image=dets_per_image,
        iou=iou,
        exact_lvis=exact_lvis,
        progress=progress_bar,
    )
    of_image = None if image is None else result.account().image(image)
    if output is not None:
        write_detections(result.detections, output)
    if account is not None:
        write_account(result.account(), account)
    if scores is not None:
        write_json(result.to_dict(), scores)
    print_tables(result.title(), result.layouts())
    if of_image is not None:
        print(f"\n{of_image}")
    if output is not None:
        found = result.inputs["detection_count"]
        print(f"wrote {output}: {len(result.detections):,} detections (of {found:,})")
    if account is not None:
        print(f"wrote {account}: {len(result.account()):,} images")
    for text in result.warnings:
        warn(text)


def write_account(account: Account, path: Path) -> None:
    """Writes a line of JSON for each image with changes."""
    from lvdet.files.writing import write_whole

    with write_whole(path) as file:
        for image in account:
            line = json.dumps(image.to_dict(), ensure_ascii=False)
            file.write(line.encode(errors="replace") + b"\n")
