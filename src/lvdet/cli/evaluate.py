"""`lvdet evaluate`: AP-Old, AP-Fixed and AP-Pool, each with its budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.cluster_option import Cluster, PlanOnly, SkipBadShards, placed, print_plan
from lvdet.cli.floors import FAILED, parse_floor, shortfalls
from lvdet.cli.options import Annotations, DropDuplicates, ExactLvis, Iou, Outputs, Results, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import (
    fail,
    print_evaluation,
    print_tables,
    progress_bar,
    require_outputs,
    warn,
)
from lvdet.errors import InputError
from lvdet.files.writing import write_json

if TYPE_CHECKING:
    from lvdet.diagnosis.diagnosis_result import Diagnosis

EXAMPLES = """\b
Examples:
  lvdet evaluate lvis_v1_val.json results.json
  lvdet evaluate gt.json results.parquet --iou bbox -o scores.json
  lvdet evaluate gt.json 'shards/*.jsonl.gz' --protocols fixed,pool --class-table classes.csv
  lvdet evaluate gt.json results.json --groups base_novel.json
  lvdet evaluate gt.json results.json --budget 1000/image,10000/class
  lvdet evaluate gt.json results.json --agnostic-recall 100,300,1000
  lvdet evaluate gt.json results.json --like yoloe
  lvdet evaluate gt.json results.json --fail-under AP=0.3 --fail-under old.APr=0.2
  lvdet evaluate gt.json results.json --errors
  lvdet evaluate gt.json 'shards/*.parquet' --cluster local[8]
"""


def run(
    ground_truth: Annotations,
    detections: Results,
    iou: Iou = None,
    protocols: Annotated[
        str, typer.Option(metavar="NAME,…", help="Protocols to compute: any of old, fixed, pool.")
    ] = "old,fixed,pool",
    dets_per_image: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Limit per image of AP-Old, across all classes. Default: 300 for LVIS; for COCO, "
            "100 per image and class.",
        ),
    ] = None,
    dets_per_class: Annotated[
        int | None,
        typer.Option(metavar="N", help="Limit per class of AP-Fixed and AP-Pool. Default: 10,000."),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHAIN",
            help="Also report AP under this chain of limits, applied in order, such as "
            "1000/image,10000/class or 300/image/class. Repeatable.",
        ),
    ] = None,
    agnostic_recall: Annotated[
        str | None,
        typer.Option(
            metavar="N,…",
            help="Also report class-agnostic recall for these limits per image, such as "
            "100,300,1000: the share of objects that the best N detections find, "
            "whatever their class.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Evaluate as another project does: lvis, detectron2, lvis-challenge-2021, glip, "
            "mm-grounding-dino, yolo-world, yoloe, coco or v3det. Replaces --protocols.",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="SUBSET",
            help="Evaluate only these classes, and drop detections of others before any limit "
            "applies: letters for rare, common and frequent (r, rc, …), a group from --groups, or "
            "comma-separated names and ids.",
        ),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help='Also report AP for these groups of classes: {"novel": ["cat", 17], …}.',
        ),
    ] = None,
    class_table: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Also write one row per class as CSV.")
    ] = None,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Also report the kinds of error, the cost of each in AP50, and the most "
            "frequent confusions.",
        ),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=X",
            help="Exit with code 3 if a metric is below X, a fraction. AP=0.3 refers to AP-Fixed, "
            "or to the only protocol computed; for another one, write old.APr=0.2. Repeatable.",
        ),
    ] = None,
    output: Outputs = None,
    exact_lvis: ExactLvis = False,
    drop_duplicates: DropDuplicates = False,
    cluster: Cluster = None,
    skip_bad_shards: SkipBadShards = False,
    nodes: PlanOnly = None,
    threads: Threads = None,
) -> int:
    """Compute AP-Old, AP-Fixed and AP-Pool."""
    require_outputs(output)
    floors = [parse_floor(text) for text in fail_under or []]
    require_target(class_table, (".csv",))

    from lvdet.evaluation.protocols import Plan, evaluate_plan
    from lvdet.limits.budgets import parse_budget
    from lvdet.matching.match_options import MatchOptions

    others = {
        "--exact-lvis": exact_lvis,
        "--like": like is not None,
        "--cluster": cluster is not None,
    }
    for name, given in others.items():
        if errors and given:
            raise InputError(f"--errors cannot be combined with {name}")
    plan = Plan(
        [name.strip() for name in protocols.split(",") if name.strip()],
        dets_per_image,
        dets_per_class,
        classes,
        None if groups is None else read_groups(groups),
        [parse_budget(text) for text in budget or []],
        like,
        parse_limits(agnostic_recall),
    )
    if nodes is not None:
        options = MatchOptions(iou, exact_lvis=exact_lvis)
        print_plan(cluster, ground_truth, detections, nodes, plan=plan, options=options)
        return 0
    diagnosis: Diagnosis | None = None
    if errors:
        from lvdet.diagnosis.diagnose import evaluate_and_diagnose

        result, diagnosis = evaluate_and_diagnose(
            ground_truth,
            detections,
            plan,
            iou=iou,
            drop_duplicates=drop_duplicates,
            progress=progress_bar,
        )
    else:
        result = placed(evaluate_plan, cluster, skip_bad_shards)(
            ground_truth,
            detections,
            plan=plan,
            options=MatchOptions(iou, exact_lvis=exact_lvis),
            drop_duplicates=drop_duplicates,
            progress=progress_bar,
        )
    failed = shortfalls(result, floors)
    warnings = result.warnings
    if diagnosis is not None and "fixed" not in result:  # otherwise they are included already
        warnings = list(dict.fromkeys([*warnings, *diagnosis.warnings]))
    for path in output or []:
        if diagnosis is not None and path.suffix.lower() == ".json":
            found = {"errors": diagnosis.numbers(), "warnings": warnings}
            write_json(result.to_dict() | found, path)
        else:
            result.save(path)
    if class_table is not None:
        from lvdet.files.writing import write_text

        write_text(result.to_csv(), class_table)
    print_evaluation(result)
    if diagnosis is not None:
        print_tables("", diagnosis.layouts())
    for text in warnings:
        warn(text)
    for text in failed:
        fail(text)
    return FAILED if failed else 0


def parse_limits(text: str | None) -> list[int]:
    """Limits per image, separated by commas."""
    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--agnostic-recall is {text!r}, expected integers such as 100,300,1000"
        ) from None


def read_groups(path: Path) -> dict[str, list[int | str]]:
    """Named groups of classes from a JSON object of lists."""
    from lvdet.files.opening import read_small

    try:
        groups = json.loads(read_small(path).decode())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(groups, dict) or not all(
        isinstance(value, list) for value in groups.values()
    ):
        raise InputError(
            f"{path}: expected an object that maps group names to lists of class names or ids"
        )
    for name, members in groups.items():
        for item in members:
            if isinstance(item, bool) or not isinstance(item, int | str):
                raise InputError(
                    f"{path}: group {name!r} contains {item!r}, expected class names and ids"
                )
    return groups
