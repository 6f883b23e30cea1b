"""The loader: which samples, in which order, whatever the processes."""

from __future__ import annotations

import os
import signal
from dataclasses import fields, replace

import pytest
import torch

from lvdet.errors import InputError
from lvdet.operating_system import core_count
from lvdet.training.configuration.config import Config, Input, Model, Run, Sampler, Schedule
from lvdet.training.data import Loader
from lvdet.training.data import loader_workers as workers
from lvdet.training.data.batch import Batch, Objects
from lvdet.training.data.collate import collate
from lvdet.training.data.training_samples import make_sample
from lvdet.training.samplers import build_sampler
from training.data.small_sets import random_set

torch.set_num_threads(1)

CONFIG = Config(
    input=Input(sizes=(24, 32, 40), flip=0.5),
    schedule=Schedule(steps=7, batch=4),
    sampler=Sampler("uniform"),
    run=Run(seed=3, workers=0),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return random_set(tmp_path_factory.mktemp("images")).read()


def same(a: Batch, b: Batch):
    for name in ("pixels", "size", "seed"):
        torch.testing.assert_close(getattr(a, name), getattr(b, name), rtol=0, atol=0)
    for field in fields(Objects):
        one, other = getattr(a.objects, field.name), getattr(b.objects, field.name)
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_batches_are_the_samples_of_the_stream(data):
    sampler = build_sampler(CONFIG.sampler, data)
    rows = [row for number in range(3) for row in sampler.epoch(number, 3).tolist()]
    batches = list(Loader(data, CONFIG))
    assert len(batches) == len(Loader(data, CONFIG)) == 7
    for step, batch in enumerate(batches):
        at = range(4 * step, 4 * step + 4)
        same(batch, collate([make_sample(data, rows[n], n, CONFIG) for n in at]))


@pytest.mark.parametrize("name", ["repeat_factor", "class_aware"])
def test_a_resumed_run_sees_what_it_would_have_seen(data, name):
    config = replace(CONFIG, sampler=Sampler(name, threshold=0.5))
    whole = list(Loader(data, config))
    for start in (0, 1, 5, 7):
        rest = list(Loader(data, config, start_step=start, steps=7))
        assert len(rest) == 7 - start
        for a, b in zip(rest, whole[start:], strict=True):
            same(a, b)


@pytest.mark.parametrize("world", [2, 4])
def test_processes_share_the_samples_of_one(data, world):
    whole = list(Loader(data, CONFIG))
    shares = [list(Loader(data, CONFIG, rank=rank, world=world)) for rank in range(world)]
    for step, batch in enumerate(whole):
        row = 0
        for share in shares:
            part = share[step]
            assert len(part.seed) == 4 // world
            for place in range(len(part.seed)):
                assert part.seed[place] == batch.seed[row]
                height, width = part.size[place].tolist()
                assert batch.size[row].tolist() == [height, width]
                assert torch.equal(
                    part.pixels[place, :, :height, :width], batch.pixels[row, :, :height, :width]
                )
                room = part.objects.label.shape[1]
                for field in fields(Objects):
                    mine = getattr(part.objects, field.name)[place]
                    assert torch.equal(mine, getattr(batch.objects, field.name)[row, :room])
                assert (batch.objects.label[row, room:] == -1).all()
                row += 1


@pytest.mark.parametrize("count", [1, 2])
def test_workers_change_nothing(data, count):
    state = torch.random.get_rng_state()
    config = replace(CONFIG, run=replace(CONFIG.run, workers=count))
    batches = list(Loader(data, config, start_step=1, steps=6))
    for a, b in zip(batches, Loader(data, CONFIG, start_step=1, steps=6), strict=True):
        same(a, b)
    assert torch.equal(state, torch.random.get_rng_state())  # the run's own are left alone


@pytest.mark.parametrize("count", [0, 2])
def test_errors_of_workers_are_one_line(tmp_path, count):
    data = random_set(tmp_path).read()
    for row in range(len(data)):
        data.path(row).write_bytes(b"no image")
    config = replace(CONFIG, run=Run(workers=count))
    with pytest.raises(InputError) as error:
        next(iter(Loader(data, config)))
    assert "cannot read the image" in str(error.value)
    assert "\n" not in str(error.value)
    assert "Traceback" not in str(error.value)


def _end_yourself(job):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_worker_that_is_killed():
    with pytest.raises(InputError, match=r"one of 1 processes .* was killed.* fewer run\.workers"):
        list(workers.work_ahead(_end_yourself, lambda: iter(range(3)), 1, 1))


def test_what_cannot_be_trained_on(data, tmp_path):
    with pytest.raises(InputError, match="batch is 4, not a multiple of the 3 processes"):
        Loader(data, CONFIG, world=3)
    made = random_set(tmp_path)
    for annotation in made.annotations[:5]:
        del annotation["segmentation"]
    boxes = made.read()
    with pytest.raises(InputError, match=r"train: 5 of \d+ annotations have no mask; set model"):
        Loader(boxes, CONFIG)
    without = Loader(boxes, replace(CONFIG, model=Model(masks=False)), steps=2)
    assert len(list(without)) == 2


def test_workers_have_room_in_shared_memory(monkeypatch):
    def free(size):
        usage = type("Usage", (), {"free": size})
        monkeypatch.setattr(workers.shutil, "disk_usage", lambda _: usage)

    megabytes = 1 << 20
    free(100_000 * megabytes)
    assert workers.plan(6, 60 * megabytes) == (6, 4)
    assert workers.plan(0, 60 * megabytes)[0] == 0
    assert workers.plan(-1, 1)[0] == min(8, core_count())
    free(64 * megabytes)  # what containers have
    assert workers.plan(6, 60 * megabytes)[0] == 0
    for size in (1, 3, 5, 10):
        count, ahead = workers.plan(6, size * megabytes)
        assert count >= 1
        assert count * (ahead + 1) * size <= 48
