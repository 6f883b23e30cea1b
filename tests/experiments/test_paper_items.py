"""The catalogue covers the paper, and says of each row what the shipped configs say."""

from __future__ import annotations

import re

import pytest

from lvdet.errors import InputError
from lvdet.experiments.claims import Claim, all_claims
from lvdet.experiments.conditions import part_of
from lvdet.experiments.paper_item import Experiment, chosen, experiment, names
from lvdet.experiments.results_page import SECTIONS
from lvdet.training.configuration.shipped import shipped_configs, shipped_names

#: Every label of a table or figure in the paper; those of the parts of fig:balance_calib aside.
LABELS = """
fig:teaser fig:balance_calib tab:artificially_limit_dets_per_class tab:higher_dets_per_im
tab:lvis_subsets tab:dets_per_cat tab:ap_fixed_losses tab:ap_fixed_components
tab:ap_fixed_samplers tab:ap_fixed_crt tab:ap_fixed_larger_models tab:ap_fixed_big_table
fig:score-dist tab:higher_dets_per_im_with_pool tab:ap_pool_losses fig:calibrated_qualitative
tab:ap_pool_calib tab:ap_fixed_pool_losses tab:ap_fixed_pool_components
tab:ap_fixed_pool_samplers tab:ap_fixed_pool_crt tab:ap_fixed_pool_larger_models
tab:ap_fixed_pool_all tab:supp_ap_fixed_pool_crt_all tab:supp_ap_fixed_pool_losses
tab:supp_ap_fixed_pool_components tab:supp_ap_fixed_pool_larger tab:supp_nms_comparison
fig:norm_fc_code tab:supp_loss_tuning
""".split()  # noqa: SIM905
EVERY = [experiment(name) for name in names()]


def test_every_label_of_the_paper_is_a_name() -> None:
    assert sorted(one.label for one in EVERY) == sorted(LABELS)
    assert sorted(names()) == sorted(label.partition(":")[2] for label in LABELS)
    assert [experiment(label).label for label in LABELS] == LABELS


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="unknown experiment 'ap_fixed_loss'"):
        experiment("ap_fixed_loss")


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_rows_are_shipped_configs_and_known_conditions(one: Experiment) -> None:
    labels = [row.label for row in one.rows]
    assert len(set(labels)) == len(labels)
    for config, condition in one.wanted():
        assert config in shipped_names()
        part_of(condition)  # raises for one that is not known
    for row in one.rows:
        assert row.against in ("", *labels)
        assert len(row.paper) == len(one.rows[0].paper) or not row.paper


def test_figures_of_the_paper_are_those_that_configs_have() -> None:
    """Configs say in their first lines what the paper has for them; the first columns of tables of
    designs are the same."""
    said = {
        one.name: [float(number) for number in re.findall(r"AP-\w+ ([\d.]+)", one.result)]
        for one in shipped_configs()
    }
    compared = 0
    for one in EVERY:
        heads = [column.head for column in one.columns]
        if heads != ["AP-Old", "AP-Fixed", "AP-Pool"]:
            continue
        for row in one.rows:
            if row.paper and len(said[row.config]) == 3:
                assert [*row.paper] == said[row.config], (one.name, row.label)
                compared += 1
    assert compared > 40


def test_the_pooled_tables_have_the_rows_of_the_others() -> None:
    for name in ("losses", "components", "samplers", "crt", "larger_models"):
        assert experiment(f"ap_fixed_pool_{name}").rows == experiment(f"ap_fixed_{name}").rows


def test_tables_of_tables_are_taken_apart() -> None:
    assert [one.name for one in chosen(["ap_fixed_big_table", "ap_fixed_crt"])] == [
        f"ap_fixed_{name}" for name in ("losses", "components", "samplers", "crt", "larger_models")
    ]
    assert {one.name for one in chosen(["all"])} == {one.name for one in EVERY if not one.parts}


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.name)
def test_claims_look_at_what_their_experiments_measure(claim: Claim) -> None:
    one = experiment(claim.experiment)
    parts = one.needs()
    for config in claim.configs:
        for condition, metric, _ in claim.terms:
            assert metric
            part = part_of(condition)
            assert part is None or part in parts[config]
    assert bool(claim.sign) != bool(claim.margin)
    weights = claim.configs.values()
    assert (
        len(claim.configs) == 1
        or sum(weights) == pytest.approx(0, abs=1e-5)
        or all(weight > 0 for weight in weights)
    )


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.name)
def test_the_paper_s_effects_follow_from_its_tables(claim: Claim) -> None:
    """The paper's effect in a claim follows from the paper's figures in the catalogue."""
    known = {
        (column.config or row.config, row.at + column.after, column.metric): figure
        for table in EVERY
        for row in table.rows
        for column, figure in zip(table.columns, row.paper, strict=False)
        if not column.less
    }
    known |= {
        (config, f"{kind}:identity", metric): figure
        for (config, at, metric), figure in known.items()
        if at == "train:identity"
        for kind in ("oracle", "train")
    }
    total = 0.0
    for config, weight in claim.configs.items():
        for condition, metric, factor in claim.terms:
            figure = known.get((config, condition, metric))
            if figure is None:  # the paper has no such row
                assert claim.paper is None, (config, condition, metric)
                return
            total += weight * factor * figure
    assert claim.paper == pytest.approx(total, abs=0.051)


def test_the_page_has_every_table_once() -> None:
    shown = [name for section in SECTIONS.values() for name in section]
    assert len(set(shown)) == len(shown)
    hidden = {"ap_fixed_losses", "ap_fixed_components", "ap_fixed_samplers", "ap_fixed_crt"}
    hidden |= {"ap_fixed_larger_models", "norm_fc_code"}  # the pooled ones have all of these
    assert {*shown} | hidden == {one.name for one in EVERY if not one.parts}
