"""Other projects' own scripts, unchanged: with pycocotools and lvis, and under patch().

They are read from checkouts beside each other in the folder that LVDET_CHECKOUTS names; what is not
there is skipped. Each script runs in two processes, and both print the same.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oracles.cases import coco_case

pytestmark = pytest.mark.frameworks

Json = dict[str, Any]
#: Of names that NumPy and torchvision no longer have, for the projects that are older.
BEFORE = (
    "import numpy as np; np.random.seed(0); np.float = float\n"
    "import torchvision; torchvision.__version__ = '0.9'"
)
#: The demo imports skimage.io and does not use it.
SKIMAGE = (
    "import sys, types; io = types.ModuleType('skimage.io'); package = types.ModuleType('skimage');"
    "package.io = io; sys.modules.update({'skimage': package, 'skimage.io': io})\n"
)
PATCH = "import lvdet.integrations; lvdet.integrations.patch()"
PATCHED = "import pycocotools.cocoeval as used; assert used.__name__.startswith('lvdet')"


def checkout(name: str) -> Path:
    path = Path(os.environ.get("LVDET_CHECKOUTS", "")) / name
    if "LVDET_CHECKOUTS" not in os.environ or not path.is_dir():
        pytest.skip(f"no checkout of {name}: set LVDET_CHECKOUTS to the folder that has it")
    return path


def printed(program: str, folder: Path, patched: bool) -> str:
    """What a program prints, without times."""
    lines = [BEFORE, *([PATCH, PATCHED] if patched else []), program]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(lines)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return re.sub(r"t=[\d.]+s", "t=", done.stdout)


def require_same(program: str, folder: Path, tables: int) -> None:
    """Both print the same, and as many summaries as expected, with something found."""
    theirs, ours = (printed(program, folder, patched) for patched in (False, True))
    assert ours == theirs
    assert theirs.count("Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all") == tables
    assert re.search(r"area=   all \| maxDets=\s*\d+ .*\] = 0\.[1-9]", theirs)
    print(theirs)


def annotations_of(results: list[Json], size: int) -> Json:
    """Annotations that the results find in part: some boxes moved, some classes changed."""
    rng = random.Random(1)
    classes = sorted({one["category_id"] for one in results})
    annotations = []
    for one in results[::2]:
        segmentation = one.get("segmentation")
        x, y, w, h = one.get("bbox") or (5, 5, 40, 40)
        box = [x + rng.uniform(0, w / 4), y + rng.uniform(0, h / 4), w, h]
        annotations.append(
            {
                "id": len(annotations) + 1,
                "image_id": one["image_id"],
                "category_id": one["category_id"] if rng.random() < 0.8 else rng.choice(classes),
                "bbox": box,
                "area": w * h,
                "iscrowd": int(segmentation is not None and rng.random() < 0.05),
                "segmentation": segmentation or [[x, y, x + w, y, x + w, y + h, x, y + h]],
            }
        )
    images = sorted({one["image_id"] for one in results})
    return {
        "info": {"description": "made from results"},
        "images": [{"id": one, "height": size, "width": size} for one in images],
        "categories": [{"id": one, "name": f"class {one}"} for one in classes],
        "annotations": annotations,
    }


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_coco_s_demo(tmp_path: Path, kind: str) -> None:
    """The notebook's cells on the results file beside it, without magic lines, and with its print
    statement as a call."""
    source = checkout("cocoapi")
    notebook = json.loads((source / "PythonAPI" / "pycocoEvalDemo.ipynb").read_text())
    cells = [one["source"] for one in notebook["cells"] if one["cell_type"] == "code"]
    lines = [line for cell in cells for line in "".join(cell).splitlines()]
    program = "\n".join(line for line in lines if not line.startswith("%"))
    program = re.sub(r"^print '(.*)$", r"print('\1)", program, flags=re.MULTILINE)
    assert "annType[1]      #specify type here" in program
    program = program.replace("annType[1]", f"annType[{['segm', 'bbox'].index(kind)}]")
    name = f"instances_val2014_fake{kind}100_results.json"
    results = json.loads((source / "results" / name).read_text())
    for folder in ("annotations", "results", "PythonAPI"):
        (tmp_path / folder).mkdir()
    (tmp_path / "results" / name).write_text(json.dumps(results))
    made = annotations_of(results, 640)
    if kind == "segm":
        sizes = {one["image_id"]: one["segmentation"]["size"] for one in results}
        for image in made["images"]:
            image["height"], image["width"] = sizes[image["id"]]
    (tmp_path / "annotations" / "instances_val2014.json").write_text(json.dumps(made))
    require_same(SKIMAGE + program, tmp_path / "PythonAPI", tables=1)


def test_lvis_s_script(tmp_path: Path) -> None:
    """On its own 100 images; results that a snapshot lacks are made from the annotations."""
    source = checkout("lvis-api")
    annotations = json.loads((source / "data" / "lvis_val_100.json").read_text())
    results = source / "data" / "lvis_results_100.json"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lvis_val_100.json").write_text(json.dumps(annotations))
    if results.exists():
        found = json.loads(results.read_text())
    else:
        rng = random.Random(2)
        found = [
            {
                "image_id": one["image_id"],
                "category_id": one["category_id"],
                "bbox": [value * rng.uniform(0.9, 1.1) for value in one["bbox"]],
                "score": rng.random(),
            }
            for one in annotations["annotations"]
            if rng.random() < 0.8
        ]
    (tmp_path / "data" / "lvis_results_100.json").write_text(json.dumps(found))
    theirs, ours = (
        printed((source / "test.py").read_text(), tmp_path, patched) for patched in (False, True)
    )
    assert ours == theirs
    assert theirs.count("\n") == 13
    assert "= 0." in theirs
    print(theirs)


#: Runs an evaluator with torchvision's methods over predictions, two images at a time.
UPDATES = """
import json, torch
from pycocotools.coco import COCO
truth = COCO("annotations.json")
found = {image: {"boxes": [], "scores": [], "labels": []} for image in truth.getImgIds()}
for one in json.load(open("results.json")):
    x, y, w, h = one["bbox"]
    of_image = found[one["image_id"]]
    of_image["boxes"].append([x, y, x + w, y + h])
    of_image["scores"].append(one["score"])
    of_image["labels"].append(one["category_id"])
for one in found.values():
    one["boxes"] = torch.tensor(one["boxes"]).reshape(-1, 4)
    one["scores"] = torch.tensor(one["scores"])
    one["labels"] = torch.tensor(one["labels"], dtype=torch.int64)
    x1, y1, x2, y2 = one["boxes"].round().long().clamp(0, 200).unbind(1)
    down, across = torch.arange(200)[:, None], torch.arange(200)
    inside = [(down >= b) & (down < d) & (across >= a) & (across < c) for a, b, c, d in
              zip(x1.tolist(), y1.tolist(), x2.tolist(), y2.tolist())]
    one["masks"] = (torch.stack(inside) if inside else torch.zeros(0, 200, 200))[:, None].float()
images = sorted(found)
evaluator = CocoEvaluator(truth, ["bbox", "segm"])
for place in range(0, len(images), 2):
    evaluator.update({image: found[image] for image in images[place : place + 2]})
evaluator.synchronize_between_processes()
evaluator.accumulate()
evaluator.summarize()
print({kind: one.stats.tolist() for kind, one in evaluator.coco_eval.items()})
"""


def write_case(folder: Path) -> None:
    """Small files whose masks are their boxes."""
    _, results = coco_case(3, masks=False)
    made = annotations_of([*results, *results], 200)
    (folder / "annotations.json").write_text(json.dumps(made))
    (folder / "results.json").write_text(json.dumps(results))


@pytest.mark.parametrize(
    ("name", "folder", "module"),
    [
        ("vision", "references/detection", "coco_eval"),
        ("detr", ".", "datasets.coco_eval"),
    ],
)
def test_evaluators_like_torchvision_s(tmp_path: Path, name: str, folder: str, module: str) -> None:
    path = checkout(name) / folder
    write_case(tmp_path)
    start = f"import sys; sys.path.insert(0, {str(path)!r}); from {module} import CocoEvaluator"
    require_same(start + UPDATES, tmp_path, tables=2)


def test_torchvision_s_reference_and_lvdet_s_evaluator(tmp_path: Path) -> None:
    """The same calls give the same text and numbers without any patch."""
    path = checkout("vision") / "references/detection"
    write_case(tmp_path)
    start = f"import sys; sys.path.insert(0, {str(path)!r}); from coco_eval import CocoEvaluator"
    theirs = printed(start + UPDATES, tmp_path, patched=False)
    ours = printed(
        "from lvdet.integrations.torchvision import CocoEvaluator" + UPDATES,
        tmp_path,
        patched=False,
    )
    assert ours == theirs
    assert theirs.count("Average Precision") == 12


#: YOLOX's evaluator from the rows of detections on, without its compiled COCOeval.
YOLOX = """
import json, sys, types, torch
sys.modules["yolox.layers"] = None
from yolox.evaluators.coco_evaluator import COCOEvaluator
from pycocotools.coco import COCO
dataset = types.SimpleNamespace(coco=COCO("annotations.json"))
loader = types.SimpleNamespace(dataset=dataset, batch_size=1)
evaluator = COCOEvaluator(loader, (640, 640), 0.01, 0.65, len(dataset.coco.cats))
found = json.load(open("results.json"))
ap, ap50, text = evaluator.evaluate_prediction(found, torch.tensor([1.0, 1.0, 1.0]))
print(ap, ap50, text)
"""


def test_yolox_s_evaluator(tmp_path: Path) -> None:
    path = checkout("YOLOX")
    write_case(tmp_path)
    require_same(f"import sys; sys.path.insert(0, {str(path)!r})" + YOLOX, tmp_path, tables=1)
