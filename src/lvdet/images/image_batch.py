"""Some images of a set: drawn, written, and described as LVIS describes them."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from lvdet import _native
from lvdet.errors import OutputError
from lvdet.images.scene import Scene, World, compose
from lvdet.images.things import Ints
from lvdet.images.visible import visible_parts

_QUALITY = 90


@dataclass(frozen=True)
class Batch:
    """Images first, first + 1, ... of a part; a part is train (0) or val (1).

    image_id: of the first image
    positive: the classes each image shows, as rows of the vocabulary
    """

    folder: Path
    seed: int
    part: int
    first: int
    image_id: int
    positive: list[Ints]


@dataclass(frozen=True)
class Described:
    """The records of an image and its annotations, before ids are assigned."""

    image: dict[str, Any]
    annotations: list[dict[str, Any]]


def make_batch(world: World, batch: Batch) -> list[Described]:
    """Draws the images and writes their files; image i depends only on the seed, the part and i."""
    described = []
    for place, positive in enumerate(batch.positive):
        key = np.random.SeedSequence(batch.seed, spawn_key=(1, batch.part, batch.first + place))
        scene = compose(np.random.default_rng(key), positive, world)
        image_id = batch.image_id + place
        name = f"{image_id:012d}.jpg"
        _write(scene, batch.folder / name)
        described.append(describe(scene, image_id, name))
    return described


def describe(scene: Scene, image_id: int, name: str) -> Described:
    """The records of LVIS; ids of categories are rows of the vocabulary plus 1."""
    height, width = scene.owner.shape
    parts = visible_parts(scene.owner, len(scene.category))
    data, ends = _native.rle_encode(parts.counts, parts.offsets)
    text, ends = data.tobytes().decode("ascii"), ends.tolist()
    category = (scene.category + 1).tolist()
    box, area = parts.box.tolist(), parts.area.tolist()
    image = {
        "id": image_id,
        "file_name": name,
        "width": width,
        "height": height,
        "neg_category_ids": (scene.negative + 1).tolist(),
        "not_exhaustive_category_ids": (scene.not_exhaustive + 1).tolist(),
    }
    annotations = [
        {
            "image_id": image_id,
            "category_id": category[row],
            "bbox": box[row],
            "area": area[row],
            "segmentation": {"size": [height, width], "counts": text[ends[row] : ends[row + 1]]},
        }
        for row in np.flatnonzero(scene.annotated).tolist()
    ]
    return Described(image, annotations)


def _write(scene: Scene, path: Path) -> None:
    from PIL import Image

    content = BytesIO()
    Image.fromarray(scene.pixels).save(content, format="JPEG", quality=_QUALITY)
    try:
        path.write_bytes(content.getvalue())
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from None
