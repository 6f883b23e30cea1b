"""Images with their detections: before and after calibration, and before and after re-ranking."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.bounds import PICTURE_PIXELS
from lvdet.calibration.maps import Floats
from lvdet.errors import InputError
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import LVIS_PER_IMAGE
from lvdet.extras import extra
from lvdet.files.progress import Update
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from lvdet.reporting.mask_outlines import mask_outlines
from lvdet.studies.account import Account, Showing, Shown, outcomes
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import image_rows

#: Detections drawn on an image, and exchanged ones listed beside it at most.
TOP, MOST_EXCHANGED = 20, 10
#: The longer side of a thumbnail in pixels, its JPEG quality, and the most pixels read.
SIDE, QUALITY = 640, 80
#: Images shown by default, and at most.
SHOWN, MOST_SHOWN = 8, 50


@dataclass(frozen=True)
class PictureFolder:
    """A folder of images, and the ids of those to show (none: those that change most)."""

    path: Path
    image_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise InputError(f"{self.path}: no such image folder")
        if len(self.image_ids) > MOST_SHOWN:
            raise InputError(
                f"{len(self.image_ids):,} images requested, but at most {MOST_SHOWN} can be shown"
            )

    def find(self, file_name: str) -> Path | None:
        """The file of that name, or of its last part, in the folder or one of its subfolders; never
        outside."""
        root, *_ = self._folders
        if not file_name or "\0" in file_name:
            return None
        for name in dict.fromkeys([file_name, file_name.rsplit("/", 1)[-1]]):
            for folder in self._folders:
                path = (folder / name).resolve()
                if path.is_relative_to(root) and path.is_file():
                    return path
        return None

    @cached_property
    def _folders(self) -> list[Path]:
        root = self.path.resolve()
        return [root, *sorted(one for one in root.iterdir() if one.is_dir())]


@dataclass(frozen=True, eq=False)
class Picture:
    """An image with its best detections before and after calibration, and what re-ranking
    with `class_cap` detections per class dropped and added, best first.

    thumbnail: JPEG of at most SIDE pixels a side
    width, height: of the image that the boxes are of
    dropped_count, added_count: how many there were; the first ones are kept
    outlines: paths of the masks of all these, by row, where masks were compared
    """

    image_id: int
    file_name: str
    width: int
    height: int
    thumbnail: bytes
    before: list[Shown]
    after: list[Shown]
    dropped: list[Shown]
    added: list[Shown]
    dropped_count: int
    added_count: int
    class_cap: int
    outlines: dict[int, str]


def take_pictures(
    pair: Pair,
    rescored: tuple[Floats, NDArray[np.int8]] | None,
    folder: PictureFolder,
    *,
    class_cap: int,
    update: Update | None = None,
) -> list[Picture]:
    """Pictures of a pair whose results are whole rows; `rescored` ([N]) are the calibrated scores
    and what each detection is with them, `class_cap` is the class cap to re-rank with."""
    gt, ranking = pair.gt, pair.results.ranking
    sides = [_Side(pair, ranking.score, outcomes(pair.matches, len(ranking)))]
    if rescored is not None:
        sides.append(_Side(pair, *rescored))
    limit = PerImage(LVIS_PER_IMAGE)
    account = Account(pair, [limit], [PerClass(class_cap), limit])
    image = image_rows(gt, ranking)[ranking.image]
    found = []
    chosen = _chosen(pair, sides, image, folder)
    for done, (row, thumbnail, size) in enumerate(chosen):
        rows = np.flatnonzero(image == row)
        exchanged = account.image(int(gt.images.ids[row]))
        width, height = int(gt.images.width[row]), int(gt.images.height[row])
        if width <= 0 or height <= 0:  # the annotations do not say
            width, height = size
        best = [side.best(rows) for side in sides]
        dropped, added = (
            list(one[:MOST_EXCHANGED]) for one in (exchanged.dropped, exchanged.added)
        )
        drawn = [*best[0], *best[-1], *dropped, *added]
        found.append(
            Picture(
                int(gt.images.ids[row]),
                gt.images.file_names[row],
                width,
                height,
                thumbnail,
                best[0],
                best[-1] if len(best) > 1 else [],
                dropped,
                added,
                len(exchanged.dropped),
                len(exchanged.added),
                class_cap,
                _outlines(pair, drawn, height, width),
            )
        )
        if update is not None:
            update(done + 1, len(chosen))
    return found


def _outlines(pair: Pair, drawn: Sequence[Shown], height: int, width: int) -> dict[int, str]:
    """Paths of the masks of some detections, by row; none where boxes were compared."""
    masks = pair.results.detections.masks
    if pair.iou == "bbox" or masks is None:
        return {}
    rows = sorted({item.row for item in drawn})
    paths = mask_outlines(masks[np.array(rows, dtype=np.int64)], height, width)
    return dict(zip(rows, paths, strict=True))


class _Side:
    """The detections of a pair under one set of scores."""

    def __init__(self, pair: Pair, score: Floats, outcome: NDArray[np.int8]) -> None:
        self.ranking = replace(pair.results.ranking, score=score)
        self.outcome = outcome
        self._show = Showing(pair.gt, pair.results.detections.with_scores(score), outcome)

    def best(self, rows: NDArray[np.int64]) -> list[Shown]:
        """The best of some rows."""
        order = np.argsort(-self.ranking.score[rows], kind="stable")[:TOP]
        return self._show.rows(rows[order])


def _chosen(
    pair: Pair,
    sides: Sequence[_Side],
    image: NDArray[np.int32],
    folder: PictureFolder,
) -> list[tuple[int, bytes, tuple[int, int]]]:
    """Rows of images, with their thumbnails and sizes: the requested ones, or those where
    calibration exchanges the most of the best detections that count. Of the latter, missing and
    damaged images are skipped."""
    gt = pair.gt
    if folder.image_ids:
        rows = _asked(gt, folder.image_ids)
        return [(row, *_thumbnail(_required(gt, row, folder))) for row in rows]
    top: list[Budget] = [PerImage(TOP)]
    kept = [apply(top, side.ranking) for side in sides]
    masks = [np.ones(len(image), dtype=bool) if keep is None else keep for keep in kept]
    judged = sides[0].outcome > 0
    changed = np.bincount(image[(masks[0] ^ masks[-1]) & judged], minlength=len(gt.images))
    detected = np.bincount(image, minlength=len(gt.images))
    found: list[tuple[int, bytes, tuple[int, int]]] = []
    for row in np.lexsort((-detected, -changed)).tolist():
        if len(found) == SHOWN:
            break
        path = folder.find(gt.images.file_names[row])
        if path is not None:
            with suppress(InputError):
                found.append((row, *_thumbnail(path)))
    if not found:
        raise InputError(f"{folder.path}: contains no image of {gt.source}")
    return found


def _asked(gt: GroundTruth, image_ids: Sequence[int]) -> list[int]:
    rows = []
    for image_id in dict.fromkeys(image_ids):
        known = np.flatnonzero(gt.images.ids == image_id)
        if not len(known):
            raise InputError(f"image {image_id} is not in {gt.source}")
        rows.append(int(known[0]))
    return rows


def _required(gt: GroundTruth, row: int, folder: PictureFolder) -> Path:
    path = folder.find(gt.images.file_names[row])
    if path is None:
        name = gt.images.file_names[row]
        raise InputError(f"{folder.path}: image {gt.images.ids[row]} ({name!r}) not found")
    return path


def _thumbnail(path: Path) -> tuple[bytes, tuple[int, int]]:
    """A small JPEG of an image, and the image's own width and height."""
    image_module = _pillow()
    try:
        with image_module.open(path) as image:
            size = image.size
            if size[0] * size[1] > PICTURE_PIXELS:
                raise InputError(
                    f"{path}: {size[0]:,} x {size[1]:,} pixels, expected at most "
                    f"{PICTURE_PIXELS:,} in total to draw it"
                )
            image.draft("RGB", (SIDE, SIDE))
            small = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError) as error:
        raise InputError(f"{path}: not a readable image ({error})") from None
    small.thumbnail((SIDE, SIDE))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=QUALITY, optimize=True)
    return out.getvalue(), size


def _pillow() -> Any:
    with extra("report", "showing images"):
        from PIL import Image
    return Image
