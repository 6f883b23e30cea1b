"""Files that are not images end a prediction, or are skipped and named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inference.brute_force import records_of
from inference.random_detector import SIZE, RandomDetector, Stopped, random_model, write_images
from lvdet.errors import InputError
from lvdet.inference.loading import DamagedImageError, is_damaged, load
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings

torch.set_num_threads(1)
CHOSEN = Settings(dets_per_image=0, dets_per_class=8, workers=0, batch=3)
SKIP = replace(CHOSEN, skip_damaged=True)


def damage(images: list[tuple[int, Path]], *places: int) -> None:
    """Cuts files off in the middle."""
    for place in places:
        path = images[place][1]
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_without_the_damaged(tmp_path: Path, workers: int) -> None:
    """Those that are sound come in the batches they belong to, in order, also where a whole batch
    is damaged."""
    images = write_images(tmp_path, 11)
    damage(images, 1, 6, 7, 8, 10)
    told: list[int] = []
    found = [
        given.ids
        for given in load(images, SIZE, 3, workers, lambda d: told.extend(i for i, _ in d))
    ]
    ids = [image_id for image_id, _ in images]
    assert found == [[ids[0], ids[2]], ids[3:6], [ids[9]]]
    assert told == [ids[place] for place in (1, 6, 7, 8, 10)]
    with pytest.raises(DamagedImageError, match=r"image001.png: cannot read the image"):
        list(load(images, SIZE, 3, workers))


def test_a_file_that_is_gone_is_not_damaged(tmp_path: Path) -> None:
    images = write_images(tmp_path, 3)
    images[1][1].unlink()
    assert not is_damaged(images[0][1])
    assert not is_damaged(images[1][1])
    with pytest.raises(InputError, match="no such file") as error:
        predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", SKIP)
    assert not isinstance(error.value, DamagedImageError)


@pytest.mark.parametrize("masks", [True, False])
def test_the_others_are_predicted(tmp_path: Path, masks: bool) -> None:
    """What was finished before counts when the setting is added; the outcome is that of the
    images that are sound."""
    images = write_images(tmp_path, 10)
    damage(images, 4, 9)
    out, sound = tmp_path / "out.json", tmp_path / "sound.json"
    detector = RandomDetector(2)
    chosen = replace(CHOSEN, masks=masks)
    with pytest.raises(DamagedImageError, match=r"image004\.png"):
        predict(random_model(detector), images, out, chosen)
    assert detector.batches == [3]
    summary = predict(random_model(detector), images, out, replace(chosen, skip_damaged=True))
    assert detector.batches[1:3] == [2, 3]
    names = {images[place][0]: images[place][1].name for place in (4, 9)}
    assert summary.damaged == names
    (note,) = summary.notes
    assert note.endswith("left without detections: 2 (image004.png, image009.png)")
    assert summary.images == 10
    assert summary.to_dict()["damaged"] == [
        {"id": image_id, "file_name": name} for image_id, name in names.items()
    ]
    json.dumps(summary.to_dict()["damaged"])
    rest = [image for image in images if image[0] not in names]
    predict(random_model(RandomDetector(2)), rest, sound, chosen)
    assert records_of(out) == records_of(sound)


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_they_are_named_by_the_process_that_goes_on(tmp_path: Path, stop: int) -> None:
    images = write_images(tmp_path, 9)
    damage(images, 0, 1, 2, 7)
    chosen = replace(SKIP, dets_per_class=300)
    detector = Stopped(2, stop)
    with pytest.raises(KeyboardInterrupt):
        predict(random_model(detector), images, tmp_path / "out.json", chosen)
    detector.stop = -1
    summary = predict(random_model(detector), images, tmp_path / "out.json", chosen)
    assert [*summary.damaged] == [images[place][0] for place in (0, 1, 2, 7)]
    assert not (tmp_path / "out.json.work").exists()


def test_only_the_first_are_named_in_the_note(tmp_path: Path) -> None:
    images = write_images(tmp_path, 9)
    damage(images, *range(8))
    summary = predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", SKIP)
    assert "detections: 8 (image000.png, " in summary.notes[0]
    assert summary.notes[0].endswith("image004.png and 3 more)")
    assert len(summary.damaged) == 8
