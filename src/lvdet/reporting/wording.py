"""The sentences of a report that depend on its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lvdet import __version__
from lvdet.reporting.detection_pictures import TOP
from lvdet.reporting.detector_study import Study

if TYPE_CHECKING:
    from lvdet.reporting.report import Report


def facts(report: Report) -> str:
    """What was evaluated, in a line."""
    inputs = report.studies[0].evaluation.inputs
    kind = {"bbox": "boxes", "segm": "masks", "boundary": "mask boundaries"}[inputs["iou"]]
    found = " and ".join(
        f"{study.evaluation.inputs['detection_count']:,}" for study in report.studies
    )
    return (
        f"{inputs['ground_truth']}: {inputs['images']:,} images, {inputs['classes']:,} classes, "
        f"{inputs['annotations']:,} objects; {found} detections, compared by {kind}"
    )


def calibration_words(study: Study) -> str:
    """How scores were calibrated, and what that did; or why they were not."""
    calibration = study.calibration
    if calibration is None:
        return f"The scores of {study.name} were not calibrated: {study.uncalibrated}"
    error = [100 * curves["all"].mean_gap for curves in (calibration.before, calibration.after)]
    return (
        f"{study.name}: {calibration.title}. A detection is correct at IoU "
        f"{calibration.iou_threshold:g} or above. The mean gap between scores and the share of "
        f"correct detections (ECE) goes from {error[0]:.2f} to {error[1]:.2f} points, AP-Pool from "
        f"{100 * calibration.pool_before['AP']:.2f} to {100 * calibration.pool_after['AP']:.2f}."
    )


def score_words(report: Report) -> str:
    """What the figure of scores shows."""
    budget = report.studies[0].evaluation["old"].budget
    says = (
        f"Boxes span the middle half of the detections that {budget} keeps, whiskers all but the "
        "lowest and highest 5%; dashed lines are means."
    )
    if all(study.levels.relative for study in report.studies):
        says += (
            " Scores are divided by the mean score of frequent classes. Where rare classes score "
            "lower, a limit per image drops them first."
        )
    return says


def limit_words(report: Report) -> str:
    """What the dashed lines in the figure of limits per image are."""
    if not report.federated:
        return "The limit applies to all classes of an image together, unlike COCO's own."
    caps = dict.fromkeys(study.class_cap for study in report.studies)
    texts = " and ".join(f"{cap:,}" for cap in caps)
    return f"Dashed: re-ranked, keeping only the best {texts} of each class first."


def error_words(report: Report) -> str:
    """What is counted as an error."""
    diagnosis = report.studies[0].diagnosis
    says = (
        f"The detections that {diagnosis.budget} keeps and that are incorrect at IoU "
        f"{diagnosis.foreground:g}, by cause, and the objects that no detection finds."
    )
    if report.federated:
        says += (
            " A class counts only in images where it was verified: a detection of an object that "
            "nobody annotated may still be reported as background."
        )
    return says


def picture_words(report: Report) -> str:
    """Which images are shown, and what is drawn on them."""
    chosen = (
        "The requested images"
        if report.images_asked_for
        else "The images whose top detections calibration changes most (not typical images)"
    )
    return f"{chosen}, with the {TOP} highest-scoring detections."


def footer(report: Report) -> str:
    """Who made the page and of what."""
    sources = ", ".join(study.evaluation.inputs["detections"] for study in report.studies)
    return f"Made by lvdet {__version__} from {sources}. This page needs no network."
