"""Two processes predict what one does, and end together."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import lvdet
from inference.one_of_two import BOXES, CHOSEN
from inference.random_detector import RandomDetector, random_model, write_images
from inference.tiny_run import write_run
from lvdet.errors import InputError
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.inference.shares import share
from lvdet.training.loop.processes import Process

torch.set_num_threads(1)
HERE = Path(__file__).parent
#: One that is damaged, in the second half of them.
DAMAGED = 7


def port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def size_of(path: Path) -> dict[str, int]:
    with Image.open(path) as picture:
        return {"width": picture.width, "height": picture.height}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two")
    (path / "images").mkdir()
    images = write_images(path / "images", 11)
    (path / "list").write_text(json.dumps([[number, str(file)] for number, file in images]))
    shutil.copytree(path / "images", path / "damaged")
    (path / "damaged" / images[DAMAGED][1].name).write_bytes(b"no picture")
    content = {
        "images": [{"id": i, "file_name": p.name, **size_of(p)} for i, p in images],
        "categories": [{"id": i, "name": f"class_{i}"} for i in (5, 8, 11)],
        "annotations": [
            {
                "id": number,
                "image_id": i,
                "category_id": 5 + 3 * (number % 3),
                "bbox": [5, 5, 10, 10 + number],
                "area": 100,
                "iscrowd": 0,
            }
            for number, (i, _) in enumerate(images, start=1)
        ],
    }
    (path / "val.json").write_text(json.dumps(content))
    left = path / "run" / "predictions" / "step-000000005.json.work"
    left.mkdir(parents=True)  # of another run
    (left / "settings.json").write_text("{}")
    return path


@pytest.fixture(scope="module")
def met(folder: Path) -> list[dict[str, Any]]:
    """What each of the processes met."""
    env = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port()}
    processes = [
        subprocess.Popen(
            [sys.executable, HERE / "one_of_two.py", folder],
            env=env | {"RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ended = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended
    return [json.loads(out) for out, _ in ended]


def one(folder: Path, name: str, settings: Settings, images: str = "images") -> list[bytes]:
    """What one process writes."""
    listed = [
        (i, folder / images / Path(p).name) for i, p in json.loads((folder / "list").read_text())
    ]
    out = folder / f"one-{name}"
    predict(random_model(RandomDetector(3)), listed, out, replace(settings, overwrite=True))
    return [path.read_bytes() for path in settings.targets(out)]


def written(folder: Path, name: str, settings: Settings) -> list[bytes]:
    return [path.read_bytes() for path in settings.targets(folder / name)]


def test_the_same_as_one(folder: Path, met: list[dict[str, Any]]) -> None:
    """Byte for byte, each with its own half of the batches."""
    assert written(folder, "both.jsonl", CHOSEN) == one(folder, "both.jsonl", CHOSEN)
    assert written(folder, "boxes.json", BOXES) == one(folder, "boxes.json", BOXES)
    one_batch = replace(CHOSEN, batch=16)
    assert written(folder, "few.jsonl", CHOSEN) == one(folder, "few.jsonl", one_batch)
    assert not list(folder.glob("both*.work")) + list(folder.glob("boxes*.work"))
    for name, passes, files in (("both.jsonl", 2, 2), ("boxes.json", 1, 1)):
        assert [one[name][0][:2] for one in met] == [[11, files], [11, 0]]
        assert [one[name][1] for one in met] == [3 * passes, 3 * passes]  # of 6 batches


def test_an_error_of_one_ends_both(folder: Path, met: list[dict[str, Any]]) -> None:
    """With one message; finished work stays, and the result is the same."""
    others = ["AnotherProcessError", "another process failed"]
    own = ["LvdetError", "the detector fell over"]
    first, second = (one["failed.jsonl"] for one in met)
    assert [first[0], second[0], second[1]] == [others, own, 1]
    assert [first[2], second[2], second[3]] == [others, own, 4]
    assert second[5] == 1  # the last batch of masks
    assert written(folder, "failed.jsonl", CHOSEN) == one(folder, "failed.jsonl", CHOSEN)
    assert [one["both.jsonl"][2][0] for one in met] == ["InputError", "AnotherProcessError"]
    assert "already exists" in met[0]["both.jsonl"][2][1]


def test_damaged_images_of_both(folder: Path, met: list[dict[str, Any]]) -> None:
    (_, _, first, *_), (second, *_) = (one["sound.jsonl"] for one in met)
    assert second[0] == "DamagedImageError"
    assert f"image{DAMAGED:03}.png" in second[1]
    assert first[2] == [f"damaged images, left without detections: 1 (image{DAMAGED:03}.png)"]
    chosen = replace(CHOSEN, skip_damaged=True)
    assert written(folder, "sound.jsonl", CHOSEN) == one(folder, "sound.jsonl", chosen, "damaged")


def test_another_number_of_processes(folder: Path, met: list[dict[str, Any]]) -> None:
    assert met[0]["left.jsonl"][0][0] == "LvdetError"
    listed = [(i, Path(p)) for i, p in json.loads((folder / "list").read_text())]
    with pytest.raises(InputError, match=r"left.jsonl.work: started with processes 2, now 1"):
        predict(random_model(RandomDetector(3)), listed, folder / "left.jsonl", CHOSEN)


def test_both_evaluate_while_training(folder: Path, met: list[dict[str, Any]]) -> None:
    """In place of what another run has left; the first has the outcome."""
    result = folder / "run" / "predictions" / "step-000000005.json"
    expected = lvdet.evaluate(folder / "val.json", result)
    assert met[0]["evaluation"]["old"]["AP50"] == expected["old"].AP50 > 0
    assert met[1]["evaluation"] == {}
    assert [path.name for path in result.parent.iterdir()] == [result.name]


@pytest.mark.parametrize("world", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("count", [0, 1, 11, 16])
def test_shares(world: int, count: int) -> None:
    """Whole batches, all of them, in order, and about as many for each."""
    images = [(number, Path()) for number in range(count)]
    cpu = torch.device("cpu")
    shares = [share(images, 3, Process(rank, world, cpu)) for rank in range(world)]
    assert [image for some in shares for image in some] == images
    ends = {count}
    assert all(
        some[0][0] % 3 == 0 and (some[-1][0] + 1 in ends or len(some) % 3 == 0)
        for some in shares
        if some
    )
    sizes = [-(-len(some) // 3) for some in shares]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.long
def test_from_the_command_line(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    command = ["predict", folder / "run", folder / "images", "--batch", "1", "--workers", "0"]
    command += ["--device", "cpu", "--dets-per-class", "40", "--dets-per-image", "9", "-o"]
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    start += ["--master-addr", "127.0.0.1", "--master-port", port(), "-m", "lvdet"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}

    def called(start: list[str], out: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*start, *command, tmp_path / out], capture_output=True, text=True, env=env
        )

    two, one = called(start, "two.json"), called([sys.executable, "-m", "lvdet"], "one.json")
    assert (two.returncode, one.returncode) == (0, 0), two.stderr
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    assert two.stdout.count("wrote") == one.stdout.count("wrote") == 2
    (folder / "images" / "4.png").write_bytes(b"no picture")
    failed = called(start, "failed.json")
    assert failed.returncode != 0
    assert failed.stderr.count("lvdet: error") == 1
    assert "4.png: cannot read the image" in failed.stderr
