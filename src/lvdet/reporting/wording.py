"""The sentences of a report that depend on its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

from lvdet import __version__
from lvdet.comparison.comparison_result import Compared, Comparison
from lvdet.comparison.differences import Difference
from lvdet.comparison.verdicts import title
from lvdet.evaluation.protocols import LVIS_PER_IMAGE
from lvdet.reporting.detection_pictures import TOP
from lvdet.reporting.detector_study import Study
from lvdet.reporting.report_tables import budget_words

if TYPE_CHECKING:
    from lvdet.reporting.report import Report

#: A difference of fewer points of AP gets no sentence.
SMALL = 0.05


def facts(report: Report) -> str:
    """What was evaluated, in a line."""
    inputs = report.studies[0].evaluation.inputs
    kind = {"bbox": "boxes", "segm": "masks", "boundary": "mask boundaries"}[inputs["iou"]]
    counts = [f"{study.evaluation.inputs['detection_count']:,}" for study in report.studies]
    return (
        f"{inputs['ground_truth']}: {inputs['images']:,} images, {inputs['classes']:,} classes, "
        f"{inputs['annotations']:,} objects. {_listed(counts)} detections, compared as {kind}."
    )


def lead(report: Report) -> str:
    """What the three numbers mean, in a sentence."""
    comparison = report.comparison
    if comparison is None:
        return _numbers_alone(report)
    if len(comparison.compared) > 1:
        return _several(comparison)
    (other,) = comparison.compared
    return _two(comparison.baseline, other)


def _numbers_alone(report: Report) -> str:
    pool = "AP-Pool also requires scores to be comparable across classes."
    if not report.federated:
        return (
            "AP-Old is COCO's own AP, AP-Fixed limits the detections of each class over all "
            f"images rather than per image, and {pool}"
        )
    evaluation = report.studies[0].evaluation
    old, fixed = (round(100 * evaluation[name].AP, 2) for name in ("old", "fixed"))
    if isnan(old) or len(report.studies) > 1:
        return f"Classes compete for room under AP-Old but not under AP-Fixed, and {pool}"
    limit = f"The limit of {LVIS_PER_IMAGE} detections per image, which all classes share,"
    if abs(fixed - old) < SMALL:
        effect = "makes no difference to these results"
    else:
        points = f"{abs(fixed - old):.2f} points"
        effect = f"costs these results {points}" if old < fixed else f"gains these results {points}"
    return f"{limit} {effect} (AP-Old versus AP-Fixed); {pool}"


def _two(baseline: str, other: Compared) -> str:
    changes = {title(key): metrics["AP"] for key, metrics in other.protocols.items()}
    better, worse, same = _signs(changes)
    if not better + worse:
        return f"{other.name} and {baseline} do not differ significantly under {_listed(same)}."
    word, names = ("better", better) if better else ("worse", worse)
    text = f"{other.name} is significantly {word} than {baseline} under {_listed(names)}"
    if better and worse:
        text += f", but worse under {_listed(worse)}"
    if same:
        text += f"; the difference under {_listed(same)} is not significant"
    return f"{text}."


def _several(comparison: Comparison) -> str:
    changes = {one.name: one.protocols["fixed"]["AP"] for one in comparison.compared}
    better, worse, same = _signs(changes)
    parts = [
        f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {word}"
        for word, names in (
            ("significantly better", better),
            ("significantly worse", worse),
            ("not significantly different", same),
        )
        if names
    ]
    return f"Compared with {comparison.baseline} under AP-Fixed, {_listed(parts)}."


def _signs(changes: Mapping[str, Difference]) -> tuple[list[str], list[str], list[str]]:
    """Which differences are significant gains, which are significant losses, and which neither."""
    better = [name for name, one in changes.items() if one.holds and one.delta > 0]
    worse = [name for name, one in changes.items() if one.holds and one.delta < 0]
    return better, worse, [name for name in changes if name not in better + worse]


def _listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def calibration_words(study: Study) -> str:
    """How scores were calibrated, and what that did; or why they were not."""
    calibration = study.calibration
    if calibration is None:
        return f"The scores of {study.name} were not calibrated: {study.uncalibrated}"
    error = [100 * curves["all"].mean_gap for curves in (calibration.before, calibration.after)]
    return (
        f"{study.name}: {calibration.title}. A detection is correct at IoU "
        f"{calibration.iou_threshold:g} or above. Calibration changes the mean gap between scores "
        f"and the share of correct detections (ECE) from {error[0]:.2f} to {error[1]:.2f} points, "
        f"and AP-Pool from {100 * calibration.pool_before['AP']:.2f} to "
        f"{100 * calibration.pool_after['AP']:.2f}."
    )


def score_words(report: Report) -> str:
    """What the figure of scores shows."""
    budget = report.studies[0].evaluation["old"].budget
    says = (
        f"Scores of the best {budget_words(budget)}. Boxes span the middle half, whiskers all but "
        "the lowest and highest 5%; dashed lines are means."
    )
    if all(study.levels.relative for study in report.studies):
        says += (
            " Scores are divided by the mean score of frequent classes. If rare classes score "
            "lower, a limit per image drops their detections first."
        )
    return says


def limit_words(report: Report) -> str:
    """What the dashed lines in the figure of limits per image are."""
    if not report.federated:
        return "Here all classes share the limit, unlike in COCO's own protocol."
    caps = dict.fromkeys(study.class_cap for study in report.studies)
    texts = _listed([f"{cap:,}" for cap in caps])
    return f"Dashed: re-ranked, with a class cap of {texts} applied first."


def error_words(report: Report) -> str:
    """What is counted as an error."""
    diagnosis = report.studies[0].diagnosis
    says = (
        f"Incorrect detections by kind of error (at IoU {diagnosis.foreground:g}), and missed "
        f"objects. Budget: the best {budget_words(diagnosis.budget)}."
    )
    if report.federated:
        says += (
            " A class counts only in images where it was verified. Even there, a background "
            "error may lie on an object of an unverified class."
        )
    return says


def picture_words(report: Report) -> str:
    """Which images are shown, and what is drawn on them."""
    chosen = (
        "The images you selected"
        if report.images_selected
        else "The images whose top detections change most with calibration (not typical images)"
    )
    return f"{chosen}, each with its {TOP} highest-scoring detections."


def footer(report: Report) -> str:
    """Who made the page and of what."""
    sources = ", ".join(study.evaluation.inputs["detections"] for study in report.studies)
    return f"Made by lvdet {__version__} from {sources}. This page works offline."
