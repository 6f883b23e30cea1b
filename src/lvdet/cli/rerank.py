"""`lvdet rerank`: games AP-Old on your own results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.options import (
    Annotations,
    ExactLvis,
    Iou,
    OptionalDetections,
    Results,
    Summary,
    Threads,
)
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import finish, progress_bar
from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.studies.account import Account

EXAMPLES = """\b
Examples:
  lvdet rerank lvis_v1_val.json results.json -o reranked.json
  lvdet rerank gt.json results.json --dets-per-class best --summary gain.json
  lvdet rerank gt.json results.json --account exchanged.jsonl
  lvdet rerank gt.json results.json --image 139
"""


def run(
    ground_truth: Annotations,
    detections: Results,
    output: OptionalDetections = None,
    dets_per_class: Annotated[
        str,
        typer.Option(
            metavar="K|best",
            help="Class cap, applied first; best searches for the cap that raises AP-Old most.",
        ),
    ] = "10000",
    dets_per_image: Annotated[
        int, typer.Option(metavar="N", help="Limit per image, applied second.")
    ] = 300,
    account: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Also write the dropped and added detections, one line per changed image.",
        ),
    ] = None,
    image: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Print the dropped and added detections of one image."),
    ] = None,
    summary: Summary = None,
    iou: Iou = None,
    exact_lvis: ExactLvis = False,
    threads: Threads = None,
) -> None:
    """Raise AP-Old by re-ranking alone.

    Keeps the best detections of each class, then the best of each image, and shows how AP-Old and
    AP-Fixed change.
    """
    from lvdet.files.detection_files import require_format, write_detections
    from lvdet.studies.reranking import rerank

    if output is not None:
        require_format(output)
    require_target(output)
    require_target(account, (".jsonl", ".ndjson"))
    require_target(summary, (".json",))
    cap: int | str = dets_per_class
    if dets_per_class != "best":
        try:
            cap = int(dets_per_class.replace(",", "").replace("_", ""))
        except ValueError:
            raise InputError(
                f"--dets-per-class is {dets_per_class!r}, expected an integer or best"
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
    finish(result, [] if summary is None else [summary])
    if of_image is not None:
        print(f"\n{of_image}")
    if output is not None:
        found = result.inputs["detection_count"]
        print(f"wrote {output}: {len(result.detections):,} of {found:,} detections")
    if account is not None:
        print(f"wrote {account}: {len(result.account()):,} images")


def write_account(account: Account, path: Path) -> None:
    """Writes one line of JSON per changed image."""
    from lvdet.files.writing import write_whole

    with write_whole(path) as file:
        for image in account:
            line = json.dumps(image.to_dict(), ensure_ascii=False)
            file.write(line.encode(errors="replace") + b"\n")
