"""hotcoco: `COCO`, `load_res` by path and `COCOeval`, all in its Rust core on every CPU."""

from __future__ import annotations

from collections.abc import Mapping

from measure import Job, main


def run(job: Job) -> Mapping[str, float]:
    from hotcoco import COCO, COCOeval

    with job.phase("read"):
        gt = COCO(job.ground_truth)
        dt = gt.load_res(job.detections)
    with job.phase("evaluate"):
        evaluation = COCOeval(gt, dt, job.iou, lvis_style=job.lvis)
        evaluation.run()
    results = evaluation.get_results()
    return {**results, "AR": results["AR@300" if job.lvis else "AR100"]}


if __name__ == "__main__":
    main("hotcoco", "hotcoco", run)
