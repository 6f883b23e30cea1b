"""The metric of MMEngine, driven as MMEngine does; lvis is the oracle of the numbers.

test_mmdet_itself.py runs it in MMDetection's own evaluator.
"""

from __future__ import annotations

import importlib
import json
import logging
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lvdet
from integrations.framework_samples import ImageDetections, class_ids, per_image
from lvdet.errors import InputError
from oracles.cases import lvis_case
from oracles.lvis_reference import cut_per_class, evaluate_lvis

Json = dict[str, Any]
ADAPTER = "lvdet.integrations.mmdet"


class BaseMetric:
    """MMEngine's, as far as its constructor goes."""

    def __init__(self, collect_device: str = "cpu", prefix: str | None = None) -> None:
        self.collect_device = collect_device
        self.prefix = prefix or type(self).default_prefix
        self.dataset_meta: Json | None = None


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A stand-in for MMEngine, one process of one, and the adapter over it."""
    engine = SimpleNamespace(registered=[], gathered=lambda share: [share], main=True, told=[])

    def register_module() -> Callable[[type], type]:
        return lambda kind: engine.registered.append(kind) or kind

    modules = {
        "dist": {
            "all_gather_object": lambda share: engine.gathered(share),
            "broadcast_object_list": lambda outcome: engine.told.append(pickle.dumps(outcome)),
            "is_main_process": lambda: engine.main,
        },
        "evaluator": {"BaseMetric": BaseMetric},
        "fileio": {"get_local_path": lambda path, backend_args=None: nullcontext(path)},
        "logging": {
            "MMLogger": SimpleNamespace(get_current_instance=lambda: logging.getLogger("mm"))
        },
        "registry": {"METRICS": SimpleNamespace(register_module=register_module)},
    }
    monkeypatch.setitem(sys.modules, "mmengine", ModuleType("mmengine"))
    for name, contents in modules.items():
        module = ModuleType(f"mmengine.{name}")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    engine.metric = importlib.import_module(ADAPTER).FixedAPMetric
    yield engine
    del sys.modules[ADAPTER]


def sample(image: ImageDetections, **more: Any) -> Json:
    """What `DetDataSample.to_dict` returns, with arrays for tensors."""
    predicted = {"bboxes": image.corners, "scores": image.scores, "labels": image.labels}
    return {
        "img_id": image.image_id,
        "ori_shape": (100, 100),
        "pred_instances": predicted | more,
    }


def case(seed: int, folder: Path) -> tuple[Json, Path, list[ImageDetections], list[Json]]:
    """A small LVIS file, its images' detections, and these as a results list."""
    annotations, results = lvis_case(seed, masks=False)
    path = folder / "annotations.json"
    path.write_text(json.dumps(annotations))
    images = list(per_image(annotations, results))
    ids = class_ids(annotations)
    return annotations, path, images, [row for one in images for row in one.results(ids)]


def expected(annotations: Json, results: list[Json], topk: int) -> Json:
    metrics = evaluate_lvis(annotations, cut_per_class(results, topk), "bbox", -1)
    return {
        f"lvis_fixed_ap/{name}": -1.0 if value is None else value
        for name, value in metrics.items()
        if name.startswith("AP")
    }


def full(seed: int) -> bool:
    """Whether several images have detections."""
    return sum(len(one) > 0 for one in per_image(*lvis_case(seed, masks=False))) > 2


SEEDS = [seed for seed in range(30) if full(seed)][:6]


@pytest.mark.parametrize("topk", [3, 10_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_same_numbers_as_lvis(
    engine: SimpleNamespace, tmp_path: Path, seed: int, topk: int
) -> None:
    annotations, path, images, results = case(seed, tmp_path)
    metric = engine.metric(str(path), topk=topk)
    for image in images:
        metric.process({}, [sample(image)])
    found = metric.evaluate(len(images))
    reference = expected(annotations, results, topk)
    assert {name: found[name] for name in reference} == pytest.approx(reference, abs=1e-12)
    assert set(found) - set(reference) == {"lvis_fixed_ap/old_AP", "lvis_fixed_ap/pool_AP"}
    assert engine.registered == [engine.metric]


def test_the_file_holds_the_same_numbers(engine: SimpleNamespace, tmp_path: Path) -> None:
    _, path, images, _ = case(SEEDS[0], tmp_path)
    metric = engine.metric(ann_file=str(path), outfile_prefix=str(tmp_path / "out" / "lvis"))
    metric.process({}, [sample(image) for image in images])
    found = metric.evaluate(len(images))
    again = lvdet.evaluate(path, tmp_path / "out" / "lvis.bbox.json", iou="bbox", exact_lvis=True)
    assert found["lvis_fixed_ap/AP"] == again["fixed"].AP
    assert found["lvis_fixed_ap/old_AP"] == again["old"].AP
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["lvis.bbox.json"]


def test_the_file_is_bounded(engine: SimpleNamespace, tmp_path: Path) -> None:
    """Images have more detections than any budget keeps."""
    _, path, (first, second, *_), _ = case(SEEDS[0], tmp_path)
    metric = engine.metric(str(path), topk=310, outfile_prefix=str(tmp_path / "bounded"))
    rng = np.random.default_rng(0)
    for image, count in ((first, 400), (second, 20)):
        corners = np.sort(rng.random((count, 2, 2)), axis=1).reshape(count, 4) * 50
        scores = rng.random(count).astype(np.float32)
        labels = np.zeros(count, dtype=np.int64)
        many = ImageDetections(image.image_id, corners.astype(np.float32), scores, labels)
        metric.process({}, [sample(many)])
    metric.evaluate(2)
    rows = json.loads((tmp_path / "bounded.bbox.json").read_text())
    # The best 310 of the class, and those of the second image, which are among its best 300.
    assert 310 <= len(rows) < 330
    assert sum(row["image_id"] == second.image_id for row in rows) == 20


def test_a_second_epoch_starts_anew(engine: SimpleNamespace, tmp_path: Path) -> None:
    annotations, path, images, _ = case(SEEDS[2], tmp_path)
    metric = engine.metric(str(path))
    ids = class_ids(annotations)
    for chosen in (images, images[1:], images):
        metric.process({}, [sample(image) for image in chosen])
        results = [row for one in chosen for row in one.results(ids)]
        reference = expected(annotations, results, 10_000)
        found = metric.evaluate(len(chosen))
        assert {name: found[name] for name in reference} == pytest.approx(reference, abs=1e-12)


def test_processes_with_a_repeated_image(
    engine: SimpleNamespace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As with MMEngine's sampler, which fills up the last batch with images of the first."""
    annotations, path, images, results = case(24, tmp_path)
    again = max(images[::2], key=len)
    metrics = [engine.metric(str(path)) for _ in range(2)]
    for place, metric in enumerate(metrics):
        metric.process({}, [sample(image) for image in [*images[place::2], again]])
    other = metrics[1]._results().share()
    engine.gathered = lambda share: [share, other]
    with caplog.at_level(logging.INFO, "mm"):
        found = metrics[0].evaluate(len(images))
    # Both add it at the end: the first process has it already.
    assert "2 images were seen again" in caplog.text
    order = [one.image_id for one in [*images[::2], *images[1::2]]]
    ranked = sorted(results, key=lambda row: order.index(row["image_id"]))
    reference = expected(annotations, ranked, 10_000)
    assert {name: found[name] for name in reference} == pytest.approx(reference, abs=1e-12)
    doubled = [*ranked, *again.results(class_ids(annotations))]
    assert expected(annotations, doubled, 10_000) != pytest.approx(reference)
    engine.main = False
    engine.gathered = lambda share: [share]
    metrics[0].process({}, [sample(images[0])])
    assert metrics[0].evaluate(1) is None  # what the main process broadcasts takes its place


def test_classes_in_another_order(engine: SimpleNamespace, tmp_path: Path) -> None:
    annotations, path, images, results = case(SEEDS[0], tmp_path)
    ids = class_ids(annotations)
    names = {one["id"]: one["name"] for one in annotations["categories"]}
    if len(set(names.values())) < len(names):
        names = {class_id: f"class {class_id}" for class_id in ids}
        for one in annotations["categories"]:
            one["name"] = names[one["id"]]
        path.write_text(json.dumps(annotations))
    metric = engine.metric(str(path))
    metric.dataset_meta = {"classes": tuple(names[class_id] for class_id in reversed(ids))}
    turned = [
        ImageDetections(one.image_id, one.corners, one.scores, len(ids) - 1 - one.labels)
        for one in images
    ]
    metric.process({}, [sample(image) for image in turned])
    reference = expected(annotations, results, 10_000)
    found = metric.evaluate(len(images))
    assert {name: found[name] for name in reference} == pytest.approx(reference, abs=1e-12)


def test_masks_and_their_scores(engine: SimpleNamespace, tmp_path: Path) -> None:
    annotations, results = lvis_case(SEEDS[0], masks=True)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    images = list(per_image(annotations, results))
    sizes = {one["id"]: (one["height"], one["width"]) for one in annotations["images"]}
    metric = engine.metric(str(path), metric="segm", prefix="m", outfile_prefix=f"{tmp_path}/r")
    given: list[Json] = []
    for image in images:
        bitmaps = np.zeros((len(image), *sizes[image.image_id]), dtype=bool)
        bitmaps[:, : sizes[image.image_id][0] // 2] = True
        own = image.scores / 2
        metric.process({}, [sample(image, masks=bitmaps, mask_scores=own)])
        given += [{"score": float(one)} for one in own]
    found = metric.evaluate(len(images))
    rows = json.loads((tmp_path / "r.segm.json").read_text())
    assert [row["score"] for row in rows] == [row["score"] for row in given]
    reference = evaluate_lvis(annotations, rows, "segm", -1)
    assert found["m/AP"] == pytest.approx(reference["AP"], abs=1e-12)


def test_only_the_file(engine: SimpleNamespace, tmp_path: Path) -> None:
    _, path, images, results = case(SEEDS[0], tmp_path)
    metric = engine.metric(str(path), format_only=True, outfile_prefix=str(tmp_path / "only"))
    metric.process({}, [sample(image) for image in images])
    assert metric.evaluate(len(images)) == {}
    assert len(json.loads((tmp_path / "only.bbox.json").read_text())) == len(results)
    with pytest.raises(InputError, match="format_only needs outfile_prefix"):
        engine.metric(str(path), format_only=True)
    with pytest.raises(InputError, match="expected 'bbox' or 'segm'"):
        engine.metric(str(path), metric="proposal")


def test_an_error_reaches_all_processes(engine: SimpleNamespace, tmp_path: Path) -> None:
    _, path, images, _ = case(SEEDS[0], tmp_path)
    metric = engine.metric(str(path))
    metric.process({}, [sample(images[0])])
    engine.gathered = lambda share: [share, share._replace(path=tmp_path / "elsewhere")]
    with pytest.raises(InputError, match="not visible here: choose an output folder"):
        metric.evaluate(1)
    (told,) = pickle.loads(engine.told[-1])
    assert isinstance(told, InputError)


def test_without_mmengine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mmengine", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"needs mmengine: pip install mmengine$"):
        importlib.import_module(ADAPTER)
