"""Two detectors compared on 1,000 resamples of LVIS-sized results.

    python benchmarks/resampling.py                     19,809 images, 5.94 M detections each
    python benchmarks/resampling.py --small             a tenth of the images
    python benchmarks/resampling.py --resamples 5000 --rounds 3

The second detector is the first with other scores. Each round is a process of its own, from reading
to the sentences. Exits 1 when the numbers are not those of `evaluate`. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

from datasets import dataset_folder
from process import Limits, Sample, measure
from run import memory_gib, positive
from workloads import LVIS_VAL

HERE = Path(__file__).resolve().parent
#: Seconds for 1,000 resamples, from start to exit.
TARGET_SECONDS = 60.0
TOLERANCE = 1e-12


def main() -> int:
    options = _options()
    if options.files:
        return _compare(*options.files, options.resamples)
    dataset = LVIS_VAL.tenth() if options.small else LVIS_VAL
    folder = dataset_folder(dataset, options.cache)
    files = [folder / "ground_truth.json", folder / "detections.parquet", second_results(folder)]
    command = [sys.executable, __file__, "--resamples", str(options.resamples), "--files", *files]
    limits = Limits(3600, memory_gib() * 1024)
    runs = [measure(command, limits) for _ in range(options.rounds)]
    for run in runs:
        if run.failure:
            print(run.failure)
            return 1
    print(_table(runs, options.resamples))
    return 0 if all(run.line["worst"] <= TOLERANCE for run in runs) else 1


def _table(runs: list[Sample], resamples: int) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    line = runs[-1].line
    lines = [
        f"{line['images']:,} images, 2 x {line['detections']:,} detections, {resamples:,} "
        f"resamples; {os.cpu_count()} CPUs, load {load}",
        f"  {'reading and all':<18}{median(run.wall for run in runs):>8.2f} s",
        f"  {'reading':<18}{median(run.seconds('read') for run in runs):>8.2f} s",
        f"  {'comparing':<18}{median(run.seconds('compare') for run in runs):>8.2f} s",
        f"  {'CPU':<18}{median(run.seconds('cpu') for run in runs):>8.2f} s",
        f"  {'peak memory':<18}{max(run.peak_mib for run in runs):>8.0f} MiB",
        f"  numbers less those of evaluate: at most {line['worst']:.1e}",
    ]
    reached = median(run.wall for run in runs) * 1_000 / resamples
    verdict = "met" if reached <= TARGET_SECONDS else "MISSED"
    lines.append(f"  {verdict:<8} 1,000 resamples in {TARGET_SECONDS:.0f} s (here {reached:.1f} s)")
    return "\n".join(lines)


def second_results(folder: Path) -> Path:
    """The results with other scores, made where they are not there yet."""
    path = folder / "rescored.parquet"
    if not path.exists():
        import numpy as np

        import lvdet

        first = lvdet.read_detections(folder / "detections.parquet")
        noise = np.random.default_rng(0).normal(0.0, 0.3, len(first))
        lvdet.write_detections(first.with_scores(first.score ** np.exp(noise)), path)
    return path


def _compare(gt: str, first: str, second: str, resamples: int) -> int:
    """One round: prints what it took, and how far its numbers are from those of `evaluate`."""
    import lvdet
    from lvdet.comparison.compare import Bootstrap, compare_pairs
    from lvdet.evaluation.load_pair import load_pair
    from lvdet.limits.needs import everything

    start = time.perf_counter()
    one = load_pair(gt, first, everything)
    pairs = [one, load_pair(one.gt, second, everything)]
    read = time.perf_counter()
    result = compare_pairs(pairs, bootstrap=Bootstrap(resamples))
    end, cpu = time.perf_counter(), time.process_time()
    worst = 0.0
    for place, pair in enumerate(pairs):
        for protocol, values in lvdet.evaluate(pair.gt, pair.results).items():
            for name, item in result.compared[0].protocols[protocol].items():
                worst = max(worst, abs((item.value if place else item.baseline) - values[name]))
    line = {
        "images": len(one.gt.images),
        "detections": one.results.total,
        "seconds": {"read": read - start, "compare": end - read, "cpu": cpu},
        "worst": worst,
    }
    print(json.dumps(line))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the images")
    parser.add_argument("--resamples", type=positive, default=1_000)
    parser.add_argument("--rounds", type=positive, default=1)
    parser.add_argument("--cache", type=Path, default=HERE / ".cache")
    parser.add_argument("--files", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
