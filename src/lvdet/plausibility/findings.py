"""All evidence that a results file is implausible."""

from __future__ import annotations

import numpy as np

from lvdet.plausibility.box_readings import boxes_outside, misread_boxes
from lvdet.plausibility.class_readings import misread_classes
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_readings import misread_images
from lvdet.plausibility.image_sample import Objects, take_sample, verified
from lvdet.plausibility.missing_images import missing_images
from lvdet.plausibility.repeated_images import repeated_images
from lvdet.plausibility.score_readings import misread_scores
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results


@np.errstate(over="ignore", invalid="ignore")  # boxes may be as large as numbers go
def findings(gt: GroundTruth, results: Results, *, iou: str = "bbox") -> list[Finding]:
    """The problems of the results as a whole; only those that are certain.

    Counts are of the whole file. Other readings of boxes, classes, images and scores are tried on
    a sample of the images, the same every time. Boxes are checked only if they are compared.
    """
    if not results.total or not len(gt.images):
        return []
    found = [*repeated_images(results), *missing_images(gt, results)]
    objects = Objects.of(gt)
    sample = take_sample(gt, results, objects)
    if not len(sample.row_image):
        return found
    counting = verified(gt, results, sample)
    boxes = iou == "bbox" and results.detections.boxes_given
    read = misread_boxes(gt, results, counting, objects) if boxes else None
    if read is not None:
        return [*found, read]
    if len(counting.score):
        found += misread_scores(gt, results, counting, objects)
    other = misread_classes(gt, results, sample, objects)
    other = other or misread_images(gt, results, sample, objects)
    if boxes and not other:  # those of other images may lie outside, too
        outside = boxes_outside(gt, results, counting)
        other = [] if outside is None else [outside]
    return [*found, *other]
