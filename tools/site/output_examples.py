"""What each verb writes as JSON, on small files: the examples behind docs/schemas.

    python tools/site/output_examples.py

writes the schemas. Run it after a verb's JSON has changed, and describe new keys in
output_reference.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from json_schema import schema_of, with_patterns

import lvdet
from lvdet.cli.app import run

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
_LVIS, _COCO = "lvis.json lvis_results.json", "coco.json coco_results.json"
#: The commands that write each output, `OUT` being the file.
COMMANDS = {
    "evaluate": [
        f"evaluate {_LVIS} -o OUT",
        f"evaluate {_COCO} -o OUT",
        f"evaluate {_LVIS} --errors --groups groups.json -o OUT",
        f"evaluate {_LVIS} --budget 50/image,20/class --agnostic-recall 10,20 -o OUT",
        f"evaluate {_LVIS} --protocols old --agnostic-recall 5 --groups groups.json -o OUT",
        f"evaluate {_LVIS} --like glip -o OUT",
        f"evaluate {_LVIS} --drop-duplicates -o OUT",
    ],
    "sweep": [
        f"sweep {_LVIS} -o OUT",
        f"sweep {_LVIS} --dets-per-image 10,inf --dets-per-class 5,inf --order both -o OUT",
        f"sweep {_COCO} --dets-per-image 10,inf -o OUT",
    ],
    "audit": [
        f"audit {_LVIS} -o OUT",
        f"audit {_COCO} -o OUT",
        "audit lvis.json cut.json -o OUT",
        "audit lvis.json corners.json -o OUT",
    ],
    "rerank": [
        f"rerank {_LVIS} --dets-per-class 5 --summary OUT",
        f"rerank {_LVIS} --dets-per-class best --summary OUT",
    ],
    "compare": [
        "compare lvis.json lvis_results.json cut.json --resamples 100 -o OUT",
        "compare lvis.json lvis_results.json cut.json cut.json lvis_results.json --runs 2 "
        "--resamples 100 -o OUT",
    ],
    "calibrate-fit": [
        f"calibrate fit {_LVIS} -o OUT --method {method}"
        for method in ("hierarchical", "beta", "isotonic", "histogram")
    ],
    "calibrate-apply": ["calibrate apply cal.json lvis_results.json -o moved.json --summary OUT"],
    "calibrate-compare": [
        f"calibrate compare {_LVIS} --folds 2 --methods beta,histogram -o OUT",
        f"calibrate compare {_LVIS} --train {_LVIS} --methods beta -o OUT",
    ],
    "calibrate-measure": [
        f"calibrate measure {_LVIS} -o OUT",
        f"calibrate measure {_LVIS} --thresholds thresholds.json -o OUT",
    ],
    "calibrate-thresholds": [f"calibrate thresholds {_LVIS} -o OUT"],
    "check": [
        f"check {_LVIS} -o OUT",
        "check lvis.json bad.json -o OUT",
        "check lvis.json corners.json -o OUT",
    ],
    "convert": ["convert lvis_results.json -o moved.json --dets-per-class 5 --summary OUT"],
    "report": ["report lvis.json lvis_results.json cut.json -o page.html --summary OUT"],
    "synth": ["synth drawn --images 8 --classes 4 --size 64 --workers 1 --summary OUT"],
}
#: Keys that the caller chooses, as the examples have them and as the schemas do.
PATTERNS = {
    "AP_some": "^AP_",
    "AR_some": "^AR_",
    "some": ".",
    "50/image,20/class": "^[0-9]+/",
    "glip": "^[a-z0-9-]+$",
    "lvis_results.json": ".",
    "cut.json": ".",
}


def examples(folder: Path) -> dict[str, list[Any]]:
    """The JSON of every command, by output; makes its files in a folder."""
    quiet = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
    ):
        _files()
        return {name: [_written(one) for one in COMMANDS[name]] for name in COMMANDS}


def _written(command: str) -> Any:
    out = Path("out.json")
    run([str(out) if word == "OUT" else word for word in command.split()])
    value = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    return value


def _files() -> None:
    gt, dt = lvdet.simulate(40, 30, dets_per_image=None, seed=0)
    lvdet.write_ground_truth(gt, "lvis.json")
    lvdet.write_detections(dt, "lvis_results.json")
    corners = json.loads(Path("lvis_results.json").read_text(encoding="utf-8"))
    for row in corners:
        x, y, width, height = row["bbox"]
        row["bbox"] = [x, y, x + width, y + height]
    Path("corners.json").write_text(json.dumps(corners), encoding="utf-8")
    gt, dt = lvdet.simulate(30, 5, style="coco", dets_per_image=20, masks=True, seed=1)
    lvdet.write_ground_truth(gt, "coco.json")
    lvdet.write_detections(dt, "coco_results.json")
    run(["convert", "lvis_results.json", "-o", "cut.json", "--dets-per-image", "10"])
    run(["calibrate", "fit", "lvis.json", "lvis_results.json", "-o", "cal.json"])
    run(["calibrate", "thresholds", "lvis.json", "lvis_results.json", "-o", "thresholds.json"])
    Path("groups.json").write_text('{"some": [1, 2]}', encoding="utf-8")
    bad = [
        {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3], "score": 0.5},
        {"image_id": 10**6, "category_id": 10**6, "bbox": [1, 2, 3, 4], "score": 0.5},
    ]
    Path("bad.json").write_text(json.dumps(bad), encoding="utf-8")


def main() -> None:
    """Writes the schemas."""
    with tempfile.TemporaryDirectory() as folder:
        found = examples(Path(folder))
    for name, values in found.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"JSON of lvdet {name.replace('-', ' ')}",
            **with_patterns(schema_of(values), PATTERNS),
        }
        path = SCHEMAS / f"{name}.schema.json"
        path.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    main()
