"""The workloads: which files, evaluated how and by whom."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from datasets import Dataset

SLOW_LVIS = ("vernier", "faster-coco-eval", "lvis")


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


LVIS_VAL = Dataset(
    "lvis", images=19_809, classes=1_203, dets_per_image=300, verified_share=0.5, numbers="mixed"
)
LVIS_LONG = dataclasses.replace(LVIS_VAL, numbers="long")
LVIS_PRETTY = dataclasses.replace(LVIS_VAL, layout="pretty")
LVIS_SHORT = dataclasses.replace(LVIS_VAL, verified_share=None, numbers="short")
LVIS_99M = dataclasses.replace(LVIS_SHORT, dets_per_image=5_000)
LVIS_MASKS = dataclasses.replace(LVIS_VAL, images=2_000, masks=True)
COCO_VAL = Dataset(
    "coco", images=5_000, classes=80, dets_per_image=100, objects_per_image=7.6, numbers="mixed"
)
V3DET_VAL = Dataset("coco", images=29_821, classes=13_204, dets_per_image=300, numbers="mixed")
FAST = ("lvdet", "hotcoco", "ultrafast-pycocotools")
SLOW_COCO = ("pycocotools", "faster-coco-eval")

WORKLOADS = (
    Workload("lvis-bbox", LVIS_VAL, FAST, SLOW_LVIS),
    Workload("lvis-bbox-digits", LVIS_LONG, FAST, SLOW_LVIS),
    Workload("lvis-bbox-pretty", LVIS_PRETTY, FAST, SLOW_LVIS),
    Workload("lvis-bbox-parquet", LVIS_VAL, FAST, lvdet_reads="parquet"),
    Workload("lvis-bbox-tables", LVIS_VAL, FAST, lvdet_does="tables"),
    Workload("lvis-bbox-99m", LVIS_99M, FAST, peers_read=LVIS_SHORT, large=True),
    Workload("lvis-segm", LVIS_MASKS, FAST, SLOW_LVIS),
    Workload("coco-bbox", COCO_VAL, (*FAST, *SLOW_COCO), ("vernier",)),
    Workload("v3det", V3DET_VAL, FAST),
    Workload("lvis-bbox-1k", dataclasses.replace(LVIS_VAL, images=1_000), (*FAST, *SLOW_LVIS)),
    Workload("lvis-segm-small", dataclasses.replace(LVIS_MASKS, images=200), (*FAST, *SLOW_LVIS)),
)
