"""Times `evaluate` on a local cluster beside one process, on simulated shards.

    python benchmarks/cluster_run.py FOLDER                 # 99 million detections in 16 shards
    python benchmarks/cluster_run.py FOLDER --dets-per-image 312

FOLDER gets gt.json and shards, 100 bytes per detection, unless it has them. The cluster is up, and
its processes have read a shard, before time is taken. Both results have to be the same. The peak
of the process that asks is in MiB: run each size in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import lvdet
from lvdet.cluster import Shards, connected, run_on
from lvdet.files.detections_json import write_json
from lvdet.simulation.simulate import Settings, simulate_in_parts
from lvdet.tables.detections import Detections


def make(folder: Path, images: int, dets_per_image: int, shards: int) -> None:
    """Writes the files of `LVIS_99M` in `workloads.py`, or fewer detections, in shards."""
    (folder / "shards").mkdir(parents=True)
    settings = Settings(images, 1_203, dets_per_image=dets_per_image)
    gt, parts = simulate_in_parts(settings)
    most = -(-images * dets_per_image // shards)
    left: Detections | None = None

    def rows(count: int) -> Iterator[Detections]:
        nonlocal left
        while count and (table := left if left is not None else next(parts, None)) is not None:
            taken = np.arange(min(count, len(table)))
            left = table[np.arange(len(taken), len(table))] if len(taken) < len(table) else None
            count -= len(taken)
            yield table[taken]

    parts = iter(parts)
    for number in range(shards):
        write_json(rows(most), folder / "shards" / f"{number:02}.json", lines=False)
    lvdet.write_ground_truth(gt, folder / "gt.json")


def seconds(work: Callable[[], lvdet.Evaluation]) -> tuple[float, dict[str, object]]:
    begin = time.perf_counter()
    found = work().to_dict()
    return time.perf_counter() - begin, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=19_809)
    parser.add_argument("--dets-per-image", type=int, default=5_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only-cluster", action="store_true", help="for the peak of the driver")
    given = parser.parse_args()
    if not (given.folder / "gt.json").exists():
        make(given.folder, given.images, given.dets_per_image, given.shards)
    gt, shards = given.folder / "gt.json", str(given.folder / "shards" / "*")
    lvdet.set_threads(given.processes)
    cluster, alone = [], []
    with connected(f"local[{given.processes}]"):
        run_on(lvdet.evaluate, gt, Shards.of(shards))
        for _ in range(given.repeats):
            took, found = seconds(lambda: run_on(lvdet.evaluate, gt, Shards.of(shards)))
            cluster.append(took)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for _ in range(0 if given.only_cluster else given.repeats):
        took, expected = seconds(lambda: lvdet.evaluate(gt, shards))
        alone.append(took)
        assert found == expected
    print(f"cluster {min(cluster):.1f} s, driver {peak:.0f} MiB", end="")
    print("" if given.only_cluster else f", one process {min(alone):.1f} s")


if __name__ == "__main__":
    main()
