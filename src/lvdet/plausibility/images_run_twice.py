"""Images that two runs of a detector both wrote, with nearly the same detections: a padded sampler
puts an image into another batch, where it is resized and rounded a little differently."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_sample import boxes_of
from lvdet.tables.results import Ranking, Results

#: Number of images used.
_IMAGES = 200
#: The overlap from which two detections of one class count as the same thing.
_IOU = 0.75
#: Two runs show the same image if the earlier one has this share of the later one's boxes, …
_SHARE = 0.7
#: … and at least this many, over all images.
_FEWEST = 12


def images_run_twice(results: Results, repeated: NDArray[np.int32]) -> Finding | None:
    """Whether images occur in two separate stretches of the file with nearly the same detections.
    `repeated` are the images whose rows repeat exactly, as rows of the ranking's image ids."""
    ranking = results.ranking
    first, later = _separate_runs(ranking)
    other = ~np.isin(ranking.image[first[:, 0]], repeated)
    first, later = first[other], later[other]
    same, boxes = [], 0
    for begin, again in zip(first[:_IMAGES].tolist(), later[:_IMAGES].tolist(), strict=True):
        found, of = _coinciding(results, np.arange(*begin), np.arange(*again))
        if found and found >= _SHARE * of:
            same.append(int(ranking.image_ids[ranking.image[begin[0]]]))
            boxes += found
    if boxes < _FEWEST:
        return None
    looked_at = min(len(first), _IMAGES)
    among = f" of {looked_at:,} checked" if len(first) > _IMAGES else ""
    are = "is" if len(same) == 1 else "are"
    return Finding(
        "images-run-twice",
        len(same),
        {"images": len(same), "looked_at": looked_at, "first_image_id": same[0]},
        f"{len(same):,} image{'s' * (len(same) > 1)}{among} {are} in {results.source} twice, in "
        f"separate places with nearly the same boxes (first image_id {same[0]}): the later ones "
        "count as incorrect.",
        "Write each image once: turn off the sampler's padding, or keep one of the runs.",
    )


def _separate_runs(ranking: Ranking) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[K, 2] and [K, 2] begin and end of the first two stretches of rows of each image that has
    more than one, in a file that goes image by image; none in another."""
    image, none = ranking.image, np.zeros((0, 2), dtype=np.int64)
    if not len(image):
        return none, none
    begins = np.append(0, np.flatnonzero(image[1:] != image[:-1]) + 1)
    if len(begins) > 2 * len(ranking.image_ids):
        return none, none
    runs = np.stack([begins, np.append(begins[1:], len(image))], axis=1)
    of = image[begins]
    order = np.argsort(of, kind="stable")
    follows = np.append(False, of[order[1:]] == of[order[:-1]])
    second = follows & ~np.append(False, follows[:-1])
    place = np.flatnonzero(second)
    return runs[order[place - 1]], runs[order[place]]


def _coinciding(
    results: Results, first: NDArray[np.int64], later: NDArray[np.int64]
) -> tuple[int, int]:
    """How many of the later rows with a box coincide with an earlier one of their class, and out of
    how many."""
    box, category = boxes_of(results, first), results.ranking.category[first]
    again, kind = boxes_of(results, later), results.ranking.category[later]
    there, known = ~np.isnan(box[:, 0]), ~np.isnan(again[:, 0])
    box, category, again, kind = box[there], category[there], again[known], kind[known]
    if not len(box) or not len(again):
        return 0, len(again)
    same = kind[:, None] == category
    row, target = np.nonzero(same)
    low = np.maximum(again[row, :2], box[target, :2])
    high = np.minimum(again[row, :2] + again[row, 2:], box[target, :2] + box[target, 2:])
    inner = np.prod(np.maximum(high - low, 0), axis=1)
    outer = np.prod(again[row, 2:], axis=1) + np.prod(box[target, 2:], axis=1) - inner
    found = np.zeros(len(again), dtype=bool)
    found[row[(inner >= _IOU * outer) & (outer > 0)]] = True
    return int(found.sum()), len(again)
