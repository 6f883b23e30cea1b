"""`lvdet sweep`: AP under a grid of budgets, from one match."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.cluster_option import Cluster, SkipBadShards, placed
from lvdet.cli.options import DropDuplicates, ExactLvis, Iou, RowOutputs, Threads
from lvdet.cli.terminal import finish, note, progress_bar, require_outputs
from lvdet.errors import InputError
from lvdet.files.writing import write_json

if TYPE_CHECKING:
    from lvdet.studies.sweep_result import Sweep
    from lvdet.studies.toy_example import Toy

EXAMPLES = """\b
Examples:
  lvdet sweep lvis_v1_val.json results.json
  lvdet sweep gt.json results.json --paper subsets,class-limit -o tables.tex -o tables.json
  lvdet sweep gt.json results.json --dets-per-image 100,300,inf --dets-per-class 10000,inf
  lvdet sweep gt.json results.json --dets-per-image 300 --rerank 10000 --subsets r,c,f,rcf
  lvdet sweep --paper toy
"""
ENDINGS = (".json", ".csv", ".md", ".tex")
CLASS_FIRST = "class-first"


def run(
    ground_truth: Annotated[
        Path | None, typer.Argument(metavar="GT", help="LVIS or COCO annotations.")
    ] = None,
    detections: Annotated[
        str | None, typer.Argument(metavar="DT", help="Detections, as for evaluate.")
    ] = None,
    dets_per_image: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Limits per image; inf means no limit."),
    ] = None,
    dets_per_class: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Limits per class; inf means no limit."),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="Which limit applies first in rows with two limits: class-first, image-first, or "
            "both (one row for each order).",
        ),
    ] = CLASS_FIRST,
    subsets: Annotated[
        str | None,
        typer.Option(
            metavar="r,c,rc,…",
            help="Restrict the detector to some classes before any limit applies, one subset per "
            "item: letters of rcf (rare, common, frequent), or a class name or id.",
        ),
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="For each limit per image, add a row that first applies a class cap of K.",
        ),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Tables of the paper: ranking, image-limit, subsets, class-limit, pool-limit, or "
            "all (the default without limits, --subsets or --rerank); also toy, which needs no "
            "files. The paper's labels work too.",
        ),
    ] = None,
    iou: Iou = None,
    exact_lvis: ExactLvis = False,
    drop_duplicates: DropDuplicates = False,
    output: RowOutputs = None,
    cluster: Cluster = None,
    skip_bad_shards: SkipBadShards = False,
    threads: Threads = None,
) -> None:
    """Compute AP under many limits.

    Matches once, then computes AP and AP-Pool under many limits per image and per class.
    """
    require_outputs(output, ENDINGS)
    from lvdet.studies.budget_tables import table_name

    names = None if paper is None else [table_name(name) for name in _parts(paper, "--paper")]
    with_toy = names is not None and "toy" in names
    rest = None if names is None else [name for name in names if name != "toy"]
    limits = [dets_per_image, dets_per_class, subsets, rerank]
    with_files = not with_toy or bool(rest) or any(item is not None for item in limits)
    if with_files and (ground_truth is None or detections is None):
        missing = "GT" if ground_truth is None else "DT"
        raise InputError(
            f"Missing argument '{missing}' (see --help); only --paper toy needs no files"
        )
    images = None if dets_per_image is None else _limits(dets_per_image, "--dets-per-image")
    groups = None if dets_per_class is None else _limits(dets_per_class, "--dets-per-class")

    from lvdet.studies.sweep import sweep
    from lvdet.studies.toy_example import toy

    example = toy() if with_toy else None
    result = None
    if with_files:
        assert ground_truth is not None
        assert detections is not None
        result = placed(sweep, cluster, skip_bad_shards)(
            ground_truth,
            detections,
            dets_per_image=images,
            dets_per_class=groups,
            order=order,
            subsets=None if subsets is None else _parts(subsets, "--subsets"),
            rerank=rerank,
            paper=rest or None,
            iou=iou,
            exact_lvis=exact_lvis,
            drop_duplicates=drop_duplicates,
            progress=progress_bar,
        )
    if example is not None:
        for path in output or []:
            write_with_example(path, result, example)
        print(example, end="\n\n" if result is not None else "\n")
    if result is not None:
        finish(result, output if example is None else None)
    if not with_files and ground_truth is not None:
        note("--paper toy reads no files; GT and DT were ignored")
    if order != CLASS_FIRST and not (_has_number(images) and _has_number(groups)):
        note(
            f"--order {order} has no effect: no row has both --dets-per-image and --dets-per-class"
        )


def write_with_example(path: Path, result: Sweep | None, example: Toy) -> None:
    """Writes the toy example together with the requested tables."""
    from lvdet.files.writing import write_text
    from lvdet.rendering.table_text import latex, markdown

    ending = path.suffix.lower()
    if ending == ".json":
        content = {} if result is None else result.to_dict()
        write_json(content | {"toy": example.to_dict()}, path)
    elif ending == ".csv" and result is None:
        raise InputError(f"{path}: the toy example can only be written as .json, .md or .tex")
    elif ending == ".csv" and result is not None:
        result.save(path)
    else:
        digits, written = (1, latex) if ending == ".tex" else (2, markdown)
        tables = [] if result is None else result.layouts(digits)
        write_text(written([example.layout(), *tables]), path)


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option} is {text!r}, expected at least one value")
    return parts


def _limits(text: str, option: str) -> list[int | None]:
    limits: list[int | None] = []
    parts = _parts(text, option)
    for place, part in enumerate(parts):
        if len(part) > 1 and part.startswith("0") and part.isdigit():
            whole = int("".join(parts[max(place - 1, 0) : place + 1]))
            raise InputError(f"{option} has {part!r}: did you mean {whole}?")
        try:
            limits.append(None if part.lower() in ("inf", "∞") else int(part.replace("_", "")))
        except ValueError:
            raise InputError(f"{option} has {part!r}, expected integers or inf") from None
    return limits


def _has_number(limits: list[int | None] | None) -> bool:
    return limits is not None and any(limit is not None for limit in limits)
