"""Every row of a sweep is the evaluation of results that were cut to that row's limits."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from long_cases import first
from lvdet.studies.budget_tables import PAPER, SUBSETS
from lvdet.studies.sweep_result import SweepRow
from oracles.cases import coco_case, lvis_case, without_boxes
from oracles.lvis_reference import cut_per_class, cut_per_image, drop_unknown
from oracles.pool_reference import evaluate_pool, evaluate_slow
from tabled import Tables, assert_agree, read_case, write_case

Json = dict[str, Any]
NAMES = ("AP", "APr", "APc", "APf")
BOTH = ("class-first", "image-first")


def cut(results: list[Json], row: SweepRow) -> list[Json]:
    """The results file as somebody would cut it for this row."""
    cuts = {
        "image": (cut_per_image, row.dets_per_image),
        "class": (cut_per_class, row.dets_per_class),
    }
    for kind in ("image", "class") if row.order == "image-first" else ("class", "image"):
        cutter, limit = cuts[kind]
        if limit is not None:
            results = cutter(results, limit)
    return results


def of_subset(annotations: Json, results: list[Json], letters: str) -> tuple[Json, list[Json]]:
    """Only the classes of these frequencies, and the detections of them."""
    if letters == "all":
        return annotations, results
    classes = [c for c in annotations["categories"] if c["frequency"] in letters]
    ids = {c["id"] for c in classes}
    return annotations | {"categories": classes}, [r for r in results if r["category_id"] in ids]


def check_by_reference(case: tuple[Json, list[Json]], folder: Path, **options: Any) -> int:
    """Against the slow reference; gives the number of rows."""
    annotations, results = case
    known = drop_unknown(annotations, results)
    if not known:
        return 0
    gt, dt = read_case(annotations, results, folder)
    result = lvdet.sweep(gt, dt, order=BOTH, **options)
    plain = without_boxes(known) if options.get("iou") == "segm" else known
    for row in result.rows:
        some, mine = of_subset(annotations, plain, row.classes)
        kept = cut(mine, row)
        what = str(row)
        slow = evaluate_slow(some, kept, options.get("iou", "bbox"), exact_lvis=False)
        assert_agree(row.metrics, {name: slow[name] for name in NAMES}, what)
        pool = evaluate_pool(some, kept, options.get("iou", "bbox"), 10**9, exact_lvis=False)
        assert_agree(row.pool, {name: pool[name] for name in NAMES}, what)
    return len(result.rows)


def test_rows_are_those_of_the_slow_reference(tmp_path: Path) -> None:
    number = 0
    for seed in range(12):
        masks = seed % 3 == 2
        number += check_by_reference(
            lvis_case(seed, masks),
            tmp_path,
            dets_per_image=[2, None],
            dets_per_class=[3, None],
            rerank=1,
            subsets=["rcf", SUBSETS[seed % 6]],
            iou="segm" if masks else "bbox",
        )
        number += check_by_reference(
            coco_case(seed, False), tmp_path, dets_per_image=[1, 4], dets_per_class=[2, None]
        )
    assert number > 150


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seeds", first(1, [range(100, 105), range(105, 120)]), ids=str)
def test_rows_are_those_of_an_evaluation_of_the_cut_results(
    seeds: range, masks: bool, exact: bool, tmp_path: Path
) -> None:
    """All seven subsets, both orders; lvdet.evaluate itself is tested against the references."""
    number = 0
    for seed in seeds:
        annotations, results = lvis_case(seed, masks)
        unknown = {r["category_id"] for r in results} - {c["id"] for c in annotations["categories"]}
        counted = results if exact else drop_unknown(annotations, results)
        if not drop_unknown(annotations, results):
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        swept = lvdet.sweep(
            gt,
            dt,
            dets_per_image=[3, None],
            dets_per_class=[4, None],
            order=BOTH,
            subsets=SUBSETS,
            rerank=2,
            exact_lvis=exact,
        )
        for row in swept.rows:
            ids = unknown | {
                c["id"] for c in annotations["categories"] if c["frequency"] in row.classes
            }
            kept = cut([r for r in counted if r["category_id"] in ids], row)
            if not kept:
                assert row.metrics["AP"] == 0 or math.isnan(row.metrics["AP"])
                continue
            _, table = read_case(annotations, kept, tmp_path)
            alone = lvdet.evaluate(
                gt,
                table,
                iou=swept.inputs["iou"],
                protocols=["fixed", "pool"],
                dets_per_class=10**9,
                classes=row.classes,
                exact_lvis=exact,
            )
            for ours, theirs in ((row.metrics, alone["fixed"]), (row.pool, alone["pool"])):
                assert_agree(ours, {name: theirs[name] for name in NAMES}, str(row))
            number += 1
    assert number > 19 * len(seeds)


@pytest.fixture(scope="module")
def simulated() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=60, classes=150, dets_per_image=None, seed=3)


def test_all_tables_of_the_paper(simulated: tuple) -> None:
    result = lvdet.sweep(*simulated)
    assert result.to_dict()["rows"] == lvdet.sweep(*simulated, paper="all").to_dict()["rows"]
    assert list(result.tables) == ["ranking", "image-limit", "subsets", "class-limit", "pool-limit"]
    assert len(result.rows) == 32
    counts = {name: sum(row.table == name for row in result.rows) for name in PAPER}
    assert counts == {
        "ranking": 2,
        "image-limit": 6,
        "subsets": 14,
        "class-limit": 5,
        "pool-limit": 5,
    }
    one = lvdet.sweep(*simulated, paper=["class-limit", "ranking"])
    assert [row.table for row in one.rows] == ["class-limit"] * 5 + ["ranking"] * 2
    again = [row for row in result.rows if row.table == "class-limit"]
    assert [row.metrics for row in one.rows[:5]] == [row.metrics for row in again]


def test_rows_agree_with_the_protocols(simulated: tuple) -> None:
    """The usual limits are the usual protocols."""
    result = lvdet.sweep(*simulated, dets_per_image=[300, None], dets_per_class=[10_000, None])
    whole = lvdet.evaluate(*simulated)
    by_limits = {(row.dets_per_image, row.dets_per_class): row for row in result.rows}
    for name in NAMES:
        assert by_limits[300, None].metrics[name] == whole["old"][name]
        assert by_limits[None, 10_000].metrics[name] == whole["fixed"][name]
        assert by_limits[None, 10_000].pool[name] == whole["pool"][name]


def test_deltas(simulated: tuple) -> None:
    result = lvdet.sweep(*simulated, paper="all", dets_per_image=[10, 100], subsets=["r", "cf"])
    rows = {name: [row for row in result.rows if row.table == name] for name in result.tables}
    base = {name: table[0] for name, table in rows.items()}
    for name in ("ranking", "image-limit", "class-limit", "pool-limit"):
        for row in rows[name]:
            if row is base[name]:
                assert row.delta is None
                assert row.pool_delta is None
                continue
            assert row.delta is not None
            assert row.pool_delta is not None
            for metric in NAMES:
                assert row.delta[metric] == row.metrics[metric] - base[name].metrics[metric]
                assert row.pool_delta[metric] == row.pool[metric] - base[name].pool[metric]
    for name in ("subsets", "grid"):
        for low, high in zip(rows[name][::2], rows[name][1::2], strict=True):
            assert low.classes == high.classes
            assert low.delta is None
            assert high.delta is not None
            assert high.delta["AP"] == high.metrics["AP"] - low.metrics["AP"]


def test_subsets_say_what_they_are(simulated: tuple) -> None:
    gt, dt = simulated
    frequency = gt.categories.frequency
    for row in lvdet.sweep(gt, dt, paper="subsets").rows:
        members = np.isin(frequency, list(row.classes))
        assert row.class_count == members.sum()
        assert row.instances_per_class == pytest.approx(
            np.isin(gt.category, np.flatnonzero(members)).sum() / members.sum()
        )
        assert row.dets_per_class is None
        assert row.order is None


def test_what_the_grid_holds(simulated: tuple) -> None:
    def limits(**options: Any) -> list[tuple[int | None, int | None, str | None]]:
        rows = lvdet.sweep(*simulated, **options).rows
        return [(row.dets_per_image, row.dets_per_class, row.order) for row in rows]

    assert limits(dets_per_image=[5, 7]) == [(5, None, None), (7, None, None)]
    assert limits(dets_per_class=9) == [(None, 9, None)]
    assert limits(dets_per_image=[5, None], dets_per_class=[9, None], order=BOTH) == [
        (5, 9, "class-first"),
        (5, 9, "image-first"),
        (5, None, None),
        (None, 9, None),
        (None, None, None),
    ]
    assert limits(dets_per_image=[5, math.inf], order="image-first") == [
        (5, None, None),
        (None, None, None),
    ]
    assert limits(dets_per_image=[5, None], rerank=3, order="image-first") == [
        (5, None, None),
        (5, 3, "class-first"),
        (None, None, None),
    ]
    assert limits(rerank=3) == [(300, None, None), (300, 3, "class-first")]
    assert limits(dets_per_image=[np.int64(5), 5, 5]) == [(5, None, None)]


def test_classes_by_name_and_id(simulated: tuple) -> None:
    gt, dt = simulated
    name, number = gt.categories.names[4], int(gt.categories.ids[7])
    rows = lvdet.sweep(gt, dt, dets_per_image=20, subsets=[name, [name, number], "fr"]).rows
    assert [row.classes for row in rows] == [name, f"{name}, {number}", "rf"]
    assert [row.class_count for row in rows[:2]] == [1, 2]
    alone = lvdet.evaluate(gt, dt, classes=[name, number], dets_per_image=20, protocols="old")
    assert rows[1].metrics["AP"] == alone["old"].AP
    by_id = lvdet.sweep(gt, dt, dets_per_image=20, subsets=[number, np.int64(number + 1)]).rows
    assert [row.classes for row in by_id] == [str(number), str(number + 1)]
    assert [row.class_count for row in by_id] == [1, 1]
    alone = lvdet.sweep(gt, dt, dets_per_image=20, subsets=number).rows
    assert [row.to_dict() for row in alone] == [by_id[0].to_dict()]


def test_the_same_classes_in_other_words_are_one_row(simulated: tuple) -> None:
    number = int(simulated[0].categories.ids[7])
    subsets = ["r", "rr", "fr", "rf", "frf", number, str(number), [number]]
    rows = lvdet.sweep(*simulated, dets_per_image=[20, 30], subsets=subsets).rows
    assert [row.classes for row in rows[::2]] == ["r", "rf", str(number)]


def test_both_orders_by_name(simulated: tuple) -> None:
    named, listed = (
        lvdet.sweep(*simulated, dets_per_image=5, dets_per_class=9, order=order).to_dict()["rows"]
        for order in ("both", BOTH)
    )
    assert named == listed
    assert len(named) == 2


def test_coco_files_have_no_subsets(tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=30, classes=10, dets_per_image=40, style="coco", seed=1)
    result = lvdet.sweep(gt, dt)
    assert list(result.tables) == ["ranking", "image-limit", "class-limit", "pool-limit"]
    assert {row.classes for row in result.rows} == {"all"}
    assert all(math.isnan(row.metrics["APr"]) for row in result.rows)
    limits = [row for row in result.rows if row.table == "image-limit"]
    assert limits[0].delta is None  # 100 per image, COCO's own limit
    assert "APr" not in str(result)
    note = [text for text in result.warnings if "COCO's own limit is 100/image/class" in text]
    assert len(note) == 1
    assert "all classes together" in note[0]
    by_class = lvdet.sweep(gt, dt, dets_per_class=20).warnings
    assert not [text for text in by_class if "own limit" in text]
    with pytest.raises(lvdet.InputError, match="frequency"):
        lvdet.sweep(gt, dt, paper="subsets")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dets_per_image": [-1]}, "limit on detections is -1"),
        ({"dets_per_image": [2.5]}, "limit on detections is 2.5"),
        ({"dets_per_class": ["many"]}, "per_class has 'many'"),
        ({"dets_per_image": "300"}, "per_image has '300'"),
        ({"rerank": "300"}, "limit on detections is '300'"),
        ({"subsets": [1.5]}, "a subset contains 1.5"),
        ({"subsets": [None]}, "a subset contains None"),
        ({"subsets": [[["r"]]]}, "a subset contains"),
        ({"subsets": [10**6]}, "no class with id 1000000"),
        ({"order": "first"}, "order is 'first'"),
        ({"paper": "toy"}, r"\.toy\(\) or run"),
        ({"dets_per_image": []}, "list of limits is empty"),
        ({"subsets": []}, "list of subsets is empty"),
        ({"subsets": ["nothing like it"]}, "nothing like it"),
        ({"dets_per_image": 3, "order": "first"}, "order is 'first'"),
        ({"dets_per_image": 3, "order": []}, "order"),
        ({"paper": "ranks"}, "unknown table 'ranks'"),
        ({"paper": []}, "no table was requested"),
        ({"rerank": 0.5}, "limit on detections is 0.5"),
        ({"dets_per_image": 3, "iou": "mask"}, "mask"),
    ],
)
def test_bad_options_are_named(simulated: tuple, options: Json, message: str) -> None:
    with pytest.raises(lvdet.InputError, match=message):
        lvdet.sweep(*simulated, **options)


def test_rows_of_cut_results_are_incomplete(truncated: Tables) -> None:
    result = lvdet.sweep(
        *truncated, dets_per_image=[100, 300, 301], dets_per_class=[50, None], order=BOTH
    )
    for row in result.rows:
        known = row.dets_per_image in (100, 300) and row.order != "class-first"
        assert row.incomplete != known, row
    (text,) = result.warnings
    assert "truncated at 300 detections per image" in text
    number = sum(row.incomplete for row in result.rows)
    assert f"{number} of {len(result.rows)} rows miss the dropped detections" in text
    assert "incomplete" in str(result)
    assert all({"incomplete", "reranked"} <= set(row.to_dict()) for row in result.rows)
    assert {"incomplete", "reranked"} <= set(next(csv.DictReader(io.StringIO(result.to_csv()))))
    # The cut was over all classes: of the rare ones alone, more might have been kept.
    rare = lvdet.sweep(*truncated, dets_per_image=300, subsets=["r"])
    assert all(row.incomplete for row in rare.rows)
    assert not lvdet.sweep(*truncated, dets_per_image=[100, 300]).warnings


def test_the_table_of_subsets_marks_the_limit_that_is_incomplete(truncated: Tables) -> None:
    (layout,) = lvdet.sweep(*truncated, paper="subsets").layouts()
    notes = {line[0].value: line[-1].value for line in layout.lines}
    assert notes.pop("RCF") == "incomplete at 5,000"
    assert set(notes.values()) == {"incomplete"}


def test_paths_are_read(simulated: tuple, tmp_path: Path) -> None:
    read = lvdet.sweep(*write_case(*simulated, tmp_path), paper="all", rerank=5)
    made = lvdet.sweep(*simulated, paper="all", rerank=5)
    assert read.to_dict()["rows"] == made.to_dict()["rows"]


def test_what_a_reader_must_keep(simulated: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest limit of each kind, for each set of classes; everything if there is none."""
    from lvdet.studies import sweep as module

    asked: list[Any] = []
    load = module.load_pair

    def watched(gt: Any, detections: Any, needs: Any, *options: Any, **more: Any) -> Any:
        asked[:] = needs(gt)
        return load(gt, detections, needs, *options, **more)

    monkeypatch.setattr(module, "load_pair", watched)
    lvdet.sweep(
        *simulated,
        dets_per_image=[3, 9],
        dets_per_class=[7, None],
        order=BOTH,
        subsets=["rcf", "r"],
    )
    found = {(need.budget, len(need.classes)) for need in asked}
    rare = int((simulated[0].categories.frequency == "r").sum())
    assert found == {
        (budget, classes)
        for budget in (lvdet.PerImage(9), lvdet.PerClass(7))
        for classes in (150, rare)
    }
    lvdet.sweep(*simulated, dets_per_image=[3, None])
    assert [(need.budget, len(need.classes)) for need in asked] == [(None, 150)]
    lvdet.sweep(*simulated)
    budgets = {(str(need.budget), len(need.classes)) for need in asked}
    assert {("10000/image", 150), ("50000/class", 150), ("5000/image", rare)} <= budgets


# What is written


@pytest.fixture(scope="module")
def swept(simulated: tuple) -> lvdet.Sweep:
    return lvdet.sweep(
        *simulated, paper="all", dets_per_image=[5, None], dets_per_class=[9, None], order=BOTH
    )


def test_json_has_the_contract(swept: lvdet.Sweep) -> None:
    content = json.loads(json.dumps(swept.to_dict(), allow_nan=False))
    assert set(content) == {"rows", "inputs", "warnings"}
    for row, whole in zip(content["rows"], swept.rows, strict=True):
        assert {"dets_per_image", "dets_per_class", "order", "classes", *NAMES, "pool"} <= set(row)
        assert set(row["pool"]) == set(NAMES)
        assert row["AP"] == whole.metrics["AP"]
        for name in NAMES:
            assert (row[name] is None) == math.isnan(whole.metrics[name])


def test_csv_reads_back(swept: lvdet.Sweep) -> None:
    rows = list(csv.DictReader(io.StringIO(swept.to_csv())))
    assert len(rows) == len(swept.rows)
    for row, whole in zip(rows, swept.rows, strict=True):
        assert float(row["dets_per_image"]) == (whole.dets_per_image or math.inf)
        assert float(row["dets_per_class"]) == (whole.dets_per_class or math.inf)
        assert row["order"] == (whole.order or "")
        for name in NAMES:
            assert float(row[name] or "nan") == pytest.approx(whole.metrics[name], nan_ok=True)
            assert float(row[f"pool.{name}"] or "nan") == pytest.approx(
                whole.pool[name], nan_ok=True
            )
            if whole.delta is None:
                assert row[f"delta.{name}"] == ""


def test_markdown_has_even_rows(swept: lvdet.Sweep) -> None:
    tables = swept.to_markdown().split("### ")[1:]
    assert len(tables) == 7  # the grid has one for AP and one for AP-Pool
    for table in tables:
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1
        assert len(lines) > 3


def test_latex_has_even_rows(swept: lvdet.Sweep) -> None:
    text = swept.to_latex()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 7
    for table in text.split(r"\begin{tabular}")[1:]:
        columns = len(table.split("}", 1)[0].strip("{"))
        body = table.split(r"\bottomrule")[0]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {line.count("&") for line in lines} == {columns - 1}
    assert text.count("{") == text.count("}")
    assert text.count("$") % 2 == 0


def test_odd_names_are_escaped() -> None:
    from lvdet.rendering.table_text import Cell, Layout, latex, markdown

    odd = Layout("x", "50% & more_", ["a|b", "c"], [[Cell("x|y\n\\z"), Cell("{$#^~}", "+1")]])
    assert r"50\% \& more\_" in latex([odd])
    assert r"x|y \textbackslash{}z & \{\$\#\textasciicircum{}\textasciitilde{}\}" in latex([odd])
    assert r"| x\|y \\z | {$#^~} (+1) |" in markdown([odd])


def test_text_is_aligned(swept: lvdet.Sweep) -> None:
    for part in str(swept).split("\n\n")[1:]:
        _, head, *lines = part.splitlines()
        assert all(len(line) <= 100 for line in lines)
        end = head.index("dets/image") + len("dets/image") if "dets/image" in head else None
        if end:
            assert all(
                line[end - 1] in "∞0123456789" and line[end : end + 2] == "  " for line in lines
            )


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (-1e-9, "+0.00"),
        (1e-9, "+0.00"),
        (0.0, "+0.00"),
        (-0.0, "+0.00"),
        (-0.00006, "-0.01"),
        (0.0123, "+1.23"),
        (math.nan, ""),
        (None, ""),
    ],
)
def test_deltas_are_rounded_before_they_get_a_sign(delta: float | None, expected: str) -> None:
    from lvdet.rendering.table_text import signed

    assert signed(delta) == expected
