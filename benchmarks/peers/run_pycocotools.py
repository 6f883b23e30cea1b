"""pycocotools, the reference: `COCO`, `loadRes` and `COCOeval`."""

from __future__ import annotations

from collections.abc import Mapping

from measure import Job, main

STATS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR")


def run(job: Job) -> Mapping[str, float]:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    if job.lvis:
        raise SystemExit("pycocotools evaluates COCO files only, not LVIS ones")
    with job.phase("read"):
        gt = COCO(job.ground_truth)
        dt = gt.loadRes(job.detections)
    with job.phase("evaluate"):
        evaluation = COCOeval(gt, dt, job.iou)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return dict(zip(STATS, evaluation.stats, strict=False))


if __name__ == "__main__":
    main("pycocotools", "pycocotools.cocoeval", run)
