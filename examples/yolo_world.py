"""YOLO-World through Ultralytics, from the model to AP-Fixed.

    python examples/yolo_world.py
    python examples/yolo_world.py --weights yolov8l-worldv2.pt \
        --annotations lvis_v1_minival.json --images coco --output runs/world

Ultralytics has two limits of its own before lvdet's: `max_det` detections per image, and 30,000
candidates that enter non-maximum suppression.
"""

from __future__ import annotations

import inspect
import json
import tempfile
from pathlib import Path

import torch
from open_vocabulary_set import ImageSet, arguments, image_set, print_chain
from ultralytics import YOLOWorld
from ultralytics.utils.nms import non_max_suppression

from lvdet.integrations.ultralytics import validator

#: Ultralytics' limit per image, and its minimum score.
MAX_DET, CONF = 1000, 1e-6


def data_file(given: ImageSet, folder: Path) -> Path:
    """A data set of Ultralytics: its images and names; it needs no labels here."""
    listed = folder / "images.txt"
    listed.write_text("".join(f"{path.resolve()}\n" for path in given.paths.values()))
    path = folder / "data.yaml"
    split = f"train: {listed}\nval: {listed}\n"
    path.write_text(f"path: {folder}\n{split}names: {json.dumps(given.prompts)}\n")
    return path


def with_classes(weights: str | None, prompts: list[str]) -> YOLOWorld:
    """The detector with its classes; text embeddings are random, too, where the weights are."""
    if weights is not None:
        model = YOLOWorld(weights)
        model.set_classes(prompts)
        return model
    torch.manual_seed(0)
    model = YOLOWorld("yolov8s-worldv2.yaml")
    embeddings = torch.randn(1, len(prompts), 512)
    model.model.txt_feats = embeddings / embeddings.norm(dim=-1, keepdim=True)
    model.model.model[-1].nc = len(prompts)
    model.model.names = prompts
    return model


def main() -> None:
    """Validates; lvdet's validator writes the results and prints their numbers."""
    parser = arguments(__doc__ or "", "yolov8l-worldv2.pt")
    parser.add_argument("--imgsz", type=int, help="longer side of the network's input")
    options = parser.parse_args()
    given = image_set(options.annotations, options.images)
    folder = (options.output or Path(tempfile.mkdtemp())).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    model = with_classes(options.weights, given.prompts)
    model.val(
        validator=validator(given.gt),
        data=str(data_file(given, folder)),
        imgsz=options.imgsz or (640 if options.weights else 96),
        conf=CONF,
        max_det=MAX_DET,
        plots=False,
        project=str(folder),
        name="lvdet",
        exist_ok=True,
    )
    candidates = inspect.signature(non_max_suppression).parameters["max_nms"].default
    print_chain(
        [
            ("Ultralytics' conf", f"scores above {CONF}"),
            ("Ultralytics' max_nms", f"{candidates:,} candidates per image enter NMS"),
            ("Ultralytics' max_det", f"best {MAX_DET:,} per image"),
            ("results file", "best 10,000 per class and best 300 per image"),
            ("AP-Old", "best 300 per image"),
            ("AP-Fixed, AP-Pool", "best 10,000 per class"),
        ]
    )
    print(f"results: {folder / 'lvdet' / 'predictions.json'}")


if __name__ == "__main__":
    main()
