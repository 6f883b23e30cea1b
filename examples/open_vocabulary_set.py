"""What the examples of open-vocabulary detectors share: the set they run on, and their last lines.

With LVIS's files it is LVIS (or minival); otherwise lvdet draws a small set.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import lvdet
from lvdet.images.image_set import Settings, make_image_set


@dataclass(frozen=True)
class ImageSet:
    """Annotations, and where each image is."""

    annotations: Path
    gt: lvdet.GroundTruth
    paths: dict[int, Path]

    @property
    def prompts(self) -> list[str]:
        """The names of the classes in the order of their ids, as text."""
        return [name.replace("_", " ") for name in self.gt.categories.names]


def arguments(description: str, weights: str) -> argparse.ArgumentParser:
    """The options of both examples."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--weights", help=f"such as {weights}; random ones by default")
    parser.add_argument("--annotations", type=Path, help="such as lvis_v1_minival.json")
    parser.add_argument("--images", type=Path, help="the folder with train2017 and val2017")
    parser.add_argument("--output", type=Path, help="results file to keep")
    return parser


def image_set(annotations: Path | None, images: Path | None) -> ImageSet:
    """The set that is given, or a drawn one."""
    if annotations is None:
        folder = Path(tempfile.mkdtemp())
        make_image_set(folder, Settings(images=8, val_images=6, classes=30, size=96))
        annotations, images = folder / "annotations" / "val.json", folder / "val"
    if images is None:
        raise SystemExit("--annotations needs --images, the folder of their images")
    gt = lvdet.read_ground_truth(annotations, masks=False)
    paths = {}
    for row, image_id in enumerate(gt.images.ids.tolist()):
        name = gt.images.file_names[row]
        if "/" not in name:  # LVIS says the folder only in its address
            address = gt.images.addresses[row]
            name = "/".join(address.split("/")[-2:]) if address else name
        paths[image_id] = images / name
    return ImageSet(annotations, gt, paths)


def print_chain(limits: Iterable[tuple[str, str]]) -> None:
    """Each limit that detections pass on their way to AP, first to last."""
    print("budget chain, in order:")
    for number, (what, limit) in enumerate(limits, 1):
        print(f"  {number}. {what}: {limit}")
