"""lvdet: its Python API from paths. All three protocols from one match, or all of the paper's
tables of limits (the peers give AP-Old only)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from measure import METRICS, Job, defined, main

FREQUENCIES = ("APr", "APc", "APf")
PROTOCOLS = ("old", "fixed", "pool")


def run(job: Job) -> Mapping[str, float | None]:
    import lvdet

    @contextmanager
    def progress(_: str) -> Iterator[None]:
        with job.phase("read"):
            yield None

    files = (job.ground_truth, job.detections)
    with job.phase("all"):
        if job.do == "tables":
            swept = lvdet.sweep(*files, paper="all", iou=job.iou, progress=progress)
        else:
            result = lvdet.evaluate(*files, iou=job.iou, progress=progress)
    job.seconds["evaluate"] = job.seconds.pop("all") - job.seconds["read"]
    if job.do == "tables":
        job.extra["rows"] = len(swept.rows)
        (row,) = (r for r in swept.rows if r.table == "image-limit" and r.dets_per_image == 300)
        return row.metrics
    job.extra["protocols"] = {name: defined(result[name]["AP"]) for name in PROTOCOLS}
    names = METRICS if job.lvis else [name for name in METRICS if name not in FREQUENCIES]
    return {name: result["old"][name] for name in names}


if __name__ == "__main__":
    main("lvdet", "lvdet", run)
