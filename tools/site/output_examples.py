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
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from json_schema import schema_of, with_patterns, with_types

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
_TINY = (
    "--set model.backbone=tiny --set schedule.steps=4 --set schedule.batch=2 "
    "--set schedule.milestones=[3] --set schedule.warmup_steps=1 --set run.workers=0 "
    "--device cpu --overwrite -o run"
)
_QUICK = "--workers 0 --device cpu --overwrite"
_VAL = f"drawn/annotations/val.json --images drawn/val {_QUICK}"
#: The same for outputs of training, which take longer.
TRAINED = {
    "train": [
        f"train drawn/config.toml {_TINY} --set run.log_every=0 --set data.val= --summary OUT",
        f"train drawn/config.toml {_TINY} --set run.log_every=2 --summary OUT",
    ],
    "predict": [
        f"predict run {_VAL} -o boxes.json --no-masks --summary OUT",
        f"predict run {_VAL} -o masks.json --nms 0.3,0.5 --summary OUT",
        f"predict run drawn/val {_QUICK} --skip-damaged -o skipped.json --summary OUT",
    ],
    "experiment": ["experiment dets_per_cat --scale tiny --seeds 0,1 --device cpu -o made"],
}
_SKIP = "--cluster local[1] --skip-bad-shards -o OUT"
#: The same on a cluster, where one shard of two is bad.
CLUSTERED = {
    "evaluate": [f"evaluate lvis.json shards {_SKIP}"],
    "sweep": [f"sweep lvis.json shards {_SKIP}"],
    "audit": [f"audit lvis.json shards {_SKIP}"],
    "compare": [f"compare lvis.json lvis_results.json shards --resamples 100 {_SKIP}"],
}
#: The outputs of commands that do not take a file's name.
FILES = {"experiment": "made/tables.json"}
#: Objects whose keys depend on the settings.
MAPPINGS = {"train": ["losses"], "experiment": ["values"]}
#: Types that no example has: memory without a GPU, and AP of groups that small sets lack.
ALSO = {
    "train": {"gpu_memory": "integer", "APr": "null", "APc": "number", "APf": "number"},
    "experiment": {"paper": "null"},
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
    """The JSON of every command that trains nothing, by output; makes its files in a folder."""
    with _quietly(folder):
        _files()
        return _of_commands(COMMANDS)


def trained_examples(folder: Path) -> dict[str, list[Any]]:
    """The JSON of every command in `TRAINED`, by output; trains in a folder."""
    with _quietly(folder):
        run(["synth", "drawn", "--images", "8", "--classes", "4", "--size", "64", "--workers", "1"])
        Path("drawn/val/damaged.jpg").write_bytes(b"not an image")
        return _of_commands(TRAINED)


def clustered_examples(folder: Path) -> dict[str, list[Any]]:
    """The JSON of every command in `CLUSTERED`, by output; starts clusters of one process."""
    with _quietly(folder):
        _files()
        Path("shards").mkdir()
        shutil.copy("lvis_results.json", "shards/1.json")
        shutil.copy("bad.json", "shards/2.json")
        return _of_commands(CLUSTERED)


@contextlib.contextmanager
def _quietly(folder: Path) -> Iterator[None]:
    """In a folder, with nothing printed."""
    quiet = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
    ):
        yield


def _of_commands(commands: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    return {name: [_written(name, one) for one in each] for name, each in commands.items()}


def _written(name: str, command: str) -> Any:
    out = Path(FILES.get(name, "out.json"))
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
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for make in (examples, trained_examples, clustered_examples):
        with tempfile.TemporaryDirectory() as folder:
            for name, values in make(Path(folder)).items():
                found[name] += values
    for name, values in found.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"JSON of lvdet {name.replace('-', ' ')}",
            **with_types(
                with_patterns(schema_of(values, MAPPINGS.get(name, ())), PATTERNS),
                ALSO.get(name, {}),
            ),
        }
        path = SCHEMAS / f"{name}.schema.json"
        path.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    main()
