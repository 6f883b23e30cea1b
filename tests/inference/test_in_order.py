"""What is done on a thread of its own comes in order, and its errors end what gave it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch

from inference.random_detector import RandomDetector, random_model, write_images
from lvdet.errors import OutputError
from lvdet.inference.in_order import InOrder
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.writers.top_k_writer import TopKWriter

torch.set_num_threads(1)


def test_in_order_and_all_before_the_end() -> None:
    done: list[int] = []
    threads = set()

    def slow(number: int) -> None:
        time.sleep(0.001)
        threads.add(threading.get_ident())
        done.append(number)

    with InOrder(2) as work:
        for number in range(20):
            work.give(lambda number=number: slow(number))  # type: ignore[misc]
    assert done == [*range(20)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_as_much_as_there_is_room_for() -> None:
    """What is larger than the room is given when nothing waits."""
    done: list[int] = []
    free = threading.Event()
    with InOrder(10) as work:
        work.give(free.wait, 50)  # type: ignore[arg-type]
        for number in range(3):
            work.give(lambda number=number: done.append(number), 3)  # type: ignore[misc]
        more = threading.Thread(target=work.give, args=(lambda: done.append(3), 3))
        more.start()
        more.join(0.05)
        assert more.is_alive()
        assert done == []
        free.set()
        more.join()
    assert done == [0, 1, 2, 3]


def test_an_error_ends_it() -> None:
    """What comes after it is not done, and whoever gives more is told."""
    done: list[int] = []

    def fail() -> None:
        raise OutputError("the disk is full")

    def give(more: int) -> None:
        with InOrder(1) as work:
            work.give(fail)
            for number in range(more):
                work.give(lambda number=number: done.append(number))  # type: ignore[misc]

    for more in (0, 1, 100):
        with pytest.raises(OutputError, match="disk is full"):
            give(more)
    assert done == []


def test_an_error_of_the_caller_comes_first() -> None:
    """What it gave before is done all the same."""
    done: list[int] = []

    def give() -> None:
        with InOrder(3) as work:
            work.give(lambda: time.sleep(0.01))
            work.give(lambda: done.append(1))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        give()
    assert done == [1]


@pytest.mark.parametrize("after", [4, 14])
def test_an_error_of_the_writer_ends_a_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """In the first pass or the second, with its message; then it resumes."""
    images = write_images(tmp_path, 9)
    add = TopKWriter.add
    added: list[object] = []

    def failing(self: TopKWriter, image_id: object, *rows: object) -> None:
        if len(added) == after:
            raise OutputError("out.json.work: cannot write: no space left")
        added.append(image_id)
        add(self, image_id, *rows)

    chosen = Settings(dets_per_class=400, workers=0, batch=2)
    predict(random_model(RandomDetector(2)), images, tmp_path / "whole.json", chosen)
    with monkeypatch.context() as patch:
        patch.setattr(TopKWriter, "add", failing)
        with pytest.raises(OutputError, match="no space left"):
            predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", chosen)
    assert len(added) == after
    predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", chosen)
    assert (tmp_path / "out.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
