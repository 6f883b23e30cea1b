"""Predicts again and again, each time killed some steps later, and resumes. At the end,
where what was finished is put in its place and the rest removed, steps lie closer.

    python kill_at_steps.py FOLDER STRIDE STRIDE_AT_THE_END

A step is a file that is opened, renamed or removed, a folder made or removed, or half of a write.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from inference.random_detector import RandomDetector, random_model, write_images
from lvdet.errors import InputError
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.inference.work_folder import OtherSettingsError
from lvdet.writers import journal
from writers.count_down import count_down

#: Steps at the end that lie closer, beside those after the last that was killed.
END = 10


def main(folder: Path, stride: int, at_the_end: int) -> None:
    torch.set_num_threads(1)
    os.fsync = lambda _: None  # for crashes of the machine; slow
    journal.FILE_BYTES = 4000
    (folder / "images").mkdir()
    images = write_images(folder / "images", 5)
    settings = Settings(dets_per_image=4, dets_per_class=6, nms=(0.2, 0.6), batch=2, workers=0)
    whole = folder / "whole.jsonl"
    predict(random_model(RandomDetector(2, rois=12)), images, whole, settings)
    expected = [path.read_bytes() for path in settings.targets(whole)]
    other = replace(settings, dets_per_class=4, overwrite=True)
    different = folder / "different.jsonl"
    predict(random_model(RandomDetector(2, rois=12)), images, different, other)
    expected_of_other = [path.read_bytes() for path in settings.targets(different)]

    def killed_at(step: int, *, others: bool) -> bool:
        target = folder / f"{step}" / "out.jsonl"
        target.parent.mkdir()
        child = os.fork()
        if child == 0:
            try:
                count_down(step, target.parent)
                predict(random_model(RandomDetector(2, rois=12)), images, target, settings)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        ended = not os.WIFSIGNALED(status)
        assert not ended or status == 0, status
        if others:  # other settings are refused, or have an outcome of their own
            again = Path(shutil.copytree(target.parent, folder / f"{step}-other")) / "out.jsonl"
            try:
                predict(random_model(RandomDetector(2, rois=12)), images, again, other)
            except OtherSettingsError:
                assert (again.with_name("out.jsonl.work") / "settings.json").exists(), step
            else:
                found = [path.read_bytes() for path in settings.targets(again)]
                assert found == expected_of_other, step
                assert len(os.listdir(again.parent)) == 2, os.listdir(again.parent)
        done = all(path.exists() for path in settings.targets(target))
        if not done or target.with_name("out.jsonl.work").exists():
            try:
                predict(random_model(RandomDetector(2, rois=12)), images, target, settings)
            except InputError:  # all was in its place
                assert done, step
        found = [path.read_bytes() for path in settings.targets(target)]
        assert found == expected, step
        assert len(os.listdir(target.parent)) == 2, os.listdir(target.parent)
        return not ended

    steps = 0
    while killed_at(steps, others=False):
        steps += stride
    for step in range(max(0, steps - stride - END), steps, at_the_end):
        if step % stride:
            killed_at(step, others=True)
    print(steps // stride)


main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
