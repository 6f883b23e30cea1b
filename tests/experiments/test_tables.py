"""Tables and the page from results whose numbers are chosen."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from experiments.made_results import made, own
from lvdet.errors import InputError
from lvdet.experiments.claims import all_claims
from lvdet.experiments.experiment_table import ExperimentTables
from lvdet.experiments.judging import judge
from lvdet.experiments.paper_item import experiment
from lvdet.experiments.result_files import ResultSet, read_results, write_results
from lvdet.experiments.results_page import write_page
from lvdet.experiments.run_graph import FIRST_PILOT
from lvdet.experiments.scale import read_scale

SYNTH = read_scale("synth")


def table(name: str, results: ResultSet) -> ExperimentTables:
    return ExperimentTables.of([experiment(name)], SYNTH, results)


def lines(tables: ExperimentTables) -> dict[str, list[str]]:
    """Cells as text, by the first of each line."""
    (layout,) = tables.layouts()
    return {
        line[0].value: [f"{cell.value} {cell.delta}".strip() for cell in line[1:]]
        for line in layout.lines
    }


def samplers() -> ResultSet:
    values = {"uniform": [(18, 22), (20, 26)], "cas": [(19, 21)], "baseline": [(23, 25), (23, 27)]}
    return ResultSet(
        made(name, seed, own(old_AP=old, fixed_AP=fixed, pool_AP=30))
        for name, pairs in values.items()
        for seed, (old, fixed) in enumerate(pairs)
    )


def test_means_deviations_deltas_and_the_paper_s_figures() -> None:
    """The deviation of 18 and 20 is √2; CAS has one seed; RFS is 4 above uniform's mean of 19."""
    assert lines(table("ap_fixed_samplers", samplers())) == {
        "Uniform": ["19.00 ± 1.41", "18.4", "24.00 ± 2.83", "22.8"],
        "CAS": ["19.00 +0.00", "19.2", "21.00 -3.00", "21.5"],
        "RFS": ["23.00 ± 0.00 +4.00", "22.3", "26.00 ± 1.41 +2.00", "25.5"],
    }


def test_the_same_as_json_markdown_and_latex(tmp_path: Path) -> None:
    tables = table("ap_fixed_samplers", samplers())
    for ending in ("json", "md", "tex"):
        tables.save(tmp_path / f"tables.{ending}")
    rows = json.loads((tmp_path / "tables.json").read_text())["tables"][0]["rows"]
    number = rows[0]["values"]["AP-Old"]
    assert number["mean"] == pytest.approx(0.19)
    assert number["sd"] == pytest.approx(math.sqrt(2) / 100)
    assert number["seeds"] == pytest.approx([0.18, 0.2])
    assert rows[1]["values"]["AP-Old"]["sd"] is None
    assert "| RFS | 23.00 ± 0.00 (+4.00) | 22.3 |" in (tmp_path / "tables.md").read_text()
    assert r"\label{tab:ap_fixed_samplers}" in (tmp_path / "tables.tex").read_text()


def test_a_column_less_another_and_counts() -> None:
    measured = {
        f"classes={classes},image={limit}": {"AP": 0.2 + limit / 1e5, "class_count": 96.0}
        for classes in ("r", "rcf")
        for limit in (300, 5000)
    }
    found = lines(table("lvis_subsets", ResultSet([made("baseline", 0, measured)])))
    assert found["R"] == ["96", "337", "–", "3.6", "20.30", "18.5", "25.00", "19.0", "4.70", "0.5"]
    assert found["C"][0] == "–"


def test_a_column_of_another_config() -> None:
    rows = [
        made("baseline", 0, {"image=300": {"AP": 0.2}}),
        made("coco", 0, {"image=300": {"AP": 0.4}}),
    ]
    found = lines(table("higher_dets_per_im", ResultSet(rows)))
    assert found["300"][0] == "20.00"
    assert found["300"][-2:] == ["40.00", "37.5"]


def test_rows_of_truncated_predictions_are_named() -> None:
    limits = {"image=300": 0.0, "image=5000": 1.0}
    measured = {at: {"AP": 0.2, "incomplete": incomplete} for at, incomplete in limits.items()}
    (note,) = table("higher_dets_per_im", ResultSet([made("baseline", 0, measured)])).notes()
    assert note.startswith("image=5000: predictions do not hold all")
    assert table("ap_fixed_samplers", samplers()).notes() == []


def test_files_hold_what_was_written(tmp_path: Path) -> None:
    results = samplers()
    write_results(results, tmp_path / "a.json")
    (tmp_path / "tables.json").write_text("{}")
    assert [*read_results([tmp_path, tmp_path / "none"])] == [*results]
    (tmp_path / "b.json").write_text("not")
    with pytest.raises(InputError, match=r"b\.json: not JSON"):
        read_results([tmp_path])
    (tmp_path / "b.json").write_text('{"experiment_results": 2, "results": []}')
    with pytest.raises(InputError, match="of version 2, expected 1"):
        read_results([tmp_path])


def test_the_result_with_more_parts_stays_and_the_later_of_a_name_counts() -> None:
    results = ResultSet([made("cas", 0, own(old_AP=1), parts=("limits",), key="k")])
    results.add(made("cas", 0, own(old_AP=2), key="k"))
    assert results.value("cas", 0, "own", "old.AP") == pytest.approx(0.01)
    results.add(made("cas", 0, own(old_AP=3), key="l", finished="2026-01-02T00:00:00+00:00"))
    results.add(made("cas", 0, own(old_AP=4), key="m", finished="2025-01-02T00:00:00+00:00"))
    assert results.value("cas", 0, "own", "old.AP") == pytest.approx(0.03)


def test_the_page_is_made_of_the_files(tmp_path: Path) -> None:
    """Its verdicts are those of the rule, its tables those of the results, and it is the same when
    made again."""
    results, data = samplers(), tmp_path / "data"
    data.mkdir()
    results.add(made("cas", 1, own(old_AP=19.5, fixed_AP=21.2, pool_AP=29)))
    levels = {f"{group}.{name}": 0.5 for group in "rcf" for name in (0.05, 0.25, 0.5, 0.75, 0.95)}
    means = {f"{group}.mean": 0.6 for group in "rcf"}
    results.add(made("federated", 0, {"scores": levels | means}))
    write_results(results, data / "runs.json")
    page = tmp_path / "results" / "index.md"
    written = write_page(page, [data], "synth")
    assert written == [page, page.with_name("score-dist.svg")]
    first = [path.read_bytes() for path in written]
    text = page.read_text()
    for claim in all_claims():
        verdict = judge(claim, results)
        assert f"| {claim.statement} | {verdict.outcome} |" in text
        assert f"- {claim.statement} **{verdict.outcome}**" in text
    assert "| a machine | 2 | 0 | abc | 7 | 0.17 |" in text  # 7 runs of 90 seconds
    assert "| RFS | 23.00 ± 0.00 (+4.00) | 22.3 |" in text
    assert "`supp_nms_comparison`" in text.split("Not run: ")[-1]
    assert text.count("**not run**") == sum(
        judge(one, results).outcome == "not run" for one in all_claims()
    )
    svg = first[1].decode()
    assert svg.startswith("<svg ")
    assert re.findall(r">([A-Z]\w+)</text>", svg) == ["Federated"]
    write_page(page, [data], "synth")
    assert [path.read_bytes() for path in written] == first
    results.add(made("baseline", FIRST_PILOT, own(old_AP=90, fixed_AP=90, pool_AP=90)))
    write_results(results, data / "runs.json")
    write_page(page, [data], "synth")
    with_pilot = page.read_text()
    assert "Of these runs, 1 is a pilot" in with_pilot
    assert with_pilot.split("## Verdicts")[1] == text.split("## Verdicts")[1]
    with pytest.raises(InputError, match="no results of scale lvis"):
        write_page(page, [data], "lvis")
