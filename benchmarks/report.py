"""A report on two detectors of LVIS size: how long it takes, how large it is, and how soon
a browser answers; and one on a detector with as many classes as V3Det, in a process of its own.

    python benchmarks/report.py               2 x 5.94 M detections, then 8.9 M of 13,204 classes
    python benchmarks/report.py --small       a tenth of the images
    python benchmarks/report.py --opened 5    opens the page so many times

The second detector is the first with other scores. The page is opened in Debian's chromium.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

import lvdet
from datasets import Dataset, dataset_folder
from process import Limits, measure
from resampling import second_results
from run import memory_gib, positive
from workloads import LVIS_VAL, V3DET_VAL

HERE = Path(__file__).resolve().parent
MOST_BYTES, MOST_SECONDS, MOST_ADDED, MOST_TO_ANSWER = 10_000_000, 10.0, 8.0, 2.0
MOST_V3DET_SECONDS, MOST_V3DET_MIB = 30.0, 1.5e9 / (1 << 20)
TIME_LIMIT = 1800.0


def main() -> int:
    options = _options()
    _two_detectors(options)
    return _many_classes(options)


def _two_detectors(options: argparse.Namespace) -> None:
    folder = _folder(LVIS_VAL, options)
    gt = folder / "ground_truth.json"
    results = [folder / "detections.parquet", second_results(folder)]
    start = time.perf_counter()
    for path in results:
        lvdet.evaluate(gt, path)
    evaluated = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as temporary:
        page = Path(temporary, "report.html")
        start = time.perf_counter()
        report = lvdet.report(gt, results, resamples=options.resamples)
        built = time.perf_counter() - start
        report.save(page)
        written = time.perf_counter() - start
        size = page.stat().st_size
        answers = _opened(page, options.opened)
    inputs = report.studies[0].evaluation.inputs
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"{inputs['images']:,} images, {inputs['classes']:,} classes, 2 x "
        f"{inputs['detection_count']:,} detections, {options.resamples:,} resamples; "
        f"{os.cpu_count()} CPUs, load {load}"
    )
    print(f"  evaluate, both files                    {evaluated:6.2f} s")
    print(f"  report, from reading to the page        {written:6.2f} s")
    print(f"  the page alone, once all is computed  {written - built:6.2f} s")
    _verdict("page, bytes", size, MOST_BYTES)
    _verdict("the page alone, seconds", written - built, MOST_SECONDS)
    _verdict("all that report adds to evaluate, seconds", written - evaluated, MOST_ADDED)
    _verdict("opened until it answers, seconds", median(answers), MOST_TO_ANSWER)


def _many_classes(options: argparse.Namespace) -> int:
    """A report of the size of V3Det, from the start of its process to the end."""
    folder = _folder(V3DET_VAL, options)
    files = [folder / "ground_truth.json", folder / "detections.json"]
    command = [sys.executable, HERE / "peers" / "run_lvdet.py", *files]
    limits = Limits(TIME_LIMIT, memory_gib() * 1024)
    sample = measure([*command, "--format", V3DET_VAL.style, "--do", "report"], limits)
    print(f"V3Det's size: {V3DET_VAL.classes:,} classes")
    if sample.failure:
        print(f"  {sample.failure}")
        return 1
    _verdict("report, seconds", sample.wall, MOST_V3DET_SECONDS)
    _verdict("report, MiB at the peak", sample.peak_mib, MOST_V3DET_MIB)
    return 0


def _folder(dataset: Dataset, options: argparse.Namespace) -> Path:
    return dataset_folder(dataset.tenth() if options.small else dataset, options.cache)


def _verdict(what: str, value: float, most: float) -> None:
    word = "met" if value <= most else "MISSED"
    print(f"  {word:<8}{what}: at most {most:,.0f} (here {value:,.2f})")


def _opened(page: Path, times: int) -> list[float]:
    """Seconds from asking for the page until a search in the table of classes has answered. Figures
    are drawn later, when they are seen."""
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(times):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            start = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="commit")
            tab.wait_for_selector("#class-table tbody tr", state="attached")
            tab.fill("#class-search", "0")
            tab.wait_for_function(
                "!document.getElementById('classes-shown').textContent.startsWith('1,203')"
            )
            found.append(time.perf_counter() - start)
            tab.close()
        browser.close()
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the images")
    parser.add_argument("--resamples", type=positive, default=200)
    parser.add_argument("--opened", type=positive, default=3)
    parser.add_argument("--cache", type=Path, default=HERE / ".cache")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
