"""What partials need to know about annotations."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lvdet.matching.match import AREAS, to_be_found
from lvdet.plausibility.image_sample import Objects
from lvdet.tables.drawn_images import drawn_images
from lvdet.tables.ground_truth import GroundTruth, ImageLists

#: Bytes of a digest.
DIGEST = 16
_KNOWN: WeakKeyDictionary[GroundTruth, TruthFacts] = WeakKeyDictionary()
_KNOWN_MASKS: WeakKeyDictionary[GroundTruth, str] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class TruthFacts:
    """Facts about annotations.

    digest:      of everything that an evaluation of boxes uses: equal for equal annotations
    drawn_place: [I] int32, the place of each image in the order in which images are sampled; -1 for
                 images without objects, which samples leave out
    """

    digest: str
    drawn_place: NDArray[np.int32]


def facts_of(gt: GroundTruth) -> TruthFacts:
    """The facts about annotations, remembered for as long as the table lives."""
    if gt not in _KNOWN:
        _KNOWN[gt] = TruthFacts(_digest(gt), _drawn_place(gt))
    return _KNOWN[gt]


def mask_digest_of(gt: GroundTruth) -> str:
    """The digest of the annotations' masks, remembered likewise; "" without masks."""
    if gt not in _KNOWN_MASKS:
        _KNOWN_MASKS[gt] = _mask_digest(gt)
    return _KNOWN_MASKS[gt]


def class_digest(federated: bool) -> str:
    """In place of a digest, for partials that carry the objects of their images themselves."""
    return f"own, {'lvis' if federated else 'coco'}"


def objects_of_cells(
    gt: GroundTruth, exact_lvis: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """The cells (images and classes) with annotations: [G] image and class rows, and [G, A + 1] how
    many objects of each there are to find in each area range, and how many annotations."""
    key = gt.image.astype(np.int64) * len(gt.categories) + gt.category
    cells, cell = np.unique(key, return_inverse=True)
    low, high = (np.array(ends) for ends in zip(*AREAS.values(), strict=True))
    area = gt.area[:, None]
    inside = to_be_found(gt, exact_lvis)[:, None] & (area >= low) & (area <= high)
    counts = np.zeros((len(cells), len(AREAS) + 1), dtype=np.int32)
    np.add.at(counts, cell.reshape(-1), np.append(inside, np.ones_like(area, dtype=bool), axis=1))
    classes = max(len(gt.categories), 1)
    return (cells // classes).astype(np.int32), (cells % classes).astype(np.int32), counts


def no_lists(images: int) -> ImageLists:
    """No class is listed for any image."""
    return ImageLists(np.zeros(images + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))


def _digest(gt: GroundTruth) -> str:
    digest = blake2b(digest_size=DIGEST)
    for text in (str(gt.federated), *gt.categories.names, *gt.categories.frequency.tolist()):
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    lists = [lists for lists in (gt.negative, gt.not_exhaustive) if lists is not None]
    for column in (
        *(gt.images.ids, gt.images.height, gt.images.width, gt.categories.ids),
        *(gt.id, gt.image, gt.category, gt.box, gt.area, gt.ignore, gt.crowd),
        *(column for one in lists for column in (one.offsets, one.category)),
    ):
        _update(digest, column)
    return digest.hexdigest()


def _mask_digest(gt: GroundTruth) -> str:
    if gt.masks is None:
        return ""
    digest = blake2b(digest_size=DIGEST)
    for column in gt.masks.columns:
        _update(digest, column)
    return digest.hexdigest()


def _drawn_place(gt: GroundTruth) -> NDArray[np.int32]:
    images = len(gt.images)
    place = np.empty(images, dtype=np.int32)
    place[drawn_images(images)] = np.arange(images, dtype=np.int32)
    place[Objects.of(gt).counts == 0] = -1
    return place


def _update(digest: blake2b, column: NDArray[np.generic]) -> None:
    digest.update(len(column).to_bytes(8, "little"))
    digest.update(np.ascontiguousarray(column).data)
