"""The simulated files of the workloads, made once and kept in the cache.

Run as a script it makes one dataset: `run.py` does that in a process of its own,
because a child's measured peak would otherwise start from the maker's memory.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lvdet.tables.detections import Detections
    from lvdet.tables.ground_truth import GroundTruth

#: COCO's and LVIS's image ids have six digits, for the most part.
FIRST_ID = 100_000
#: Significant digits of a score: 3 to 17, and 17 for half of the scores.
FEWEST_DIGITS, MOST_DIGITS = 3, 17
#: Scores of the detections that only fill an image up are below this.
UNLIKELY = 1e-3
#: Rows formatted at a time.
BLOCK = 1 << 16


@dataclass(frozen=True)
class Dataset:
    """The parameters of one simulated ground truth and its detections.

    objects_per_image, verified_share: as for `lvdet.simulate`
    numbers: "short", boxes with two decimals and scores with five, as lvdet simulates and writes
        them; "mixed", boxes with two to four decimals and scores of 3 to 17 digits; "long",
        the same scores, and boxes with all digits that a float64 has
    layout: "rows", a record per line as Python's json would write it, or "pretty", indented and
        with the keys in another order
    """

    style: str
    images: int
    classes: int
    dets_per_image: int
    masks: bool = False
    seed: int = 0
    objects_per_image: float | None = None
    verified_share: float | None = None
    numbers: str = "short"
    layout: str = "rows"

    @property
    def key(self) -> str:
        kind = "segm" if self.masks else "bbox"
        size = f"{self.images}x{self.dets_per_image}-{self.classes}c"
        objects = "" if self.objects_per_image is None else f"-{self.objects_per_image}o"
        share = "" if self.verified_share is None else f"-verified{self.verified_share}"
        text = f"{self.numbers}-{self.layout}-seed{self.seed}"
        return f"{self.style}-{kind}-{size}{objects}{share}-{text}"

    @property
    def simulation(self) -> dict[str, object]:
        """The arguments for `lvdet.simulate`."""
        own = {"numbers", "layout"}
        names = [field.name for field in dataclasses.fields(self) if field.name not in own]
        decimals = (2, 5) if self.numbers == "short" else (4, MOST_DIGITS)
        return {name: getattr(self, name) for name in names} | {"decimals": decimals}

    def tenth(self) -> Dataset:
        return dataclasses.replace(self, images=max(1, self.images // 10))


def dataset_folder(dataset: Dataset, cache: Path) -> Path:
    """The folder with the dataset's files, made first if the cache does not have it."""
    folder = cache / dataset.key
    if not folder.exists():
        print(f"making {dataset.key}", file=sys.stderr)
        parameters = json.dumps(dataclasses.asdict(dataset))
        subprocess.run([sys.executable, __file__, parameters, str(folder)], check=True)
    return folder


def make(dataset: Dataset, folder: Path) -> None:
    """Write ground_truth.json, detections.json and, for boxes, detections.parquet.

    "short" numbers are written by lvdet as they are made, as JSON only: so may be a file that
    does not fit memory.
    """
    import lvdet
    from lvdet.files.detections_json import write_json
    from lvdet.simulation.simulate import Settings, simulate_in_parts

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    if dataset.numbers == "short":
        gt, parts = simulate_in_parts(Settings(**dataset.simulation))
        write_json(parts, unfinished / "detections.json", lines=False)
    else:
        gt, dt = _with_numbers(dataset, *lvdet.simulate(**dataset.simulation))
        _write_rows(dt, unfinished / "detections.json", dataset.layout)
        if not dataset.masks:
            lvdet.write_detections(dt, unfinished / "detections.parquet")
    lvdet.write_ground_truth(gt, unfinished / "ground_truth.json")
    unfinished.rename(folder)


def _with_numbers(
    dataset: Dataset, gt: GroundTruth, dt: Detections
) -> tuple[GroundTruth, Detections]:
    """The tables with ids, boxes and scores as in the files of real detectors."""
    import numpy as np

    rng = np.random.default_rng(dataset.seed)
    if not gt.federated:
        dt = _nearer_objects(rng, gt, dt)
    images = dataclasses.replace(gt.images, ids=gt.images.ids + FIRST_ID)
    box = dt.box
    if not dataset.masks and dataset.numbers == "mixed":
        scale = 10.0 ** rng.integers(2, 5, (len(dt), 1))
        box = np.rint(box * scale) / scale
    elif not dataset.masks:
        box = box + rng.uniform(0, 1e-4, box.shape)
    return dataclasses.replace(gt, images=images), dataclasses.replace(
        dt, image_ids=dt.image_ids + FIRST_ID, box=box, score=_with_digits(rng, dt.score)
    )


def _nearer_objects(rng: np.random.Generator, gt: GroundTruth, dt: Detections) -> Detections:
    """Half of the detections without a chance moved to classes that their image has, where a
    real detector has most of its own."""
    import numpy as np

    image = np.searchsorted(gt.images.ids, dt.image_ids)[dt.image]
    category = np.searchsorted(gt.categories.ids, dt.category_ids)[dt.category]
    offsets = np.searchsorted(gt.image, np.arange(len(gt.images) + 1))
    count = np.diff(offsets)[image]
    moved = np.flatnonzero((dt.score < UNLIKELY) & (count > 0) & (rng.random(len(dt)) < 0.5))
    object_row = offsets[image[moved]] + rng.integers(0, count[moved])
    category[moved] = gt.category[object_row]
    return dataclasses.replace(
        dt, category=category.astype(np.int32), category_ids=gt.categories.ids
    )


def _with_digits(rng: np.random.Generator, score: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores with 3 to 17 significant digits, by chance."""
    import numpy as np

    score = np.maximum(score, 1e-12)
    digits = rng.integers(FEWEST_DIGITS, 2 * MOST_DIGITS - FEWEST_DIGITS + 1, len(score))
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(score)))
    return np.where(digits < MOST_DIGITS, np.rint(score * scale) / scale, score)


def _write_rows(dt: Detections, path: Path, layout: str) -> None:
    """Write a JSON list as Python's json would, by templates: json itself takes three times as
    long."""
    record, begin, end = (_row, "[", "]\n") if layout == "rows" else (_pretty, "[\n", "\n]\n")
    between = begin
    with path.open("w") as file:
        for first in range(0, len(dt), BLOCK):
            rows = slice(first, first + BLOCK)
            columns = zip(
                dt.image_ids[dt.image[rows]].tolist(),
                dt.category_ids[dt.category[rows]].tolist(),
                dt.box[rows].tolist(),
                dt.score[rows].tolist(),
                _segmentations(dt, rows),
                strict=True,
            )
            file.write(between)
            between = ", " if layout == "rows" else ",\n"
            file.write(between.join(record(*values) for values in columns))
        file.write(end)


def _row(image: int, category: int, box: list[float], score: float, mask: str) -> str:
    return (
        f'{{"image_id": {image}, "category_id": {category}, "bbox": {box!r}, '
        f'"score": {score!r}{mask}}}'
    )


def _pretty(image: int, category: int, box: list[float], score: float, mask: str) -> str:
    x, y, width, height = box
    return (
        f'  {{\n    "score": {score!r},\n    "bbox": [\n      {x!r},\n      {y!r},\n'
        f'      {width!r},\n      {height!r}\n    ],\n    "category_id": {category},\n'
        f'    "image_id": {image}{mask}\n  }}'
    )


def _segmentations(dt: Detections, rows: slice) -> Iterator[str]:
    """The field with each mask, or nothing."""
    if dt.masks is None:
        yield from [""] * len(dt.score[rows])
        return
    masks = dt.masks[rows]
    text, offsets = masks.data.tobytes().decode(), masks.offsets.tolist()
    for row, size in enumerate(zip(masks.height.tolist(), masks.width.tolist(), strict=True)):
        counts = json.dumps(text[offsets[row] : offsets[row + 1]])
        yield f', "segmentation": {{"size": {list(size)}, "counts": {counts}}}'


if __name__ == "__main__":
    make(Dataset(**json.loads(sys.argv[1])), Path(sys.argv[2]))
