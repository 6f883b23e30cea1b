"""The workloads, and the cached files they are made of.

Run as a script it makes one dataset: `run.py` does that in a process of its own,
because a child's measured peak would otherwise start from the maker's memory.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SLOW_LVIS = ("vernier", "faster-coco-eval", "lvis")


@dataclass(frozen=True)
class Dataset:
    """The parameters of one simulated ground truth and its detections."""

    style: str
    images: int
    classes: int
    dets_per_image: int
    masks: bool = False
    seed: int = 0

    @property
    def key(self) -> str:
        kind = "segm" if self.masks else "bbox"
        size = f"{self.images}x{self.dets_per_image}-{self.classes}c"
        return f"{self.style}-{kind}-{size}-seed{self.seed}"

    def tenth(self) -> Dataset:
        return dataclasses.replace(self, images=max(1, self.images // 10))


@dataclass(frozen=True)
class Workload:
    """A dataset, how it is evaluated and who evaluates it.

    `tools` run by default, `slow_tools` with --all or by name; `lvdet_reads` is the
    kind of detections file lvdet gets, where the peers always get JSON, and `lvdet_does`
    what it works out. `peers_read` is a smaller dataset for the peers, where theirs is
    another; a dataset that is so `large` is made only by name or with --all, and removed.
    """

    name: str
    dataset: Dataset
    tools: tuple[str, ...]
    slow_tools: tuple[str, ...] = ()
    lvdet_reads: str = "json"
    lvdet_does: str = "evaluate"
    peers_read: Dataset | None = None
    large: bool = False

    def dataset_of(self, tool: str) -> Dataset:
        return self.dataset if tool == "lvdet" else self.peers_read or self.dataset

    @property
    def iou(self) -> str:
        return "segm" if self.dataset.masks else "bbox"

    def detections(self, tool: str) -> str:
        return f"detections.{self.lvdet_reads if tool == 'lvdet' else 'json'}"

    def tenth(self) -> Workload:
        peers = self.peers_read
        return dataclasses.replace(
            self,
            dataset=self.dataset.tenth(),
            peers_read=None if peers is None else peers.tenth(),
        )


LVIS_VAL = Dataset("lvis", images=19_809, classes=1_203, dets_per_image=300)
LVIS_99M = dataclasses.replace(LVIS_VAL, dets_per_image=5_000)
LVIS_MASKS = dataclasses.replace(LVIS_VAL, images=2_000, masks=True)
COCO_VAL = Dataset("coco", images=5_000, classes=80, dets_per_image=100)
FAST = ("lvdet", "hotcoco")

WORKLOADS = (
    Workload("lvis-bbox", LVIS_VAL, FAST, SLOW_LVIS),
    Workload("lvis-bbox-parquet", LVIS_VAL, FAST, lvdet_reads="parquet"),
    Workload("lvis-bbox-tables", LVIS_VAL, FAST, lvdet_does="tables"),
    Workload("lvis-bbox-99m", LVIS_99M, FAST, peers_read=LVIS_VAL, large=True),
    Workload("lvis-segm", LVIS_MASKS, FAST, SLOW_LVIS),
    Workload("coco-bbox", COCO_VAL, (*FAST, "pycocotools", "faster-coco-eval"), ("vernier",)),
    Workload("lvis-bbox-1k", dataclasses.replace(LVIS_VAL, images=1_000), (*FAST, *SLOW_LVIS)),
    Workload("lvis-segm-small", dataclasses.replace(LVIS_MASKS, images=200), (*FAST, *SLOW_LVIS)),
)


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

    Detections of more than a few million rows are written as they are made, as JSON only.
    """
    import lvdet
    from lvdet.files.detections_json import write_json
    from lvdet.simulation.simulate import Settings, simulate, simulate_in_parts

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    if dataset.images * dataset.dets_per_image > 10_000_000:
        gt, parts = simulate_in_parts(Settings(**dataclasses.asdict(dataset)))
        write_json(parts, unfinished / "detections.json", lines=False)
    else:
        gt, dt = simulate(**dataclasses.asdict(dataset))
        lvdet.write_detections(dt, unfinished / "detections.json")
        if not dataset.masks:
            lvdet.write_detections(dt, unfinished / "detections.parquet")
    lvdet.write_ground_truth(gt, unfinished / "ground_truth.json")
    unfinished.rename(folder)


if __name__ == "__main__":
    make(Dataset(**json.loads(sys.argv[1])), Path(sys.argv[2]))
