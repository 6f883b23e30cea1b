"""Runs: how many there are, what they share, and how they are divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lvdet.errors import InputError
from lvdet.experiments.paper_item import chosen
from lvdet.experiments.run_graph import FIRST_PILOT, Runs, graph, part_of_graph
from lvdet.experiments.scale import read_scale

LVIS = read_scale("lvis")
EVERY = graph(chosen(["all"]), LVIS, [0])


def test_as_many_trainings_as_the_paper_needs() -> None:
    """25 for the main tables and the COCO one, with 1 retraining of 9 that is in both; 13 for
    tuning; 8 strong ones."""
    names = [run.name for run in EVERY.runs]
    assert len([name for name in names if name.startswith("tune-")]) == 13
    assert len([name for name in names if name.startswith("strong")]) == 8
    others = [name for name in names if not name.startswith(("tune-", "strong"))]
    assert len(others) == 26
    assert len({run.key for run in EVERY.runs}) == 47


def test_tables_share_their_runs() -> None:
    losses = graph(chosen(["ap_fixed_losses"]), LVIS, [0, 1, 2])
    pooled = graph(chosen(["ap_pool_losses", "ap_fixed_losses"]), LVIS, [0, 1, 2])
    assert losses.runs == pooled.runs
    assert len(losses.runs) == 15
    assert [run.seed for run in losses.runs[:5]] == [0] * 5  # a whole table first


def test_what_is_measured_does_not_depend_on_what_is_asked_for() -> None:
    losses = graph(chosen(["ap_fixed_losses"]), LVIS, [0])
    for run in losses.runs:
        assert losses.parts[run.key] == EVERY.parts[run.key]
    by_name = {run.name: EVERY.parts[run.key] for run in EVERY.runs}
    assert by_name["baseline"] == ("nms", "limits", "calibration")
    assert by_name["federated"] == ("calibration",)
    assert by_name["cas"] == ()


def test_keys_tell_runs_apart() -> None:
    runs = Runs(LVIS)
    assert runs.run("baseline", 0).key == Runs(LVIS).run("baseline", 0).key
    assert runs.run("baseline", 0).key != runs.run("baseline", 1).key
    assert runs.run("baseline", 0).key != runs.run("uniform", 0).key
    assert runs.run("baseline", 0).key != Runs(read_scale("synth")).run("baseline", 0).key


def test_configs_that_are_the_same_at_a_scale_are_one_run() -> None:
    tiny = graph(chosen(["ap_fixed_larger_models"]), read_scale("tiny"), [0])
    assert len(tiny.runs) == 1
    assert set(tiny.names[tiny.runs[0].key]) >= {"baseline", "resnet101", "resnext101"}


def test_a_retraining_follows_its_first_phase() -> None:
    crt = graph(chosen(["supp_ap_fixed_pool_crt_all"]), LVIS, [0])
    for chain in crt.chains(crt.runs):
        root = chain[0].root
        assert all(run.root == root for run in chain)
        assert all(run.parent is not None for run in chain[1:])
        assert {run.name.split("-")[1] for run in chain if run.parent} <= {
            {"baseline": "rfs"}.get(root.name, root.name)
        }


@given(st.integers(1, 9))
def test_parts_of_the_graph_are_the_whole(count: int) -> None:
    parts = [EVERY.chains(EVERY.runs, (number, count)) for number in range(1, count + 1)]
    runs = [run.key for part in parts for chain in part for run in chain]
    assert sorted(runs) == sorted(run.key for run in EVERY.runs)


def test_seeds_beyond_the_paper_s_are_left_out_and_pilots_are_not() -> None:
    tuning = graph(chosen(["supp_loss_tuning"]), LVIS, [0, 1, FIRST_PILOT])
    assert {run.seed for run in tuning.runs} == {0, FIRST_PILOT}


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3"])
def test_parts_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--only is"):
        part_of_graph(text)
