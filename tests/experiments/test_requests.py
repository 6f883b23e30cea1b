"""Runs carried out: nothing twice, the same after an interruption, every kind of table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.conftest import tiny
from lvdet.errors import InputError, LvdetError
from lvdet.experiments.experiment_table import ExperimentTables
from lvdet.experiments.one_run import Workshop
from lvdet.experiments.paper_item import names
from lvdet.experiments.request import Request
from lvdet.experiments.result_files import read_results
from lvdet.experiments.run_status import RunStatus
from lvdet.experiments.scale import read_scale
from lvdet.experiments.several_runs import Job, fitting
from lvdet.files.locking import make_and_lock


def measures(folder: Path) -> dict[str, Any]:
    """What was measured, by key: all that does not depend on time and place."""
    return {one["key"]: [one["measures"], one["resamples"]] for one in read_results([folder])}


def assert_complete(tables: ExperimentTables) -> None:
    """Every table has a number in each line, from each of its runs."""
    for table in tables.tables:
        if table.experiment.name == "norm_fc_code":
            continue
        assert table.measured, table.experiment.name
        for rows in table.numbers.values():
            for label, numbers in rows.items():
                if not table.experiment.example:
                    assert any(one.values for one in numbers), (table.experiment.name, label)


def test_a_third_of_the_tables(tiny_runs: Request) -> None:
    assert_complete(tiny_runs.tables())
    assert tiny_runs.missing == []
    folder = tiny_runs.out
    assert sorted(path.name for path in folder.iterdir()) == [
        "tables.json",
        "tables.md",
        "tables.tex",
        "tiny.json",
    ]
    content = json.loads((folder / "tables.json").read_text())
    losses = next(one for one in content["tables"] if one["experiment"] == "ap_fixed_losses")
    assert [row["values"]["AP-Old"]["paper"] for row in losses["rows"]] == [
        22.3,
        22.5,
        24.0,
        24.7,
        24.5,
    ]


def test_where_a_result_is_from(tiny_runs: Request) -> None:
    for one in tiny_runs.results:
        told = one["provenance"]
        assert told["config"]["model.backbone"] == "tiny"
        assert {*told["seconds"]} == {"training", "predicting", "measuring"}
        assert len(told["data"]) == 2
        assert told["device"].startswith("CPU")
    left = [*tiny_runs.work.glob("runs/*/*.parquet"), *tiny_runs.work.glob("outbox/*")]
    assert left == []


def test_what_is_done_is_not_done_again(
    tiny_runs: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the same folder nor where its results are known; tables are the same."""

    def forbidden(*arguments: object) -> None:
        raise AssertionError("a finished run was repeated")

    monkeypatch.setattr("lvdet.experiments.several_runs.conduct", forbidden)
    first = (tiny_runs.out / "tables.md").read_text()
    for out in (tiny_runs.out, tmp_path / "elsewhere"):
        again = Request(
            tiny_runs.names, "tiny", out, tmp_path, known=(tiny_runs.out,), seeds=(0,), device="cpu"
        )
        again.carry_out()
        assert (out / "tables.md").read_text() == first


def test_a_workshop_is_for_one_request_at_a_time(tmp_path: Path) -> None:
    first, second = tiny(tmp_path, "balance_calib"), tiny(tmp_path, "balance_calib")
    refused = pytest.raises(InputError, match="work: another process is making runs here")
    with make_and_lock(first.work, ".lock", "making runs"), refused:
        second.carry_out()
    second.carry_out()


def test_status_tells_what_is_missing(tiny_runs: Request) -> None:
    asked = Request(tiny_runs.names, "tiny", tiny_runs.out, tiny_runs.work, seeds=(0, 1), jobs=2)
    status = RunStatus.of(asked)
    assert [run.seed for run, done in zip(status.runs, status.done, strict=True) if done] == [
        0
    ] * len(tiny_runs.graph.runs)
    assert len(asked.missing) == len(status.done) - sum(status.done)
    assert "min left with 2 at once" in status.title()
    assert status.to_dict()["runs"][0]["parts"] == ["nms", "limits", "calibration"]


def test_an_interrupted_request_resumes(tiny_runs: Request, tmp_path: Path) -> None:
    """After the first result; in the end the numbers are those of runs that were not."""

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    first = tiny(tmp_path, "ap_fixed_crt", say=interrupt)
    with pytest.raises(KeyboardInterrupt):
        first.carry_out()
    assert len(read_results([first.out])) == 1
    said: list[str] = []
    second = tiny(tmp_path, "ap_fixed_crt", say=said.append)
    second.carry_out()
    assert len(said) == 3
    every = measures(tiny_runs.out)
    assert measures(second.out) == {key: every[key] for key in measures(second.out)}
    assert len(measures(second.out)) == 4


def test_a_scale_without_sets_takes_the_files_that_configs_name(
    tiny_runs: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LVIS's files as configs expect them in the current folder, here those of a drawn set."""
    (drawn,) = tiny_runs.work.glob("images/tiny-main-*")
    for part in ("train", "val"):
        shutil.copy(drawn / "annotations" / f"{part}.json", tmp_path / f"lvis_v1_{part}.json")
        shutil.copytree(drawn / part, tmp_path / "coco", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    scale = replace(read_scale("tiny"), sets={})
    monkeypatch.setattr("lvdet.experiments.request.read_scale", lambda name: scale)
    request = tiny(tmp_path, "ap_fixed_larger_models")
    request.carry_out()
    (found,) = request.results
    drawn_one = tiny_runs.results.result("baseline", 0)
    assert found["measures"] == drawn_one["measures"]
    assert found["provenance"]["data"] == drawn_one["provenance"]["data"]
    assert found["key"] != drawn_one["key"]
    assert not (request.work / "images").exists()


@pytest.mark.long
def test_a_failure_is_told_and_the_others_are_done(tmp_path: Path) -> None:
    """A run's folder that is not a run's: in a process of its own."""
    request = tiny(tmp_path, "ap_fixed_larger_models", "ap_fixed_samplers", jobs=3)
    broken = next(run for run in request.graph.runs if run.name == "cas")
    folder = request.work / "runs" / broken.key
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("no run")
    with pytest.raises(LvdetError, match=r"1 of 3 jobs failed: cas, seed 0: .* has files, but no"):
        request.carry_out()
    assert [run.name for run in request.missing] == ["cas"]
    assert (request.out / "tables.md").is_file()


@pytest.mark.long
def test_all_tables(tmp_path: Path) -> None:
    assert_complete(tiny(tmp_path, *names(), seeds=(0, 1)).carry_out())


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_any_point(tiny_runs: Request, tmp_path: Path, jobs: int) -> None:
    """Killed again and again, later each time, until it comes to an end."""
    command = [sys.executable, "-m", "lvdet", "experiment", "ap_fixed_losses", "--scale", "tiny"]
    command += ["--seeds", "0", "--device", "cpu", "--jobs", str(jobs)]
    command += ["-o", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    finished: dict[str, str] = {}
    seconds = 3.0
    while True:
        process = subprocess.Popen(
            command,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()  # the processes that it began end by themselves
            process.wait()
            time.sleep(4)
            seconds += 4
        else:
            assert code == 0
            break
        found = read_results([tmp_path / "results"])
        now = {one["key"]: one["provenance"]["finished"] for one in found}
        assert {key: now[key] for key in finished} == finished  # none of them again
        finished = now
    every = measures(tiny_runs.out)
    mine = measures(tmp_path / "results")
    assert mine == {key: every[key] for key in mine}
    assert len(mine) == 5


def test_seeds_that_no_experiment_uses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--seeds has 5, expected seeds of scale tiny \(0, 1\)"):
        tiny(tmp_path, "ap_fixed_losses", seeds=(0, 5, 100))
    assert tiny(tmp_path, "ap_fixed_losses", seeds=(100,)).missing


def test_long_runs_of_one_network_do_not_hold_back_those_of_another(tmp_path: Path) -> None:
    names = ("ap_fixed_crt", "supp_ap_fixed_pool_larger")
    request = Request(names, "synth", tmp_path / "results", tmp_path / "work", seeds=(0,))
    workshop = Workshop(request.work)
    jobs = [Job(request.graph, tuple(chain), (), workshop) for chain in request.chains()]
    large = [job for job in jobs if job.runs[0].name.startswith("strong")]
    small = [job for job in jobs if job not in large]
    [network], [other] = {job.network for job in small}, {job.network for job in large}
    assert fitting(jobs, {other: 60.0}, left=59.0) == small
    assert fitting(jobs, {other: 60.0}, left=60.0) == jobs
    chains = [job for job in small if len(job.runs) > 1]
    assert chains
    assert fitting(small, {network: 40.0}, left=60.0) == [j for j in small if j not in chains]
    assert fitting(small, {network: 40.0}, left=40.0 * max(len(j.runs) for j in chains)) == small


@pytest.mark.long
def test_a_deadline_is_kept(tmp_path: Path) -> None:
    """What is finished is there, nothing is left running, and the next call does the rest."""
    request = tiny(tmp_path, "ap_fixed_components", jobs=2, deadline=30.0)
    request.carry_out()
    assert time.monotonic() - request.started < 30
    assert len(read_results([request.out])) >= 1
    rest = tiny(tmp_path, "ap_fixed_components")
    rest.carry_out()
    assert rest.missing == []
