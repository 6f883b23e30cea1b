"""vernier: the grid path for LVIS, `Evaluator.evaluate` for COCO, strict parity.

Its default is one thread; `num_threads=0` means every CPU, as the others do by
default. It parses the detections inside evaluate, so "read" holds only the
annotations and the bytes of the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from measure import Job, main

LVIS_STATS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR")
COCO_STATS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR")
ALL_CPUS = 0


def run(job: Job) -> Mapping[str, float]:
    return _lvis(job) if job.lvis else _coco(job)


def _lvis(job: Job) -> Mapping[str, float]:
    # `Evaluator.evaluate` has no LVIS summary in this version: it rejects max_dets=(300,).
    from vernier import instance

    with job.phase("read"):
        gt = instance.CocoDataset.from_lvis_json(Path(job.ground_truth).read_bytes())
        dt = Path(job.detections).read_bytes()
    with job.phase("evaluate"):
        bbox = job.iou == "bbox"
        evaluate = instance.evaluate_bbox_grid if bbox else instance.evaluate_segm_grid
        grid = evaluate(
            gt,
            dt,
            parity_mode="strict",
            max_dets_per_image=300,
            use_cats=True,
            num_threads=ALL_CPUS,
        )
        summary = grid.accumulate([300]).summarize_lvis(gt, [300])
    return dict(zip(LVIS_STATS, summary.stats, strict=False))


def _coco(job: Job) -> Mapping[str, float]:
    from vernier.instance import Bbox, CocoDataset, Evaluator, Segm

    with job.phase("read"):
        gt = CocoDataset.from_json(Path(job.ground_truth).read_bytes())
        dt = Path(job.detections).read_bytes()
    with job.phase("evaluate"):
        kernel = Segm() if job.iou == "segm" else Bbox()
        evaluator = Evaluator(iou=kernel, parity_mode="strict")
        summary = evaluator.evaluate(gt, dt, num_threads=ALL_CPUS)
    return dict(zip(COCO_STATS, summary.stats, strict=False))


if __name__ == "__main__":
    main("vernier", "vernier", run)
