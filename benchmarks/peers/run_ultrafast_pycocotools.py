"""ultrafast-pycocotools: `COCO`, `loadRes` by path and `COCOeval`, in Rust on every CPU."""

from __future__ import annotations

from collections.abc import Mapping

from measure import Job, main


def run(job: Job) -> Mapping[str, float]:
    from ultrafast_pycocotools import COCO, COCOeval

    with job.phase("read"):
        gt = COCO(job.ground_truth)
        dt = gt.loadRes(job.detections)
    with job.phase("evaluate"):
        evaluation = COCOeval(gt, dt, job.iou, lvis_style=job.lvis)
        evaluation.run()
    stats = evaluation.stats_as_dict
    return {**stats, "AR": stats["AR@300" if job.lvis else "AR@100"]}


if __name__ == "__main__":
    main("ultrafast-pycocotools", "ultrafast_pycocotools", run)
