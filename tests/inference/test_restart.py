"""A killed prediction resumes, and its result is the same as without the kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from inference.random_detector import RandomDetector, Stopped, random_model, write_images
from long_cases import first
from lvdet.errors import InputError
from lvdet.inference import job_identity as identity
from lvdet.inference.device import Execution
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.data.batch import Batch
from lvdet.training.model.recipe import DETECTRON2, PAPER

torch.set_num_threads(1)
HERE = Path(__file__).parent
CHOSEN = Settings(dets_per_image=0, dets_per_class=8, workers=0, batch=2)


@pytest.mark.parametrize("strides", first(1, [(29, 5), (3, 1)]))
def test_killed_at_many_steps(strides: tuple[int, int], tmp_path: Path) -> None:
    """How many steps lie between, and at the end."""
    done = subprocess.run(
        [sys.executable, HERE / "kill_at_steps.py", tmp_path, *map(str, strides)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * strides[0] > 100


def test_finished_images_are_not_looked_at_again(tmp_path: Path) -> None:
    images = write_images(tmp_path, 9)
    chosen = replace(CHOSEN, dets_per_class=300)
    whole, out = tmp_path / "whole.json", tmp_path / "out.json"
    predict(random_model(RandomDetector(2)), images, whole, chosen)
    detector = Stopped(2, 3)
    with pytest.raises(KeyboardInterrupt):
        predict(random_model(detector), images, out, chosen)
    detector.stop = 7  # 5 batches of boxes, of which 3 are done, and 5 of masks
    with pytest.raises(KeyboardInterrupt):
        predict(random_model(detector), images, out, chosen)
    detector.stop = -1
    told: list[tuple[int, int]] = []

    class Told:
        def __enter__(self) -> object:
            return lambda done, of: told.append((done, of))

        def __exit__(self, *_: object) -> None: ...

    predict(random_model(detector), images, out, chosen, lambda _, unit: Told())
    assert len(detector.batches) == 10
    assert told == [(6, 9), (8, 9), (9, 9)]
    assert out.read_bytes() == whole.read_bytes()


def test_other_settings_are_refused(tmp_path: Path) -> None:
    images = write_images(tmp_path, 5)
    out = tmp_path / "out.json"
    detector = Stopped(2, 1)
    model = random_model(detector)
    with pytest.raises(KeyboardInterrupt):
        predict(model, images, out, CHOSEN)

    def refused(says: str, **changed: object) -> None:
        with pytest.raises(InputError, match=says) as error:
            predict(model, images, out, replace(CHOSEN, **changed))  # type: ignore[arg-type]
        assert "out.json.work: started with" in str(error.value)
        assert "\n" not in str(error.value)

    refused("dets_per_class 8, now 9", dets_per_class=9)
    refused("dets_per_image 0, now 300", dets_per_image=300)
    refused("score 1e-07, now 0.0001", score=1e-4)
    refused(r"nms \[0.5\], now \[0.3\]", nms=(0.3,))
    refused("masks True, now False", masks=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Execution, "of", lambda *_: Execution(torch.device("cpu")))
        refused("precision fp32, now bf16", precision="bf16")
    with pytest.raises(InputError, match="started with another checkpoint"):
        predict(random_model(RandomDetector(2, seed=1)), images, out, CHOSEN)
    with pytest.raises(InputError, match="started with other images"):
        predict(model, images[1:], out, CHOSEN)
    resized = replace(
        model, config=replace(model.config, input=replace(model.config.input, sizes=(64,)))
    )
    with pytest.raises(InputError, match="started with size"):
        predict(resized, images, out, CHOSEN)
    other = replace(model.config, model=replace(model.config.model, stride_in="1x1"))
    with pytest.raises(InputError, match=r"started with model.stride_in , now 1x1"):
        predict(replace(model, config=other), images, out, CHOSEN)
    other = replace(model.config, classifier=replace(model.config.classifier, loss="sigmoid"))
    with pytest.raises(InputError, match=r"started with classifier.loss softmax, now sigmoid"):
        predict(replace(model, config=other), images, out, CHOSEN)
    detector.recipe = DETECTRON2
    with pytest.raises(InputError, match=r"started with recipe.samples 2, now 0"):
        predict(model, images, out, CHOSEN)
    detector.recipe = PAPER
    detector.stop = -1
    predict(model, images, out, replace(CHOSEN, batch=3))  # does not matter
    assert out.exists()


def test_images_under_the_same_names(tmp_path: Path) -> None:
    """Others are refused, also of the same sizes in bytes; the same may have been copied."""
    folders = [tmp_path / name for name in ("a", "copy", "altered", "smaller")]
    images = []
    for folder in folders:
        folder.mkdir()
        images.append(write_images(folder, 5))
    content = bytearray((folders[2] / "image002.png").read_bytes())
    content[-30] ^= 1
    (folders[2] / "image002.png").write_bytes(content)
    with Image.open(folders[3] / "image003.png") as picture:
        picture.resize((9, 9)).save(folders[3] / "image003.png")
    out = tmp_path / "out.json"
    detector = Stopped(2, 1)
    with pytest.raises(KeyboardInterrupt):
        predict(random_model(detector), images[0], out, CHOSEN)
    detector.stop = -1
    for other in images[2:]:
        with pytest.raises(InputError, match="started with other images"):
            predict(random_model(detector), other, out, CHOSEN)
    with pytest.MonkeyPatch.context() as patch:  # of most images only the size is looked at
        patch.setattr(identity, "LOOKED_AT", 1)
        checksums = [identity.checksum_of_images(some) for some in images]
    assert checksums[0] == checksums[1] == checksums[2] != checksums[3]
    predict(random_model(detector), images[1], out, CHOSEN)
    assert len(detector.batches) == 6  # 3 of boxes, 3 of masks: nothing twice


def test_what_a_finished_prediction_left_is_not_gone_on_with(tmp_path: Path) -> None:
    """Of a process that was killed right before its end."""
    images = write_images(tmp_path, 3)
    out, work = tmp_path / "out.json", tmp_path / "out.json.work"
    predict(random_model(RandomDetector(2)), images, out, CHOSEN)
    before = out.read_bytes()
    for left in ((), ("complete",), ("complete", "damaged-0.json", "lock"), ("lock",)):
        work.mkdir()
        for name in left:
            (work / name).touch()
        with pytest.raises(InputError, match="already exists"):
            predict(random_model(RandomDetector(2)), images, out, CHOSEN)
        assert out.read_bytes() == before
        assert not work.exists()
        work.mkdir()
        for name in left:
            (work / name).touch()
        chosen = replace(CHOSEN, dets_per_class=3, overwrite=True)
        assert predict(random_model(RandomDetector(2)), images, out, chosen).files[0].classes == 2
        assert len(json.loads(out.read_text())) == 6
        assert not work.exists()
        out.write_bytes(before)


def test_files_of_others_stay(tmp_path: Path) -> None:
    images = write_images(tmp_path, 2)
    work = tmp_path / "out.json.work"
    work.mkdir()
    (work / "mine.txt").write_text("mine")
    predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", CHOSEN)
    assert [path.name for path in work.iterdir()] == ["mine.txt"]


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    images = write_images(tmp_path, 2)
    out = tmp_path / "out.json"
    model = random_model(RandomDetector(2))

    class Second(RandomDetector):
        def features(self, batch: Batch) -> list[torch.Tensor]:
            predict(model, images, out, CHOSEN)
            return []

    with pytest.raises(InputError, match="another process is predicting here"):
        predict(random_model(Second(2)), images, out, CHOSEN)
