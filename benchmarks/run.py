"""lvdet side by side with its peers: same files, one process a run, results compared.

    python benchmarks/run.py                              every workload, full size
    python benchmarks/run.py --small                      a tenth of the size
    python benchmarks/run.py --workloads lvis-segm --tools lvdet,hotcoco --rounds 9
    python benchmarks/run.py --all                        the slow tools everywhere

Exits 1 when the results disagree or lvdet fails. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import compileall
import dataclasses
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import workloads
from datasets import dataset_folder
from process import Limits, Sample, measure
from tables import targets_text, workload_text
from verdicts import BASELINE, SUBJECT, TARGETS, Samples, Target, agreements, highest, ratio
from workloads import WORKLOADS, Workload

HERE = Path(__file__).resolve().parent
RUNNERS = {
    "lvdet": "run_lvdet.py",
    "hotcoco": "run_hotcoco.py",
    "ultrafast-pycocotools": "run_ultrafast_pycocotools.py",
    "vernier": "run_vernier.py",
    "faster-coco-eval": "run_faster_coco_eval.py",
    "lvis": "run_lvis.py",
    "pycocotools": "run_pycocotools.py",
}
MEMORY_SHARE = 0.75


def main() -> int:
    options = _options()
    if not Path(options.peers_python).exists():
        raise SystemExit(f"{options.peers_python} is missing: `make bench` installs the peers")
    bench = Bench(options)
    chosen = _workloads(options)
    bench.warm_up({tool for workload in chosen for tool in _tools(workload, options)})
    results: dict[str, Samples] = {}
    for workload in chosen:
        results[workload.name] = bench.run(workload, _tools(workload, options))
        print(workload_text(_title(workload), results[workload.name]), flush=True)
    outcomes = [(target, _reached(target, results)) for target in TARGETS]
    print(targets_text(outcomes))
    if options.small:
        print("  --small: the targets are meant for the full size")
    _write(options.cache / "last.json", _record(options, bench, results, outcomes))
    return 0 if all(_sound(samples) for samples in results.values()) else 1


class Bench:
    """Runs the tools of a workload in turn and keeps their samples."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.versions: dict[str, str] = {}
        self._options = options
        self._limits = Limits(options.time_limit, options.memory_limit_gib * 1024)

    def warm_up(self, tools: Iterable[str]) -> None:
        """Import each tool once, so that no measured run is the first to load it. An installed
        package has its bytecode; so has the checkout then, whatever the environment says."""
        compileall.compile_dir(HERE.parent / "src", quiet=1)
        for tool in sorted(tools):
            sample = measure([*self._runner(tool), "--version"], self._limits)
            self.versions[tool] = sample.failure or sample.line["version"]

    def run(self, workload: Workload, tools: Sequence[str]) -> Samples:
        """Every tool's samples: rounds of the fast tools in turn, then the slow ones."""
        files = {tool: self._files(workload, tool) for tool in tools}
        for path in {path for pair in files.values() for path in pair}:
            _read_through(path)
        samples: dict[str, list[Sample]] = {tool: [] for tool in tools}
        try:
            for tool in self._schedule(tools):
                if not any(run.failure for run in samples[tool]):
                    samples[tool].append(self._measure(workload, tool, files[tool]))
        finally:
            if workload.large:
                shutil.rmtree(files[SUBJECT][0].parent)
        return samples

    def _files(self, workload: Workload, tool: str) -> list[Path]:
        folder = dataset_folder(workload.dataset_of(tool), self._options.cache)
        return [folder / "ground_truth.json", folder / workload.detections(tool)]

    def _schedule(self, tools: Sequence[str]) -> list[str]:
        fast = [tool for tool in tools if tool in workloads.FAST]
        slow = [tool for tool in tools if tool not in workloads.FAST]
        return [*fast * self._options.rounds, *slow * self._options.slow_rounds]

    def _measure(self, workload: Workload, tool: str, files: list[Path]) -> Sample:
        kind = ["--iou", workload.iou, "--format", workload.dataset.style]
        if tool == SUBJECT:
            kind += ["--do", workload.lvdet_does]
        sample = measure([*self._runner(tool), *files, *kind], self._limits)
        size = sum(path.stat().st_size for path in files)
        sample = dataclasses.replace(sample, bytes=size)
        outcome = sample.failure or f"{sample.wall:.3f} s, {sample.peak_mib:,.0f} MiB"
        print(f"{workload.name}: {tool}: {outcome}", file=sys.stderr, flush=True)
        return sample

    def _runner(self, tool: str) -> list[str | Path]:
        python = sys.executable if tool == SUBJECT else str(self._options.peers_python)
        return [python, HERE / "peers" / RUNNERS[tool]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workloads", type=_list_of(names), help=", ".join(names))
    parser.add_argument("--tools", type=_list_of(list(RUNNERS)), help=", ".join(RUNNERS))
    parser.add_argument("--all", action="store_true", help="run the slow tools everywhere")
    parser.add_argument("--small", action="store_true", help="a tenth of the images")
    parser.add_argument("--rounds", type=positive, default=5, help="of the fast tools")
    parser.add_argument("--slow-rounds", type=positive, default=1, help="of the other tools")
    parser.add_argument("--time-limit", type=float, default=1800, help="seconds a run")
    parser.add_argument(
        "--memory-limit-gib", type=float, default=memory_gib() * MEMORY_SHARE, help="of a run"
    )
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", help="where the files are")
    parser.add_argument(
        "--peers-python",
        default=HERE / ".venv" / "bin" / "python",
        help="interpreter of the environment made from requirements.txt",
    )
    return parser.parse_args()


def _list_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            message = f"unknown {', '.join(unknown)}; choose from {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return names

    return parse


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {number}")
    return number


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def _workloads(options: argparse.Namespace) -> list[Workload]:
    named = options.workloads or [w.name for w in WORKLOADS if options.all or not w.large]
    chosen = [w for w in WORKLOADS if w.name in named]
    return [workload.tenth() if options.small else workload for workload in chosen]


def _tools(workload: Workload, options: argparse.Namespace) -> list[str]:
    every = [*workload.tools, *workload.slow_tools]
    if options.tools:
        return [tool for tool in every if tool in options.tools]
    return every if options.all else list(workload.tools)


def _read_through(path: Path) -> None:
    """Bring the file into the page cache, where every tool then finds it."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def _title(workload: Workload) -> str:
    data = workload.dataset
    size = f"{data.images:,} images × {data.dets_per_image:,}, {data.classes:,} classes"
    size += f", {data.numbers} numbers" + (", pretty-printed" if data.layout == "pretty" else "")
    reads = "" if workload.lvdet_reads == "json" else f", {SUBJECT} reads {workload.lvdet_reads}"
    if workload.lvdet_does == "tables":
        reads += f", {SUBJECT} works out the paper's tables and 200 rows more"
    if workload.peers_read is not None:
        reads += f"; the others {workload.peers_read.dets_per_image} an image"
    return f"{workload.name} ({data.style} {workload.iou}, {size}{reads})"


def _reached(target: Target, results: dict[str, Samples]) -> float | None:
    if target.workload not in results:
        return None
    if target.share is None:
        return highest(results[target.workload], SUBJECT, target.quantity)
    return ratio(results[target.workload], SUBJECT, target.quantity)


def _sound(samples: Samples) -> bool:
    failed = any(run.failure for run in samples.get(SUBJECT, ()))
    return not failed and all(agreement.holds for agreement in agreements(samples))


def _record(
    options: argparse.Namespace,
    bench: Bench,
    results: dict[str, Samples],
    outcomes: Sequence[tuple[Target, float | None]],
) -> dict[str, Any]:
    return {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cpus": os.cpu_count(),
            "memory_gib": round(memory_gib(), 1),
            "python": platform.python_version(),
            "load_at_end": os.getloadavg(),
        },
        "small": options.small,
        "baseline": BASELINE,
        "versions": bench.versions,
        "workloads": {name: _workload_record(samples) for name, samples in results.items()},
        "targets": [
            {**dataclasses.asdict(target), "reached": reached} for target, reached in outcomes
        ],
    }


def _workload_record(samples: Samples) -> dict[str, Any]:
    return {
        "samples": {
            tool: [dataclasses.asdict(run) for run in runs] for tool, runs in samples.items()
        },
        "wall_ratio": {tool: ratio(samples, tool) for tool in samples},
        "differences": {
            " and ".join(agreement.tools): agreement.differences
            for agreement in agreements(samples)
        },
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _write(path: Path, record: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=1))
    unfinished.rename(path)
    print(f"\nwritten: {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
