"""lvdet: its Python API, all three protocols from one match (the peers give the first only)."""

from __future__ import annotations

from collections.abc import Mapping

from measure import METRICS, Job, defined, main

FREQUENCIES = ("APr", "APc", "APf")
PROTOCOLS = ("old", "fixed", "pool")


def run(job: Job) -> Mapping[str, float | None]:
    import lvdet

    with job.phase("read"):
        gt = lvdet.read_ground_truth(job.ground_truth, masks=job.iou != "bbox")
        dt = lvdet.read_detections(job.detections)
    with job.phase("evaluate"):
        result = lvdet.evaluate(gt, dt, iou=job.iou)
    job.extra["protocols"] = {name: defined(result[name]["AP"]) for name in PROTOCOLS}
    names = METRICS if job.lvis else [name for name in METRICS if name not in FREQUENCIES]
    return {name: result["old"][name] for name in names}


if __name__ == "__main__":
    main("lvdet", "lvdet", run)
