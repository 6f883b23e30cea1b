"""The evaluator of Detectron2, driven as Detectron2 does; lvis is the oracle of the numbers.

test_detectron2_itself.py runs it with Detectron2's own classes.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lvdet
from integrations.framework_samples import ImageDetections, bitmaps, class_ids, per_image
from lvdet.errors import InputError
from oracles.cases import lvis_case, without_boxes
from oracles.lvis_reference import cut_per_class, evaluate_lvis

torch = pytest.importorskip("torch")

Json = dict[str, Any]
ADAPTER = "lvdet.integrations.detectron2"


class Boxes:
    """Detectron2's: corners."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def to(self, device: Any) -> Boxes:
        return Boxes(self.tensor.to(device))


class Instances:
    """Detectron2's: fields of one length."""

    def __init__(self, image_size: tuple[int, int]) -> None:
        self.image_size = image_size

    def has(self, name: str) -> bool:
        return name in vars(self)


class Metadata(SimpleNamespace):
    """Detectron2's: attributes, or `get` with a default."""

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A stand-in for Detectron2, one process of one, and the adapter over it."""
    data_sets: dict[str, Metadata] = {}
    comm = SimpleNamespace(
        gather=lambda value: [value],
        all_gather=lambda value: [value],
        is_main_process=lambda: True,
        synchronize=lambda: None,
    )
    manager = SimpleNamespace(get_local_path=lambda path: path)
    contents = {
        "data": {"MetadataCatalog": SimpleNamespace(get=data_sets.__getitem__)},
        "evaluation": {"DatasetEvaluator": object, "inference_context": lambda _: nullcontext()},
        "structures": {"Boxes": Boxes, "Instances": Instances},
        "utils": {"comm": comm},
        "utils.file_io": {"PathManager": manager},
    }
    monkeypatch.setitem(sys.modules, "detectron2", ModuleType("detectron2"))
    for name, values in contents.items():
        module = ModuleType(f"detectron2.{name}")
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    adapter = importlib.import_module(ADAPTER)
    yield SimpleNamespace(adapter=adapter, data_sets=data_sets, comm=comm)
    del sys.modules[ADAPTER]


def found(image: ImageDetections, masks: Any = None) -> Json:
    instances = Instances((100, 100))
    instances.pred_boxes = Boxes(torch.tensor(image.corners))
    instances.scores = torch.tensor(image.scores)
    instances.pred_classes = torch.tensor(image.labels)
    if masks is not None:
        instances.pred_masks = masks
    return {"instances": instances}


def full(seed: int) -> bool:
    """Whether several images have detections."""
    return sum(len(one) > 0 for one in per_image(*lvis_case(seed, masks=False))) > 2


def register(framework: SimpleNamespace, annotations: Json, folder: Path) -> Path:
    """A data set `drawn` with a map of its class ids, as for annotations of one's own."""
    path = folder / "annotations.json"
    path.write_text(json.dumps(annotations))
    contiguous = {class_id: row for row, class_id in enumerate(class_ids(annotations))}
    framework.data_sets["drawn"] = Metadata(
        json_file=str(path), thing_dataset_id_to_contiguous_id=contiguous
    )
    return path


def percentages(metrics: Json) -> Json:
    return {
        name: np.nan if value is None else 100 * value
        for name, value in metrics.items()
        if name.startswith("AP")
    }


@pytest.mark.parametrize("seed", [seed for seed in range(40) if full(seed)][:4])
def test_boxes(framework: SimpleNamespace, tmp_path: Path, seed: int) -> None:
    annotations, results = lvis_case(seed, masks=False)
    path = register(framework, annotations, tmp_path)
    images = list(per_image(annotations, results))
    evaluator = framework.adapter.LVISEvaluator(
        "drawn", output_dir=str(tmp_path / "out"), max_dets_per_image=4, dets_per_class=3
    )
    ids = class_ids(annotations)
    for _ in range(2):  # reset forgets
        evaluator.reset()
        for image in images:
            evaluator.process([{"image_id": image.image_id}] * 2, [found(image)] * 2)
    numbers = evaluator.evaluate()
    rows = [row for one in images for row in one.results(ids)]
    old = percentages(evaluate_lvis(annotations, rows, "bbox", 4))
    fixed = percentages(evaluate_lvis(annotations, cut_per_class(rows, 3), "bbox", -1))
    assert numbers["bbox"] == pytest.approx(old, abs=1e-10, nan_ok=True)
    assert numbers["bbox_fixed"] == pytest.approx(fixed, abs=1e-10, nan_ok=True)
    assert list(numbers) == ["bbox", "bbox_fixed", "bbox_pool"]
    saved = tmp_path / "out" / "lvis_instances_results.json"
    again = lvdet.evaluate(path, saved, iou="bbox", exact_lvis=True, dets_per_class=3)
    assert numbers["bbox_pool"]["AP"] == pytest.approx(100 * again["pool"].AP, nan_ok=True)


@pytest.mark.parametrize("seed", [1, 2, 12])  # boxes and masks differ in area
def test_masks(framework: SimpleNamespace, tmp_path: Path, seed: int) -> None:
    """The area of a detection is its mask's, as Detectron2 drops boxes where it compares masks."""
    annotations, results = lvis_case(seed, masks=True)
    register(framework, annotations, tmp_path)
    evaluator = framework.adapter.LVISEvaluator("drawn", output_dir=str(tmp_path))
    evaluator.reset()
    masks = bitmaps(annotations, results)
    for image in per_image(annotations, results):
        output = found(image, torch.tensor(masks[image.image_id]))
        evaluator.process([{"image_id": image.image_id}], [output])
    numbers = evaluator.evaluate()
    rows = json.loads((tmp_path / "lvis_instances_results.json").read_text())
    expected = percentages(evaluate_lvis(annotations, without_boxes(rows), "segm"))
    assert numbers["segm"] == pytest.approx(expected, abs=1e-10, nan_ok=True)
    assert {"bbox", "segm_fixed", "segm_pool"} <= set(numbers)
    with_boxes = percentages(evaluate_lvis(annotations, rows, "segm"))
    assert with_boxes != pytest.approx(expected, nan_ok=True)


class Detector:
    """A GeneralizedRCNN's parts, as far as two passes use them: its masks are the boxes' lower
    halves. Images come at twice their size."""

    def __init__(self, images: list[ImageDetections], classes: int) -> None:
        self._images = {one.image_id: one for one in images}
        self.device = torch.device("cpu")
        self.roi_heads = SimpleNamespace(
            mask_on=True, num_classes=classes, forward_with_given_boxes=self._masks
        )
        self.backbone = lambda tensor: {}
        self.masks_made: list[int] = []

    def __call__(self, inputs: list[Json]) -> list[Json]:
        assert not self.roi_heads.mask_on
        return [found(self._images[one["image_id"]]) for one in inputs]

    def preprocess_image(self, inputs: list[Json]) -> Any:
        sizes = [tuple(one["image"].shape[1:]) for one in inputs]
        return SimpleNamespace(tensor=None, image_sizes=sizes)

    def _masks(self, features: Json, instances: list[Instances]) -> list[Instances]:
        (one,) = instances
        count = len(one.pred_classes)
        self.masks_made.append(count)
        self.corners = one.pred_boxes.tensor
        one.pred_masks = torch.zeros(count, 1, 28, 28)
        one.pred_masks[:, :, 14:] = 1
        return [one]


def test_two_passes_make_masks_of_survivors_only(
    framework: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotations, results = next(
        case for case in (lvis_case(seed, masks=True) for seed in range(40))
        if len(case[1]) > 40 and sum(map(len, per_image(*case))) > 40
    )  # fmt: skip
    register(framework, annotations, tmp_path)
    images = list(per_image(annotations, results))
    sizes = {one["id"]: (one["height"], one["width"]) for one in annotations["images"]}
    loader = [
        [{"image_id": one.image_id, "height": sizes[one.image_id][0],
          "width": sizes[one.image_id][1],
          "image": torch.zeros(3, 2 * sizes[one.image_id][0], 2 * sizes[one.image_id][1])}]
        for one in images
    ]  # fmt: skip
    budgets = {"dets_per_class": 4, "max_dets_per_image": 5}
    detector = Detector(images, len(annotations["categories"]))
    monkeypatch.setattr(
        framework.adapter, "MASK_VALUES", detector.roi_heads.num_classes * 28**2 * 3
    )
    out = tmp_path / "two"
    numbers = framework.adapter.evaluate_in_two_passes(
        detector, loader, framework.adapter.LVISEvaluator("drawn", output_dir=str(out), **budgets)
    )
    rows = json.loads((out / "lvis_instances_results.json").read_text())
    assert sum(detector.masks_made) == len(rows) < sum(map(len, images))
    assert max(detector.masks_made) == 3
    assert detector.roi_heads.mask_on
    last = rows[-len(detector.corners) :]
    x, y, w, h = np.array([one["bbox"] for one in last]).T
    np.testing.assert_allclose(
        detector.corners, 2 * np.stack([x, y, x + w, y + h], axis=1), rtol=1e-6, atol=1e-5
    )
    # As with all masks at once.
    everything = framework.adapter.LVISEvaluator("drawn", **budgets)
    everything.reset()
    for image in images:
        corners = image.corners.astype(np.float64)
        chance = torch.zeros(len(image), 28, 28)
        chance[:, 14:] = 1
        shape = np.tile(sizes[image.image_id], (len(image), 1)).reshape(-1, 2)
        masks = framework.adapter.paste(chance, corners, shape)
        everything.process([{"image_id": image.image_id}], [found(image, masks)])
    expected = everything.evaluate()
    assert numbers["bbox"] == pytest.approx(expected["bbox"], abs=1e-10, nan_ok=True)
    assert numbers["segm_fixed"] == pytest.approx(expected["segm_fixed"], abs=1e-6, nan_ok=True)


def test_two_processes_share_a_repeated_image(framework: SimpleNamespace, tmp_path: Path) -> None:
    seed = next(seed for seed in range(40) if full(seed))
    annotations, results = lvis_case(seed, masks=False)
    register(framework, annotations, tmp_path)
    images = list(per_image(annotations, results))
    evaluators = [framework.adapter.LVISEvaluator("drawn") for _ in range(2)]
    for place, evaluator in enumerate(evaluators):
        evaluator.reset()
        for image in [*images[place::2], images[0]]:
            evaluator.process([{"image_id": image.image_id}], [found(image)])
    other = (evaluators[1]._found.share(), False)
    framework.comm.gather = lambda value: [value, other]
    numbers = evaluators[0].evaluate()
    ids = class_ids(annotations)
    rows = [row for one in [*images[::2], *images[1::2]] for row in one.results(ids)]
    old = percentages(evaluate_lvis(annotations, rows, "bbox"))
    assert numbers["bbox"] == pytest.approx(old, abs=1e-10, nan_ok=True)
    framework.comm.is_main_process = lambda: False
    framework.comm.gather = lambda value: []
    evaluators[0].reset()
    assert evaluators[0].evaluate() is None


def test_refusals(framework: SimpleNamespace, tmp_path: Path) -> None:
    annotations, _ = lvis_case(0, masks=False)
    register(framework, annotations, tmp_path)
    with pytest.raises(InputError, match="unknown task 'keypoints', expected 'bbox' or 'segm'"):
        framework.adapter.LVISEvaluator("drawn", tasks=("bbox", "keypoints"))
    plain = SimpleNamespace(roi_heads=SimpleNamespace(mask_on=False))
    with pytest.raises(InputError, match="has no roi_heads with a mask head"):
        framework.adapter.evaluate_in_two_passes(
            plain, [], framework.adapter.LVISEvaluator("drawn")
        )


def test_without_detectron2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "detectron2", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"needs detectron2: see https://"):
        importlib.import_module(ADAPTER)
