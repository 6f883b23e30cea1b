"""`lvdet evaluate`: three numbers with their budgets."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations, ExactLvis, Iou, Results, Threads
from lvdet.cli.table_file import write_text
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import print_evaluation, print_layouts, progress_bar, warn
from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.diagnosis.diagnosis_result import Diagnosis
    from lvdet.evaluation.evaluation_result import Evaluation
    from lvdet.files.progress import Progress

EXAMPLES = """\b
Examples:
  lvdet evaluate lvis_v1_val.json results.json
  lvdet evaluate gt.json results.parquet --iou bbox --output scores.json
  lvdet evaluate gt.json 'shards/*.jsonl.gz' --protocols fixed,pool --class-table classes.csv
  lvdet evaluate gt.json results.json --groups base_novel.json
  lvdet evaluate gt.json results.json --errors
"""


class Options(TypedDict):
    """What `evaluate` and `evaluate_and_diagnose` both take."""

    iou: str | None
    protocols: list[str]
    dets_per_image: int | None
    dets_per_class: int | None
    classes: str | None
    groups: dict[str, list[int | str]] | None
    progress: Progress


def run(
    ground_truth: Annotations,
    detections: Results,
    iou: Iou = None,
    protocols: Annotated[
        str, typer.Option(help="Which of old, fixed, pool, between commas.")
    ] = "old,fixed,pool",
    dets_per_image: Annotated[
        int | None,
        typer.Option(
            help="Budget of AP-Old: detections an image, over all classes. Default: 300 for "
            "LVIS; 100 an image and class for COCO."
        ),
    ] = None,
    dets_per_class: Annotated[
        int | None,
        typer.Option(help="Budget of AP-Fixed and AP-Pool: detections a class. Default: 10,000."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help="Evaluate only these classes: letters of rcf, a group of --groups, or names and "
            "ids between commas."
        ),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help='More groups of classes to report: {"novel": ["cat", 17], …}.',
        ),
    ] = None,
    class_table: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write a row for each class.")
    ] = None,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Also say what kinds of errors there are, what each costs in AP50, and which "
            "classes are taken for which.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the result as JSON.")
    ] = None,
    exact_lvis: ExactLvis = False,
    threads: Threads = None,
) -> None:
    """AP-Old, AP-Fixed and AP-Pool of a results file, each with its budget."""
    require_target(output)
    require_target(class_table)

    if errors and exact_lvis:
        raise InputError("--errors and --exact-lvis: errors are those of lvdet's own reading")
    options: Options = {
        "iou": iou,
        "protocols": [name.strip() for name in protocols.split(",") if name.strip()],
        "dets_per_image": dets_per_image,
        "dets_per_class": dets_per_class,
        "classes": classes,
        "groups": None if groups is None else read_groups(groups),
        "progress": progress_bar,
    }
    diagnosis: Diagnosis | None = None
    if errors:
        from lvdet.diagnosis.diagnose import evaluate_and_diagnose

        result, diagnosis = evaluate_and_diagnose(ground_truth, detections, **options)
    else:
        from lvdet.evaluation.protocols import evaluate

        result = evaluate(ground_truth, detections, exact_lvis=exact_lvis, **options)
    warnings = result.warnings
    if diagnosis is not None and "fixed" not in result:  # else these are among them
        warnings = list(dict.fromkeys([*warnings, *diagnosis.warnings]))
    if output is not None:
        found = {} if diagnosis is None else {"errors": diagnosis.numbers()}
        write_json(result.to_dict() | found | {"warnings": warnings}, output)
    if class_table is not None:
        write_class_table(result, class_table)
    print_evaluation(result)
    if diagnosis is not None:
        print_layouts(diagnosis.layouts())
    for text in warnings:
        warn(text)


def read_groups(path: Path) -> dict[str, list[int | str]]:
    """Named groups of classes from a JSON object of lists."""
    try:
        groups = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(groups, dict) or not all(
        isinstance(value, list) for value in groups.values()
    ):
        raise InputError(f"{path}: expected an object of lists, group name to class names or ids")
    for name, members in groups.items():
        for item in members:
            if isinstance(item, bool) or not isinstance(item, int | str):
                raise InputError(f"{path}: group {name!r} holds {item!r}, expected names and ids")
    return groups


def write_class_table(result: Evaluation, path: Path) -> None:
    """Writes the table of classes as CSV; empty cells are undefined."""
    table = result.per_class
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table)
    for row in zip(*(column.tolist() for column in table.values()), strict=True):
        writer.writerow("" if value != value else value for value in row)
    write_text(text.getvalue(), path)
