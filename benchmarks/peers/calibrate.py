"""What both calibrating runners share: the classes, the clock, and what they hand back.

A runner calibrates classes from a file with every method, writes the chances of each `every`th
class to another file, and prints on stdout nothing but

    {"tool", "version", "seconds": {method: seconds}}
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from measure import divert_stdout, version_of


@dataclass
class Classes:
    """[C, N] descending scores and labels; and by method what became of them, in which time."""

    score: np.ndarray
    right: np.ndarray
    every: int
    threads: int = 0  # of torch; 0 leaves them as they are
    seconds: dict[str, float] = field(default_factory=dict)
    chances: dict[str, np.ndarray] = field(default_factory=dict)

    @contextmanager
    def timed(self, method: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[method] = time.perf_counter() - start


def main(tool: str, run: Callable[[Classes], None]) -> None:
    """Parse the arguments, import the tool, call `run` and print the line of JSON."""
    parser = argparse.ArgumentParser(description=f"Calibrate classes with {tool}.")
    parser.add_argument("classes", metavar="CLASSES", help=".npz of score and right, [C, N] each")
    parser.add_argument("out", metavar="OUT", help=".npz for the chances")
    parser.add_argument("--every", type=int, default=60, help="of which classes")
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: its own choice")
    arguments = parser.parse_args()
    stdout = divert_stdout()
    library = importlib.import_module(tool)
    with np.load(arguments.classes) as file:
        classes = Classes(file["score"], file["right"], arguments.every, arguments.threads)
    run(classes)
    np.savez(arguments.out, **classes.chances)
    with os.fdopen(stdout, "w") as out:
        line = {"tool": tool, "version": version_of(tool, library), "seconds": classes.seconds}
        print(json.dumps(line), file=out)
