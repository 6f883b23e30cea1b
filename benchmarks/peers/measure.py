"""What every runner shares: its arguments, its clocks and its one line of JSON.

A runner is a script that evaluates one pair of files with one tool. It prints on
stdout nothing but

    {"tool", "version", "metrics", "seconds": {"import", "read", "evaluate"}, "peak_mib"}

Whatever the tool itself prints goes to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

METRICS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR")


@dataclass
class Job:
    """One evaluation: what to read, how, and where the seconds went."""

    ground_truth: str
    detections: str
    iou: str
    format: str
    do: str = "evaluate"
    seconds: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def lvis(self) -> bool:
        return self.format == "lvis"

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as a phase of the report, or add it to an earlier one."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def defined(value: float | None) -> float | None:
    """The value, or None where the tool says undefined: None, NaN or -1."""
    return float(value) if value is not None and value >= 0 else None


Runner = Callable[[Job], Mapping[str, float | None]]


def main(tool: str, module: str, run: Runner) -> None:
    """Parse the arguments, import `module`, call `run` and print the line of JSON.

    `run` returns metrics by name, as fractions; what it leaves out is not compared.
    """
    arguments = _parser(tool).parse_args()
    stdout = divert_stdout()
    job = Job(arguments.gt, arguments.dt, arguments.iou, arguments.format, arguments.do)
    with job.phase("import"):
        library = importlib.import_module(module)
    line: dict[str, Any] = {"tool": tool, "version": version_of(tool, library)}
    if not arguments.version:
        metrics = run(job)
        line["metrics"] = {name: defined(metrics[name]) for name in METRICS if name in metrics}
        line["seconds"] = job.seconds
        line["peak_mib"] = _peak_mib()
        line |= job.extra
    with os.fdopen(stdout, "w") as out:
        print(json.dumps(line), file=out)


def _parser(tool: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f"Evaluate one pair of files with {tool}.")
    parser.add_argument("gt", metavar="GT", nargs="?", default="", help="annotation file")
    parser.add_argument("dt", metavar="DT", nargs="?", default="", help="results file")
    parser.add_argument("--iou", choices=["bbox", "segm"], default="bbox")
    parser.add_argument("--format", choices=["lvis", "coco"], default="lvis")
    parser.add_argument(
        "--do",
        choices=["evaluate", "tables", "report"],
        default="evaluate",
        help="what lvdet works out",
    )
    parser.add_argument("--version", action="store_true", help="only import, and say the version")
    return parser


def divert_stdout() -> int:
    """Send file descriptor 1 to stderr; native code prints there too. Returns the real one."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    return real


def version_of(tool: str, library: object) -> str:
    if hasattr(library, "__version__"):
        return str(library.__version__)
    from importlib.metadata import version  # Slow to import: only for a tool that needs it.

    return version(tool)


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
