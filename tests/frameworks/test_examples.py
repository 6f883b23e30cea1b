"""The examples of open-vocabulary detectors, at random weights on drawn images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lvdet
from lvdet.images.image_set import Settings, make_image_set

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),  # those of the framework and of its packages
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OFFLINE = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "true"}


def run(name: str, *arguments: str | Path) -> str:
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, env=os.environ | OFFLINE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn") / "set"
    make_image_set(folder, Settings(images=8, val_images=5, classes=50, size=80))
    return folder


@pytest.mark.parametrize("name", ["owlvit.py", "yolo_world.py"])
def test_from_the_model_to_ap_fixed(name: str) -> None:
    text = run(name)
    steps = re.findall(r"^  (\d)\. (.+): .+$", text, re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert [what for _, what in steps][-3:] == ["results file", "AP-Old", "AP-Fixed, AP-Pool"]
    (found,) = re.findall(r"^bbox: ([\d,]+) detections on 6 images, 30 classes", text, re.MULTILINE)
    assert int(found.replace(",", "")) > 1000


def test_owlvit_scores_every_pair_of_a_box_and_a_class(drawn: Path, tmp_path: Path) -> None:
    """As the model's own forward pass, which takes all classes at once."""
    torch = pytest.importorskip("torch")
    from PIL import Image

    sys.path.insert(0, str(EXAMPLES))
    import owlvit

    output, gt = tmp_path / "out.parquet", drawn / "annotations" / "val.json"
    run("owlvit.py", "--annotations", gt, "--images", drawn / "val", "--output", output)
    found = lvdet.read_detections(output)
    truth = lvdet.read_ground_truth(gt)
    model, processor = owlvit.random_model()
    prompts = [f"a photo of a {name}" for name in truth.categories.names]
    image = Image.open(drawn / "val" / truth.images.file_names[0]).convert("RGB")
    inputs = processor(text=[prompts], images=image, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        out = model.eval()(**inputs)
    rows = found.image_ids[found.image] == truth.images.ids[0]
    expected = out.logits[0].sigmoid().numpy()
    scores = np.zeros_like(expected)
    count = len(expected)
    for label, class_id in enumerate(truth.categories.ids):
        of_class = rows & (found.category_ids[found.category] == class_id)
        assert of_class.sum() == count
        scores[:, label] = found.score[of_class]  # boxes keep their order
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    cx, cy, w, h = out.pred_boxes[0].numpy().T
    size = np.array([image.width, image.height] * 2)
    boxes = np.stack([cx - w / 2, cy - h / 2, w, h], axis=1) * size
    np.testing.assert_allclose(found.box[of_class], boxes, atol=1e-3)


def test_yolo_world_writes_what_evaluate_reads(drawn: Path, tmp_path: Path) -> None:
    gt = drawn / "annotations" / "val.json"
    text = run(
        "yolo_world.py", "--annotations", gt, "--images", drawn / "val", "--output", tmp_path
    )
    path = tmp_path / "lvdet" / "predictions.json"
    assert f"results: {path}" in text
    result = lvdet.evaluate(gt, path, exact_lvis=True)
    assert f"{result.inputs['detection_count']:,} detections on 5 images" in text
    assert max(np.bincount(lvdet.read_detections(path).image)) <= 1000


@pytest.mark.parametrize("name", ["owlvit.py", "yolo_world.py"])
def test_annotations_without_images(drawn: Path, name: str) -> None:
    command = [sys.executable, EXAMPLES / name, "--annotations", drawn / "annotations" / "val.json"]
    done = subprocess.run(command, env=os.environ | OFFLINE, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--annotations needs --images, the folder of their images" in done.stderr
