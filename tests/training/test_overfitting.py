"""Every loss, head and cascade learns two easy images by heart.

Margins are wide by design, so that rounding does not decide: classes are told apart by colour
alone, each has two objects, no two overlap, and every step sees all images. With fewer objects of
some classes, or half of the images per step, boxes come late: each class regresses its own, from
nothing but its own objects, and at a rate that would make up for that the losses swing.

With 80 steps in place of 100, AP50 of the normalised softmax with objectness was 1.0 in the
median and never below 0.72 over ten seeds, three instruction sets of PyTorch, three of oneDNN, and
one and two threads.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import lvdet
from long_cases import first
from lvdet.inference.image_list import images_of
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
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
from lvdet.training.records.log import read_log
from lvdet.training.train import train
from training.data.small_sets import SmallSet

LOSSES = ("softmax", "sigmoid", "equalization", "federated", "balanced_groups")
COLOURS = ((230, 30, 30), (30, 210, 40), (40, 60, 240), (235, 220, 40))
SIDES = ((24, 24), (26, 16), (16, 26), (20, 20))
SIZE, IMAGES, STEPS = 64, 2, 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("easy")
    write_easy_set(folder)
    return folder


def write_easy_set(folder: Path) -> None:
    """Coloured boxes on noise, one per quarter of an image: classes 1 and 2 are on all images, 3
    and 4 twice on one of two."""
    random = np.random.default_rng(5)
    half = SIZE // 2
    made = SmallSet(folder)
    for number in (1, 2, 3, 4):
        made.category(number)
    for number in range(1, IMAGES + 1):
        pixels = random.integers(90, 160, (SIZE, SIZE, 3), dtype=np.uint8)
        rarer = 2 + number % 2
        for place, kind in enumerate(random.permutation([0, 1, rarer, rarer]).tolist()):
            w, h = SIDES[kind]
            x = half * (place % 2) + int(random.integers(0, half - w + 1))
            y = half * (place // 2) + int(random.integers(0, half - h + 1))
            pixels[y : y + h, x : x + w] = COLOURS[kind]
            made.annotation(number, kind + 1, (x, y, w, h))
        made.add(number, pixels)
    made.write()


@pytest.mark.parametrize("kind", first(1, product(LOSSES, (True, False), (True, False))), ids=str)
def test_heads(folder: Path, tmp_path: Path, kind: tuple[str, bool, bool]) -> None:
    loss, objectness, normalized = kind
    head = Classifier(
        loss=loss,
        objectness=objectness,
        normalized=normalized,
        rarer_than=0.6,  # two of the four classes
        sampled_classes=3,
    )
    require_learnt(folder, tmp_path, head, "mask_rcnn")


@pytest.mark.long
def test_the_cascade(folder: Path, tmp_path: Path) -> None:
    require_learnt(folder, tmp_path, Classifier(), "cascade_rcnn")


def require_learnt(folder: Path, tmp_path: Path, head: Classifier, kind: str) -> None:
    """Losses fall, and most objects are found where they are."""
    begin, end, ap50 = overfit(folder, tmp_path, head, kind)
    assert end < 0.8 * begin
    assert ap50 > 0.5


def overfit(
    folder: Path, tmp_path: Path, head: Classifier, kind: str, seed: int = 0
) -> tuple[float, float, float]:
    """The sum of losses in the first and the last ten steps, and AP-Fixed of boxes at IoU 0.5, of
    a tiny detector on the images it was trained on."""
    annotations = folder / "annotations.json"
    config = Config(
        data=Data(train=str(annotations), train_images=str(folder)),
        input=Input(by="longest", sizes=(SIZE,), flip=0.0),
        model=Model(
            kind=kind, backbone="tiny", weights="none", norm="group", anchors=(8, 16, 24, 32, 64)
        ),
        classifier=head,
        sampler=Sampler(name="uniform"),
        schedule=Schedule(
            steps=STEPS,
            batch=IMAGES,
            rate=0.02,
            milestones=(STEPS * 3 // 4,),
            warmup_rate=0.002,
            warmup_steps=10,
            clip=5.0,
        ),
        run=Run(workers=0, log_every=10, seed=seed),
    )
    torch.set_num_threads(1)
    checkpoint = train(config, tmp_path / "run", device="cpu")
    losses = [sum(record["losses"].values()) for record in read_log(tmp_path / "run/log.jsonl")]
    detections = tmp_path / "detections.jsonl"
    predict(
        load_model(checkpoint, torch.device("cpu")),
        images_of(annotations, folder).images,
        detections,
        Settings(dets_per_class=100, score=1e-3, batch=IMAGES, workers=0),
    )
    ap50 = lvdet.evaluate(annotations, detections, iou="bbox")["fixed"].AP50
    return losses[0], losses[-1], ap50
