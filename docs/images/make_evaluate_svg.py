"""Draws evaluate.svg: the table that `lvdet evaluate` shows, of what `lvdet demo` makes.

.venv/bin/python docs/images/make_evaluate_svg.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from demo_files import demo_files
from rich.console import Console

import lvdet
from lvdet.cli.terminal import drawn_table

TARGET = Path(__file__).with_name("evaluate.svg")
#: The fonts that rich's pictures would fetch from elsewhere.
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    with demo_files() as folder:
        gt = lvdet.read_ground_truth(Path(folder, "annotations.json"))
        dt = lvdet.read_detections(Path(folder, "results.json"))
        result = lvdet.evaluate(gt, dt)
    console = Console(record=True, width=62, file=io.StringIO(), force_terminal=True)
    console.print("$ lvdet evaluate demo/annotations.json demo/results.json", highlight=False)
    console.print(drawn_table(result))
    svg = FONT_FACE.sub("", console.export_svg(title="lvdet", unique_id="lvdet"))
    TARGET.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main()
