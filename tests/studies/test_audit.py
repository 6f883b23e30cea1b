"""What an audit finds, and what it concludes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import lvdet
from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import PerClass, PerImage, apply
from lvdet.matching.match_options import MatchOptions
from lvdet.studies import audit as audit_module
from lvdet.tables.results import Results


@pytest.fixture(scope="module")
def uncut() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=300, classes=1203, dets_per_image=None, seed=2)


@pytest.fixture(scope="module")
def found(uncut: tuple) -> lvdet.Audit:
    return lvdet.audit(*uncut)


def test_numbers_are_those_of_evaluate(uncut: tuple, found: lvdet.Audit) -> None:
    whole = lvdet.evaluate(*uncut)
    for name, metrics in (("old", found.old), ("fixed", found.fixed), ("pool", found.pool)):
        assert metrics == {key: whole[name][key] for key in ("AP", "APr", "APc", "APf")}
    gt, dt = uncut
    again = lvdet.evaluate(gt, lvdet.rerank(gt, dt).detections, protocols="old")
    assert found.reranked is not None
    assert found.reranked["AP"] == again["old"].AP
    assert found.search is not None
    assert found.search.tried == lvdet.search_class_cap(gt, dt).tried


def test_an_uncut_file(found: lvdet.Audit) -> None:
    assert found.cut is None
    assert found.standing == {"old": "gameable", "fixed": "publishable", "pool": "publishable"}
    text = str(found)
    assert "does not appear truncated" in text
    assert "AP-Fixed is publishable: " in text
    assert "AP-Pool is publishable: " in text
    assert "AP-Old is gameable: re-ranking alone raises it by" in text
    assert "class caps tried, up to 10,000" in text
    assert "This is fine" in text


def test_equal_scores_that_move_a_number(uncut: tuple) -> None:
    """The range of evaluate, which its own tests compare with the references' orders."""
    gt, dt = uncut
    rounded = replace(dt, score=np.round(dt.score, 1))
    result, whole = lvdet.audit(gt, rounded), lvdet.evaluate(gt, rounded)
    assert set(result.standing.values()) == {"uncertain"}
    for name, sentence in zip(("old", "fixed", "pool"), result.verdict, strict=True):
        ties = whole[name].ties
        assert f"it lies between {100 * ties.low:.2f} and {100 * ties.high:.2f}, " in sentence


def test_a_cut_file(uncut: tuple) -> None:
    gt, dt = uncut
    cut = dt[apply([PerImage(300)], dt)]
    result = lvdet.audit(gt, cut)
    assert result.cut == (300, 300)
    assert result.standing == {"old": "gameable", "fixed": "incomplete", "pool": "incomplete"}
    old, fixed, pool = result.verdict
    assert "AP-Old is gameable: it is what lvis computes, but the file is truncated at 300" in old
    assert "leaves re-ranking nothing to add" in old
    assert "AP-Fixed is incomplete: the file is truncated at 300 detections per image" in fixed
    assert "usually too low" in pool
    assert result.to_dict()["standing"]["fixed"] == "incomplete"
    assert result.to_dict()["cut"] == {"limit": 300, "images": 300}
    assert result.to_dict()["class_cut"] is None


def test_a_file_cut_below_the_limit(uncut: tuple) -> None:
    gt, dt = uncut
    result = lvdet.audit(gt, dt[apply([PerImage(100)], dt)])
    assert result.standing["old"] == "incomplete"
    assert "AP-Old is incomplete: the file is truncated at 100 detections per image" in str(result)


def test_a_file_cut_by_class(uncut: tuple) -> None:
    gt, dt = uncut
    result = lvdet.audit(gt, dt[apply([PerClass(150)], dt)])
    assert result.class_cut is not None
    assert result.class_cut.limit == 150
    assert result.to_dict()["class_cut"]["classes"] == result.class_cut.at_limit > 5
    assert result.standing == {"old": "re-ranked", "fixed": "incomplete", "pool": "incomplete"}
    assert "The file is truncated at 150 detections per class" in str(result)
    assert "AP-Old is re-ranked: " in result.verdict[0]
    assert "the AP-Old of results re-ranked with that class cap" in result.verdict[0]
    assert "is truncated at 150 detections per class" in result.verdict[1]
    assert "Those with 150 would have more" in str(result)


def test_a_file_cut_by_class_at_what_ap_fixed_looks_at(
    uncut: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, dt = uncut
    monkeypatch.setattr(audit_module, "FIXED_PER_CLASS", 150)
    result = lvdet.audit(gt, dt[apply([PerClass(150)], dt)])
    assert result.standing == {"old": "re-ranked", "fixed": "publishable", "pool": "publishable"}


def test_every_protocol_has_one_sentence(uncut: tuple, found: lvdet.Audit) -> None:
    gt, dt = uncut
    files = [dt[apply([budget], dt)] for budget in (PerImage(300), PerImage(100), PerClass(50))]
    for result in (found, *(lvdet.audit(gt, file) for file in (*files, dt[:0]))):
        for sentence, name in zip(result.verdict, ("old", "fixed", "pool"), strict=True):
            assert sentence.startswith(f"AP-{name.capitalize()} is {result.standing[name]}: ")
            assert sentence.endswith(".")
            assert ". " not in sentence


def test_of_an_empty_file_nothing_is_publishable(uncut: tuple) -> None:
    gt, dt = uncut
    result = lvdet.audit(gt, dt[:0])
    assert set(result.standing.values()) == {"undefined"}
    assert "publishable" not in str(result)
    assert "the file has no detections" in result.verdict[1]


def test_short_classes(uncut: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted over the annotations' classes, those without any detection included."""
    gt, dt = uncut
    monkeypatch.setattr(audit_module, "FIXED_PER_CLASS", 100)
    empty = int(gt.categories.ids[5])
    rows = dt.category_ids[dt.category] != empty
    result = lvdet.audit(gt, dt[rows])
    counts = {int(value): 0 for value in gt.categories.ids}
    for value in dt.category_ids[dt.category[rows]].tolist():
        counts[value] += 1
    expected = {value: count for value, count in counts.items() if count < 100}
    assert {item.category_id: item.detections for item in result.short} == expected
    assert 0 < len(expected) < len(counts)
    assert result.short[0].detections == 0
    assert [item.detections for item in result.short] == sorted(expected.values())
    listed = result.to_dict()["short_classes"]
    assert listed["count"] == len(listed["classes"]) == len(expected)
    assert f"{len(expected):,} of 1,203 classes" in str(result)


def test_caps_are_searched_for_alike_in_pruned_results(
    uncut: tuple, found: lvdet.Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a reader kept only what the limits need or everything: no cap above is tried."""
    gt, dt = uncut
    monkeypatch.setattr(audit_module, "FIXED_PER_CLASS", 200)
    of_all = lvdet.audit(gt, dt)
    kept = apply([PerImage(300)], dt) | apply([PerClass(200)], dt)
    assert not kept.all()
    whole = Results.of(dt)
    pruned = replace(
        Results.of(dt[kept]),
        total=len(dt),
        per_image=whole.per_image,
        per_class=whole.per_class,
    )
    monkeypatch.setattr(
        audit_module, "load_pair", lambda *_, **__: Pair(gt, pruned, MatchOptions("bbox"))
    )
    result = lvdet.audit(gt, dt)
    assert result.search is not None
    assert max(result.search.tried) == 200
    assert of_all.search is not None
    assert result.search == of_all.search
    assert result.verdict == of_all.verdict
    assert found.search is not None
    assert result.old == found.old
    for cap in result.search.tried.keys() & found.search.tried.keys():
        assert result.search.tried[cap] == found.search.tried[cap]
    assert result.inputs["detection_count"] == len(dt)


def test_a_coco_file() -> None:
    gt, dt = lvdet.simulate(images=40, classes=30, dets_per_image=None, style="coco", seed=1)
    result = lvdet.audit(gt, dt)
    assert result.search is None
    assert result.reranked is None
    assert str(result.budgets["old"]) == "100/image/class"
    assert result.standing["old"] == "publishable"
    assert "re-ranking cannot raise it" in str(result)
    assert result.to_dict()["reranking"] is None
    assert result.old["AP"] == lvdet.evaluate(gt, dt)["old"].AP


def test_a_coco_file_cut_below_its_limit() -> None:
    gt, dt = lvdet.simulate(images=40, classes=30, dets_per_image=50, style="coco", seed=1)
    result = lvdet.audit(gt, dt)
    assert result.standing["old"] == "incomplete"
    assert "truncated at 50 detections per image" in result.verdict[0]


def test_a_small_vocabulary_has_nothing_to_gain() -> None:
    gt, dt = lvdet.simulate(images=40, classes=20, dets_per_image=None, seed=1)
    result = lvdet.audit(gt, dt)
    assert result.standing["old"] == "publishable"
    assert "AP-Old is publishable: re-ranking does not raise it here" in str(result)


def test_values_are_plain(found: lvdet.Audit) -> None:
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["verdict"] == found.verdict
    assert content["reranking"]["best"]["gain"] > 0
    assert content["fixed_minus_old"] == pytest.approx(found.fixed["AP"] - found.old["AP"])


def test_nothing_to_find_is_undefined() -> None:
    gt, dt = lvdet.simulate(images=10, classes=5, dets_per_image=20, seed=1)
    none = replace(gt, ignore=np.ones(len(gt), dtype=bool))
    result = lvdet.audit(none, dt)
    assert math.isnan(result.old["AP"])
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["fixed_minus_old"] is None
    assert "nan" not in str(result)
    assert set(result.standing.values()) == {"undefined"}
    assert "no objects to detect" in result.verdict[0]


def test_scores_of_a_large_file_are_those_that_budgets_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is read of such a file is more than that, and depends on the order of its rows."""
    gt, _ = lvdet.simulate(images=30, classes=1, dets_per_image=1)
    image = np.repeat(gt.images.ids, 400)
    score = np.random.default_rng(0).random(len(image))
    category = np.full(len(image), gt.categories.ids[0])
    dt = lvdet.Detections.from_arrays(image, category, score, np.ones((len(image), 4)))
    assert lvdet.audit(gt, dt).scores.detections == len(image)
    monkeypatch.setattr(audit_module, "ROOM_WITH_BOXES", 100)
    kept = np.isin(score, np.sort(score)[-10_000:])
    for one in gt.images.ids:
        kept |= np.isin(score, np.sort(score[image == one])[-300:])
    scores = lvdet.audit(gt, dt).scores
    assert scores.detections == kept.sum() < len(image)
    assert scores.lowest == score[kept].min()
