"""A stream of updates; as a script, prints the peak memory of a quarter and of all."""

from __future__ import annotations

import resource
import sys

import numpy as np

import lvdet


def bounded_metric() -> lvdet.DetectionMetric:
    """A metric whose budgets bound its rows, however many images there are."""
    return lvdet.DetectionMetric(protocols=["fixed", "pool"], dets_per_class=200)


def update_often(metric: lvdet.DetectionMetric, updates: range, images: int) -> None:
    """Updates of one image each, whose ids come again after so many."""
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 90, (1000, 8, 2))
    box = np.concatenate([corner, corner + rng.integers(4, 40, (1000, 8, 2))], axis=2)
    label, score = rng.integers(0, 20, (1000, 8)), rng.random((1000, 8))
    for update in updates:
        at = update % 997
        prediction = {"boxes": box[at], "labels": label[at], "scores": score[at]}
        target = {"boxes": box[at][:2], "labels": label[at][:2], "image_id": update % images}
        metric.update([prediction], [target])


if __name__ == "__main__":
    updates, images = map(int, sys.argv[1:])
    metric = bounded_metric()
    update_often(metric, range(updates // 4), images)
    metric.compute()
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    update_often(metric, range(updates // 4, updates), images)
    metric.compute()
    print(1024 * first, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
