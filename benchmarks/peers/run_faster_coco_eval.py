"""faster-coco-eval: `COCO` and `COCOeval_faster`, evaluate and accumulate in one C++ call.

Its LVIS mode has no cap over the whole image, only one per image and class: it
agrees with the reference where no image has more than 300 detections.
"""

from __future__ import annotations

from collections.abc import Mapping

from measure import Job, main

FREQUENCIES = ("APr", "APc", "APf")
STATS = ("AP", "AP50", "AP75", "APs", "APm", "APl")
AR_INDEX = {"lvis": 6, "coco": 8}


def run(job: Job) -> Mapping[str, float]:
    from faster_coco_eval import COCO, COCOeval_faster

    with job.phase("read"):
        gt = COCO(job.ground_truth)
        dt = gt.loadRes(job.detections)
    with job.phase("evaluate"):
        evaluation = COCOeval_faster(gt, dt, job.iou, lvis_style=job.lvis)
        if job.lvis:
            evaluation.params.maxDets = [300]
        evaluation.run()
    stats = evaluation.all_stats
    metrics = dict(zip(STATS, stats, strict=False)) | {"AR": stats[AR_INDEX[job.format]]}
    if job.lvis:
        metrics |= dict(zip(FREQUENCIES, stats[-len(FREQUENCIES) :], strict=True))
    return metrics


if __name__ == "__main__":
    main("faster-coco-eval", "faster_coco_eval", run)
