"""lvis, the reference: `LVISEval` with its own limit of 300 detections per image."""

from __future__ import annotations

from collections.abc import Mapping

from measure import Job, main


def run(job: Job) -> Mapping[str, float]:
    import numpy as np
    from lvis import LVIS, LVISEval, LVISResults

    if not job.lvis:
        raise SystemExit("lvis evaluates LVIS files only, not COCO ones")
    vars(np)["float"] = float  # NumPy 1.24 removed the name, and lvis still asks for it.
    with job.phase("read"):
        gt = LVIS(job.ground_truth)
        dt = LVISResults(gt, job.detections)
    with job.phase("evaluate"):
        evaluation = LVISEval(gt, dt, job.iou)
        evaluation.run()
    results = evaluation.get_results()
    return {**results, "AR": results["AR@300"]}


if __name__ == "__main__":
    main("lvis", "lvis", run)
