"""Every loss, head and cascade learns a handful of images by heart."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import lvdet
from lvdet.images.image_set import Settings, make_image_set
from lvdet.inference.image_list import images_of
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings as Prediction
from lvdet.training.configuration.config import (
    Classifier,
    Config,
    Data,
    Input,
    Model,
    Run,
    Sampler,
    Schedule,
)
from lvdet.training.records.checkpoint import load_model
from lvdet.training.train import train

LOSSES = ("softmax", "sigmoid", "equalization", "federated", "balanced_groups")


@pytest.fixture(scope="module")
def annotations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    made = Settings(images=4, val_images=1, classes=4, size=64, objects=3, seed=3)
    make_image_set(folder, made, overwrite=True)
    return folder / "annotations" / "train.json"


@pytest.mark.parametrize(
    ("loss", "objectness", "normalized"),
    [
        *((loss, False, False) for loss in LOSSES),
        ("softmax", True, False),
        ("softmax", False, True),
        ("softmax", True, True),
        *(
            pytest.param(loss, objectness, normalized, marks=pytest.mark.long)
            for loss in LOSSES[1:]
            for objectness, normalized in ((True, False), (False, True), (True, True))
        ),
    ],
)
def test_heads(
    annotations: Path, tmp_path: Path, loss: str, objectness: bool, normalized: bool
) -> None:
    head = Classifier(
        loss=loss,
        objectness=objectness,
        normalized=normalized,
        rarer_than=0.6,  # two of the four classes
        sampled_classes=3,
    )
    assert box_ap50(annotations, tmp_path, head, "mask_rcnn") > 0.8


def test_the_cascade(annotations: Path, tmp_path: Path) -> None:
    assert box_ap50(annotations, tmp_path, Classifier(), "cascade_rcnn") > 0.8


def box_ap50(annotations: Path, folder: Path, head: Classifier, kind: str) -> float:
    """AP-Fixed at IoU 0.5 of a tiny detector on the images it trained on."""
    images = annotations.parent.parent / "train"
    steps = 300
    # Sigmoids of normalised logits, 50 times steeper, need a lower rate.
    rate = 0.02 if head.normalized and head.loss in LOSSES[1:4] else 0.05
    config = Config(
        data=Data(train=str(annotations), train_images=str(images)),
        input=Input(by="longest", sizes=(64,), flip=0.0),
        model=Model(
            kind=kind, backbone="tiny", weights="none", norm="group", anchors=(8, 16, 24, 32, 64)
        ),
        classifier=head,
        sampler=Sampler(name="uniform"),
        schedule=Schedule(
            steps=steps,
            batch=2,
            rate=rate,
            milestones=(steps * 4 // 5,),
            warmup_rate=rate / 10,
            warmup_steps=20,
            clip=5.0,
        ),
        run=Run(workers=0, log_every=50),
    )
    torch.set_num_threads(1)
    checkpoint = train(config, folder / "run", device="cpu")
    detections = folder / "detections.jsonl"
    predict(
        load_model(checkpoint, torch.device("cpu")),
        images_of(annotations, images).images,
        detections,
        Prediction(dets_per_class=100, score=1e-3, batch=4, workers=0),
    )
    return lvdet.evaluate(annotations, detections, iou="bbox")["fixed"].AP50
