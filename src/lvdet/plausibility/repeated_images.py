"""Images whose detections occur more than once, as padded distributed samplers leave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.images_run_twice import images_run_twice
from lvdet.tables.description import counted
from lvdet.tables.results import Results
from lvdet.threads import thread_count

#: A repeated image is not a coincidence if this many different rows with boxes all recur, …
_BOXED = 4
#: … or this many rows whose boxes were not kept.
_UNBOXED = 12


def repeated_rows(results: Results) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of the ranking that repeat earlier ones, in images all of whose rows recur equally
    often; and those images, as rows of its `image_ids`."""
    ranking = results.ranking
    found = _native.repeated_rows(
        ranking.image,
        ranking.category,
        ranking.score,
        results.detections.box,
        results.rows,
        len(ranking.image_ids),
        thread_count(),
    )
    distinct, boxed, runs = found["distinct"], found["boxed"], found["runs"]
    evident = (boxed >= _BOXED) | (distinct >= _UNBOXED)
    apart = runs == found["times"]  # separate stretches of a file in image order
    if evident.any():
        taken = evident | apart | (runs == 0)
    else:  # few detections per image
        taken = apart & (int(distinct[apart].sum()) >= _BOXED) & (int(boxed[apart].sum()) > 1)
    rows = found["rows"][np.repeat(taken, np.diff(found["offsets"]))]
    return rows, found["image"][taken]


def without_repeats(results: Results) -> tuple[Results, int]:
    """The results without rows that repeat earlier ones, and their number."""
    rows, _ = repeated_rows(results)
    if not len(rows):
        return results, 0
    ranking = results.ranking
    keep = np.ones(len(ranking), dtype=bool)
    keep[rows] = False
    of_image = np.bincount(ranking.image[rows], minlength=len(ranking.image_ids))
    of_class = np.bincount(ranking.category[rows], minlength=len(ranking.category_ids))
    left = replace(
        results.where(keep),
        total=results.total - len(rows),
        per_image=results.per_image - of_image,
        per_class=results.per_class - of_class,
    )
    return left, len(rows)


def repeated_images(results: Results) -> list[Finding]:
    """Whether images occur more than once, exactly or nearly."""
    rows, images = repeated_rows(results)
    twice = images_run_twice(results, images)
    exact = [] if not len(images) else [_exact_repeats(results, rows, images)]
    return exact if twice is None else [*exact, twice]


def _exact_repeats(results: Results, rows: NDArray[np.int32], images: NDArray[np.int32]) -> Finding:
    ids = results.ranking.image_ids[images]
    have = "has its detections" if len(images) == 1 else "have their detections"
    return Finding(
        "repeated-images",
        len(images),
        {"images": len(images), "detections": len(rows), "first_image_id": int(ids[0])},
        f"{counted(len(images), 'image')} of {results.source} {have} more than once "
        f"(first image_id {ids[0]}; {counted(len(rows), 'repeated detection')}): "
        "repeats count as incorrect.",
        "Pass --drop-duplicates to leave them out, or turn off the sampler's padding.",
    )
