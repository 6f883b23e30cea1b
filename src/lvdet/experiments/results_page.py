"""The page of results: the paper's argument with measured numbers, verdicts first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from lvdet.errors import InputError
from lvdet.experiments.claims import Claim, all_claims
from lvdet.experiments.experiment_table import ExperimentTable, ExperimentTables
from lvdet.experiments.judging import FAILS, HOLDS, MISSING, UNDECIDED, Interval, Verdict, judge
from lvdet.experiments.paper_item import Experiment, experiment
from lvdet.experiments.result_files import ResultSet, read_results
from lvdet.experiments.run_graph import FIRST_PILOT
from lvdet.experiments.scale import read_scale
from lvdet.experiments.score_figure import score_figure
from lvdet.files.writing import make_folder, write_text
from lvdet.rendering.table_text import Cell, Layout, markdown, signed

#: The paper's argument: what a section is about, and its tables and figures.
SECTIONS: dict[str, tuple[str, ...]] = {
    "AP-Old can be gamed": ("balance_calib", "artificially_limit_dets_per_class", "teaser"),
    "The limit per image": ("higher_dets_per_im", "lvis_subsets", "dets_per_cat"),
    "Which gains remain under AP-Fixed": (
        "ap_fixed_pool_losses",
        "score-dist",
        "ap_fixed_pool_components",
        "ap_fixed_pool_samplers",
        "ap_fixed_pool_crt",
        "ap_fixed_pool_larger_models",
    ),
    "Scores across classes": ("higher_dets_per_im_with_pool", "ap_pool_losses"),
    "Calibration": ("ap_pool_calib", "calibrated_qualitative"),
    "From the appendix": (
        "supp_ap_fixed_pool_crt_all",
        "supp_ap_fixed_pool_losses",
        "supp_ap_fixed_pool_components",
        "supp_nms_comparison",
        "supp_loss_tuning",
    ),
}
_HEAD = """\
# Results

The paper's experiments, run again at scale {scale}: {title}. [Experiments](../experiments.md)
explains the scales and the verdicts, and how to run everything yourself.

AP is in percent: the mean over seeds ± the standard deviation, then in parentheses the difference
from the row without parentheses, unless a note names another row. Columns named "paper" show the
paper's numbers, on LVIS (for "AP, COCO", on COCO). Limits are named as in the paper, even where
those of the scale are lower. At any scale but `lvis`, the images are not the paper's: compare the
signs and the order of differences, not their sizes. A detection is "not counted" if its class was
not verified in the image, or is not exhaustive there and the detection matches no object.

This page is generated from the files in `{data}`:

    lvdet experiment --page {page} --results {data} --scale {scale}
"""


def write_page(page: Path, folders: Sequence[Path], scale_name: str) -> list[Path]:
    """Writes the page and its figures; returns their paths."""
    scale = read_scale(scale_name)
    results = read_results(folders).of_scale(scale_name)
    if not len(results):
        raise InputError(f"{', '.join(map(str, folders))}: no results of scale {scale_name}")
    head = _HEAD.format(
        page=page, data=" --results ".join(map(str, folders)), scale=scale_name, title=scale.title
    )
    made_with = _made_with(results)
    results = ResultSet(one for one in results if one["seed"] < FIRST_PILOT)
    verdicts = [judge(claim, results) for claim in all_claims()]
    parts = [head, made_with, "## Verdicts\n", _summary(verdicts), _verdicts(verdicts)]
    make_folder(page.parent)
    written = [page]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        mine = [one for one in verdicts if _section(one.claim) == title]
        parts.append("".join(f"- {v.claim.statement} **{v.outcome}**\n" for v in mine))
        tables = ExperimentTables.of(map(experiment, names), scale, results).tables
        missing = []
        for table in tables:
            shown = _table(table)
            parts.append(shown)
            if not shown:
                missing.append(f"`{table.experiment.name}`")
            if shown and table.experiment.figure:
                figure = page.with_name(f"{table.experiment.name}.svg")
                write_text(score_figure(table.experiment, results), figure)
                written.append(figure)
                parts.append(f"![{table.experiment.title}]({figure.name})\n")
        if missing:
            parts.append(f"Not run: {', '.join(missing)}.\n")
    write_text("\n".join(part for part in parts if part), page)
    return written


def _made_with(results: ResultSet) -> str:
    """Hardware, versions and time: one line per machine and commit."""
    runs: dict[tuple[str, ...], list[dict[str, float]]] = {}
    pilots = 0
    for one in results:
        provenance = one["provenance"]
        pilots += one["seed"] >= FIRST_PILOT
        named = (
            provenance["device"],
            provenance["torch"],
            provenance["lvdet"],
            provenance["commit"] or "–",
        )
        runs.setdefault(tuple(map(str, named)), []).append(provenance["seconds"])
    lines = [
        [
            *map(Cell, named),
            Cell(f"{len(seconds):,}"),
            Cell(f"{sum(sum(one.values()) for one in seconds) / 3600:.2f}"),
        ]
        for named, seconds in sorted(runs.items())
    ]
    head = ["device", "PyTorch", "lvdet", "commit", "runs", "hours"]
    are = "1 is a pilot" if pilots == 1 else f"{pilots:,} are pilots"
    note = f"\nOf these runs, {are}, which nothing below counts.\n" if pilots else ""
    return markdown([Layout("", "Hardware and versions", head, lines)]) + note


def _summary(verdicts: Sequence[Verdict]) -> str:
    number = Counter(one.outcome for one in verdicts)
    hold = "holds" if number[HOLDS] == 1 else "hold"
    fail = "fails" if number[FAILS] == 1 else "fail"
    are = "is" if number[UNDECIDED] == 1 else "are"
    were = "was" if number[MISSING] == 1 else "were"
    return (
        f"Of {len(verdicts)} claims, {number[HOLDS]} {hold}, {number[FAILS]} {fail}, "
        f"{number[UNDECIDED]} {are} undecided and {number[MISSING]} {were} not run.\n"
    )


def _verdicts(verdicts: Iterable[Verdict]) -> str:
    """One line per claim, in points."""
    head = ["claim", "verdict", "paper", "effect", "over seeds", "over images", "seeds"]
    lines = [
        [
            Cell(one.claim.statement),
            Cell(one.outcome),
            Cell("" if one.claim.paper is None else f"{one.claim.paper:+.1f}"),
            Cell(signed(one.effect) if one.effect is not None else "–"),
            Cell(_interval(one.by_seeds)),
            Cell(_interval(one.by_images)),
            Cell(_seeds(one.seeds)),
        ]
        for one in verdicts
    ]
    return markdown([Layout("", "Effects in points, with 95 % confidence intervals", head, lines)])


def _interval(interval: Interval | None) -> str:
    return "–" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"


def _seeds(seeds: dict[str, int]) -> str:
    least, most = min(seeds.values()), max(seeds.values())
    return str(least) if least == most else f"{least} to {most}"


def _section(claim: Claim) -> str:
    """The section of a claim: that of its experiment, or of the one based on it."""
    for title, names in SECTIONS.items():
        if {claim.experiment, claim.experiment.replace("ap_fixed_", "ap_fixed_pool_")} & {*names}:
            return title
    raise AssertionError(claim.name)


def _table(table: ExperimentTable) -> str:
    """The table; empty if nothing was measured."""
    if not table.measured:
        return ""
    one = table.experiment
    notes = "".join(f"\n{note}\n" for note in table.notes())
    return f"{_kind(one)} `{one.label}`:\n\n{markdown(table.layouts())}{notes}"


def _kind(one: Experiment) -> str:
    return "The paper's figure" if one.label.startswith("fig:") else "The paper's table"
