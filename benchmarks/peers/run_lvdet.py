"""lvdet: its Python API from paths. All three protocols from one match, all of the paper's tables
of limits and 200 rows more, or a report (the peers give AP-Old only)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from measure import METRICS, Job, defined, main

FREQUENCIES = ("APr", "APc", "APf")
PROTOCOLS = ("old", "fixed", "pool")
#: With both orders, 200 rows.
PER_IMAGE = (30, 60, 90, 120, 150, 180, 210, 240, 270, 300)
PER_CLASS = (100, 200, 500, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 20_000)


def run(job: Job) -> Mapping[str, float | None]:
    import lvdet

    @contextmanager
    def progress(_: str, *, unit: str = "bytes") -> Iterator[None]:
        with job.phase("read" if unit == "bytes" else unit):
            yield None

    with job.phase("import"):  # A name loads its modules when it is first used.
        call = getattr(lvdet, {"tables": "sweep"}.get(job.do, job.do))
    options = {"iou": job.iou, "progress": progress}
    with job.phase("all"):
        if job.do == "tables":
            grid = {"dets_per_image": PER_IMAGE, "dets_per_class": PER_CLASS, "order": "both"}
            swept = call(job.ground_truth, job.detections, paper="all", **grid, **options)
        elif job.do == "report":
            report = call(job.ground_truth, [job.detections], **options)
            with tempfile.TemporaryDirectory() as folder:
                report.save(Path(folder, "report.html"))
            result = report.studies[0].evaluation
        else:
            result = call(job.ground_truth, job.detections, **options)
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
