"""transformers' own Trainer, image processor and a small DETR of random weights."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from lvdet.errors import InputError
from lvdet.integrations.transformers import (
    TrainerMetrics,
    detections_from_transformers,
    ground_truth_from_transformers,
)

pytestmark = pytest.mark.frameworks

Json = dict[str, Any]
CLASSES = 4


def model() -> Any:
    torch.manual_seed(0)
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        backbone_config=backbone,
        use_timm_backbone=False,
        backbone=None,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=20,
        num_labels=CLASSES,
    )
    return transformers.DetrForObjectDetection(config)


@pytest.fixture(scope="module")
def processor() -> Any:
    return transformers.DetrImageProcessor(size={"height": 64, "width": 64}, do_pad=False)


@pytest.fixture(scope="module")
def annotations() -> Json:
    rng = np.random.default_rng(0)
    rows = [
        {
            "image_id": image,
            "category_id": category_id,
            "bbox": [*rng.uniform(20, 40, 2).tolist(), *rng.uniform(45, 60, 2).tolist()],
            "iscrowd": 0,
        }
        for image in (11, 12, 15, 16, 18)
        for category_id in range(CLASSES)  # about where random weights see something
    ]
    for number, one in enumerate(rows, start=1):
        one |= {"id": number, "area": one["bbox"][2] * one["bbox"][3]}
    return {
        "images": [{"id": one, "height": 100, "width": 120} for one in (11, 12, 15, 16, 18)],
        "categories": [{"id": one, "name": str(one)} for one in range(CLASSES)],
        "annotations": rows,
    }


@pytest.fixture(scope="module")
def samples(processor: Any, annotations: Json) -> list[Json]:
    """What the processor makes of images with annotations."""
    rng = np.random.default_rng(1)
    found = []
    for image in annotations["images"]:
        pixels = rng.integers(0, 255, (image["height"], image["width"], 3), dtype=np.uint8)
        rows = [one for one in annotations["annotations"] if one["image_id"] == image["id"]]
        target = {"image_id": image["id"], "annotations": rows}
        made = processor(images=pixels, annotations=target, return_tensors="pt")
        found.append({"pixel_values": made["pixel_values"][0], "labels": made["labels"][0]})
    return found


def collate(batch: list[Json]) -> Json:
    return {
        "pixel_values": torch.stack([one["pixel_values"] for one in batch]),
        "labels": [one["labels"] for one in batch],
    }


def expected(network: Any, processor: Any, samples: list[Json], annotations: Json) -> list[Json]:
    """The detections image by image, as COCO's result dicts."""
    rows = []
    for sample, image in zip(samples, annotations["images"], strict=True):
        with torch.no_grad():
            output = network.eval()(pixel_values=sample["pixel_values"][None])
        size = [(image["height"], image["width"])]
        (one,) = processor.post_process_object_detection(output, 0.0, target_sizes=size)
        for score, label, (x1, y1, x2, y2) in zip(
            one["scores"].tolist(), one["labels"].tolist(), one["boxes"].tolist(), strict=True
        ):
            row = {"image_id": image["id"], "category_id": label, "score": score}
            rows.append({**row, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    return rows


def pycocotools_stats(annotations: Json, rows: list[Json]) -> list[float]:
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = annotations
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(rows), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats.tolist()


@pytest.mark.parametrize("from_labels", [True, False])
@pytest.mark.parametrize("batchwise", [True, False])
def test_the_trainer_s_metrics_are_pycocotools_s(
    tmp_path: Path,
    processor: Any,
    samples: list[Json],
    annotations: Json,
    from_labels: bool,
    batchwise: bool,
) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    labels = ground_truth_from_transformers(one["labels"] for one in samples)
    metrics = TrainerMetrics(labels if from_labels else path, processor)
    network = model()
    trainer = transformers.Trainer(
        model=network,
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path),
            per_device_eval_batch_size=2,
            eval_do_concat_batches=False,
            batch_eval_metrics=batchwise,
            remove_unused_columns=False,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        data_collator=collate,
        eval_dataset=samples,
        compute_metrics=metrics,
    )
    found = trainer.evaluate()
    stats = pycocotools_stats(annotations, expected(network, processor, samples, annotations))
    assert stats[0] > 0
    names = ("AP", "AP50", "AP75")
    for name, value in zip(names, stats, strict=False):
        assert found[f"eval_old_{name}"] == pytest.approx(value, abs=1e-6)
    assert {"eval_fixed_AP", "eval_pool_AP"} <= found.keys()
    assert metrics.result is not None
    again = trainer.evaluate()  # nothing is left of the first
    assert again["eval_old_AP"] == found["eval_old_AP"]


def test_results_as_a_table(processor: Any, samples: list[Json], annotations: Json) -> None:
    network = model()
    batch = collate(samples)["pixel_values"]
    with torch.no_grad():
        output = network.eval()(pixel_values=batch)
    sizes = torch.tensor([[100, 120]] * len(samples))
    results = processor.post_process_object_detection(output, 0.0, target_sizes=sizes)
    ids = [one["id"] for one in annotations["images"]]
    table = detections_from_transformers(results, ids, class_ids=[10, 20, 30, 40])
    rows = expected(network, processor, samples, annotations)
    assert len(table) == len(rows)
    assert table.image_ids[table.image].tolist() == [one["image_id"] for one in rows]
    ids_found = table.category_ids[table.category].tolist()
    assert ids_found == [10 * one["category_id"] + 10 for one in rows]
    np.testing.assert_allclose(table.box, [one["bbox"] for one in rows], atol=1e-4)
    with pytest.raises(InputError, match="5 results for 4 image ids"):
        detections_from_transformers(results, ids[1:])


def test_labels_as_annotations(samples: list[Json], annotations: Json) -> None:
    table = ground_truth_from_transformers(
        (one["labels"] for one in samples), class_ids=[10, 20, 30, 40]
    )
    rows = annotations["annotations"]
    assert table.categories.ids.tolist() == [10, 20, 30, 40]
    assert table.images.ids[table.image].tolist() == [one["image_id"] for one in rows]
    np.testing.assert_allclose(table.box, [one["bbox"] for one in rows], rtol=1e-5)
    np.testing.assert_allclose(table.area, [one["area"] for one in rows], rtol=1e-5)


def test_what_cannot_be_evaluated(processor: Any, samples: list[Json]) -> None:
    """The Trainer's default loses which boxes belong to which image."""
    gt = ground_truth_from_transformers(one["labels"] for one in samples[1:])
    labels = [one["labels"] for one in samples]
    joined = (np.zeros((5, 20, CLASSES + 1)), np.zeros((5, 20, 3)))
    evaluation = transformers.EvalPrediction(predictions=joined, label_ids=labels)
    with pytest.raises(InputError, match="set eval_do_concat_batches=False"):
        TrainerMetrics(gt, processor)(evaluation)
    batch = (np.zeros((5, 20, CLASSES + 1)), np.zeros((5, 20, 4)))
    evaluation = transformers.EvalPrediction(predictions=batch, label_ids=labels)
    with pytest.raises(InputError, match="ground truth has no image 11"):
        TrainerMetrics(gt, processor)(evaluation)
