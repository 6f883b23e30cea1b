"""Two passes in bounded memory find what plain sorting of everything finds."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.ops import box_iou

import lvdet
from inference.brute_force import assert_same, brute_force, records_of
from inference.random_detector import RandomCandidates, RandomDetector, random_model, write_images
from lvdet.errors import InputError, LvdetError
from lvdet.inference import box_finder, mask_pass, selection
from lvdet.inference.device import Execution
from lvdet.inference.picture import detections_on
from lvdet.inference.predict import predict
from lvdet.inference.selection import Selected, Wanted, select
from lvdet.inference.settings import Settings
from lvdet.limits.budgets import PerClass, PerImage, apply
from lvdet.training.data.batch import Batch
from lvdet.training.model.candidates import Candidates

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, Path]]:
    return write_images(tmp_path_factory.mktemp("images"), 11)


@pytest.mark.parametrize(
    ("dets_per_class", "dets_per_image", "apart"),
    [
        (1, 0, True),
        (9, 0, False),
        (70, 7, True),
        (9, 12, False),
        (1, 40, True),
        (0, 1, False),
        (0, 25, True),
        (10_000, 300, True),
    ],
)
def test_as_by_brute_force(
    images: list[tuple[int, Path]],
    tmp_path: Path,
    dets_per_class: int,
    dets_per_image: int,
    apart: bool,
) -> None:
    """Few of the best candidates of an image are looked at first, so more have to be."""
    model = random_model(RandomDetector(4, apart=apart))
    out = tmp_path / "out.json"
    kept = {"dets_per_class": dets_per_class, "dets_per_image": dets_per_image}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_finder, "LOOKED_AT", 1)
        summary = predict(model, images, out, Settings(**kept, score=0.25, workers=0, batch=4))  # type: ignore[arg-type]
    expected = brute_force(model, images, **kept, score=0.25, nms=0.5)
    assert_same(records_of(out), expected)
    (file,) = summary.files
    assert (file.path, file.detections, file.classes) == (out, len(expected), 4)
    if dets_per_image == 0:
        assert file.full_classes == 4
    assert (summary.images, summary.masks, summary.batch) == (11, True, 4)
    assert os.listdir(tmp_path) == ["out.json"]


def test_each_budget_of_the_file_is_that_of_all(
    images: list[tuple[int, Path]], tmp_path: Path
) -> None:
    """What either budget leaves of the file, row by row, is what it leaves of all detections."""
    model = random_model(RandomDetector(4))
    tables = {}
    for name, kept in {
        "union": {"dets_per_class": 40, "dets_per_image": 9},
        "class": {"dets_per_class": 40, "dets_per_image": 0},
        "image": {"dets_per_class": 0, "dets_per_image": 9},
        "all": {"dets_per_class": 10**6, "dets_per_image": 0},
    }.items():
        chosen = Settings(**kept, workers=0, masks=False, batch=3)  # type: ignore[arg-type]
        predict(model, images, tmp_path / f"{name}.json", chosen)
        tables[name] = lvdet.read_detections(tmp_path / f"{name}.json")
    for budget, name in ((PerClass(40), "class"), (PerImage(9), "image")):
        expected = tables[name]
        for source in ("union", "all"):
            table = tables[source]
            left = table[apply([budget], table)]
            for column in ("score", "box"):
                assert np.array_equal(getattr(left, column), getattr(expected, column))
            assert (
                left.image_ids[left.image].tolist() == expected.image_ids[expected.image].tolist()
            )


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet"])
def test_nothing_found(images: list[tuple[int, Path]], tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    summary = predict(random_model(RandomDetector(3)), images, out, Settings(score=2.0, workers=0))
    assert summary.files[0].detections == len(lvdet.read_detections(out)) == 0


def test_scores_that_are_not_numbers(images: list[tuple[int, Path]], tmp_path: Path) -> None:
    """Of a detector whose training has gone wrong: they do not count as detections."""

    class Diverged(RandomDetector):
        def candidates(self, features: list[torch.Tensor], batch: Batch) -> Candidates:
            found = super().candidates(features, batch)
            found.score[:, ::2] = torch.nan
            return found

    out = tmp_path / "out.json"
    predict(random_model(Diverged(3)), images, out, Settings(workers=0))
    expected = brute_force(
        random_model(Diverged(3)), images, dets_per_class=10_000, score=1e-7, nms=0.5
    )
    assert_same(records_of(out), expected)


def test_without_masks(images: list[tuple[int, Path]], tmp_path: Path) -> None:
    detector = RandomDetector(3)
    expected = brute_force(
        random_model(detector), images, dets_per_class=20, score=0.1, nms=0.3, masks=False
    )
    by_option, by_model = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    chosen = Settings(dets_per_image=0, dets_per_class=20, score=0.1, nms=(0.3,), workers=0)
    predict(
        random_model(detector),
        images,
        by_option,
        Settings(
            dets_per_image=0, dets_per_class=20, score=0.1, nms=(0.3,), workers=0, masks=False
        ),
    )
    predict(random_model(detector, masks=False), images, by_model, chosen)
    assert by_option.read_bytes() == by_model.read_bytes()
    assert_same(records_of(by_option), expected, masks=False)
    assert detector.calls == 0


def test_several_thresholds_are_those_of_runs_of_their_own(
    images: list[tuple[int, Path]], tmp_path: Path
) -> None:
    detector = RandomDetector(3, rois=60, levels=100)
    model = random_model(detector)
    thresholds = (0.05, 0.3, 0.6)
    together = Settings(dets_per_image=0, dets_per_class=150, nms=thresholds, workers=0)
    summary = predict(model, images, tmp_path / "out.json", together)
    shared, detector.calls = detector.calls, 0
    assert [file.path.name for file in summary.files] == [
        "out.nms0.05.json",
        "out.nms0.3.json",
        "out.nms0.6.json",
    ]
    for file, nms in zip(summary.files, thresholds, strict=True):
        alone = tmp_path / "alone.json"
        one = Settings(dets_per_image=0, dets_per_class=150, nms=(nms,), workers=0, overwrite=True)
        predict(model, images, alone, one)
        assert alone.read_bytes() == file.path.read_bytes()
    assert len({file.path.read_bytes() for file in summary.files}) == 3
    # Masks that thresholds share are made once.
    rows = {
        (row["image_id"], row["category_id"], row["score"], *row["bbox"])
        for file in summary.files
        for row in records_of(file.path)
    }
    assert shared == len(rows) < detector.calls


@pytest.mark.parametrize(("batch", "workers"), [(1, 0), (3, 0), (5, 0), (40, 0), (3, 2)])
def test_batches_and_workers_change_nothing(
    images: list[tuple[int, Path]],
    tmp_path: Path,
    batch: int,
    workers: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = random_model(RandomDetector(3))
    usual, other = tmp_path / "usual.json", tmp_path / "other.json"
    predict(model, images, usual, Settings(dets_per_image=0, dets_per_class=11, workers=0))
    monkeypatch.setattr(mask_pass, "ROIS", 7)
    predict(
        model,
        images,
        other,
        Settings(dets_per_image=0, dets_per_class=11, workers=workers, batch=batch),
    )
    assert usual.read_bytes() == other.read_bytes()


def test_detections_on_one_image(images: list[tuple[int, Path]], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    predict(
        random_model(RandomDetector(3)),
        images,
        out,
        Settings(dets_per_image=0, dets_per_class=11, workers=0),
    )
    records = records_of(out)
    for image_id, _ in images:
        expected = [record for record in records if record["image_id"] == image_id]
        found = detections_on(out, image_id)
        assert found.score.tolist() == [record["score"] for record in expected]
        assert found.box.tolist() == [record["bbox"] for record in expected]
        counts = [record["segmentation"]["counts"] for record in expected]
        masks = [] if found.masks is None else [*map(found.masks.row, range(len(found)))]
        assert [mask.decode() for mask in masks] == counts
    assert len(detections_on(out, -5)) == 0


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 25), st.integers(1, 3)),
    levels=st.integers(1, 6),
    nms=st.floats(0, 0.95),
    dets_per_image=st.integers(0, 8),
    most=st.integers(1, 30),
    spare=st.integers(0, 9),
)
def test_what_is_selected(
    seed: int,
    shape: tuple[int, int, int],
    levels: int,
    nms: float,
    dets_per_image: int,
    most: int,
    spare: int,
) -> None:
    """Of candidates with many ties, a bound for each class: as by suppressing all of them and
    then taking what is above the bounds, and the best of each image where they are enough."""
    random = torch.Generator().manual_seed(seed)
    images, _, classes = shape
    score = torch.randint(0, levels + 1, shape, generator=random) / levels
    corner = torch.randint(0, 8, (*shape, 2), generator=random).float()
    size = torch.randint(0, 8, (*shape, 2), generator=random)
    code = torch.cat([corner, corner + size], dim=-1)
    bound = torch.randint(0, levels, (classes,), generator=random) / levels
    none = torch.zeros(images, 2)
    candidates = RandomCandidates(score, code[:, :, 0], none, code, (1.0, 1.0, 1.0, 1.0))
    wanted = Wanted(bound, 0.0, dets_per_image, [nms])
    _, count = select(candidates, wanted, most, None)
    (found,), again = select(candidates, wanted, most, int(count) + spare)
    assert count == again
    box = code.flatten(0, 2)
    ends = [0, *found.ends.tolist()]
    for image in range(images):
        expected = _selected(score[image], code[image], nms)
        above = [(r, k) for r, k in expected if score[image, r, k] > bound[k]]
        if found.enough[image]:
            above = [one for one in expected if one in above or one in expected[:dets_per_image]]
        places = found.place[ends[image] : ends[image + 1]]
        rows = [(int(p) // classes % shape[1], int(p) % classes) for p in places]
        if not found.enough[image]:
            assert most < shape[1] * classes
            assert set(above) <= set(rows)
            continue
        assert rows == above
        assert torch.equal(found.box[ends[image] : ends[image + 1]], box[places])
        assert torch.equal(found.score[ends[image] : ends[image + 1]], score.flatten()[places])


def _selected(score: torch.Tensor, box: torch.Tensor, nms: float) -> list[tuple[int, int]]:
    """Rows and classes of one image's detections, greedily, by descending score."""
    order = sorted(np.ndindex(*score.shape), key=lambda one: (-float(score[one]), one))
    kept: list[tuple[int, int]] = []
    for row, label in order:
        if score[row, label] <= 0 or (box[row, label, 2:] <= box[row, label, :2]).any():
            continue
        others = [box[r, k] for r, k in kept if k == label]
        if others:
            overlap = box_iou(box[row, label][None], torch.stack(others))
            if overlap.max() > torch.tensor(nms, dtype=torch.float32):
                continue
        kept.append((row, label))
    return kept


def test_while_the_device_works(
    images: list[tuple[int, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: the next batch is begun before this one is read, with room for about as many
    candidates as the last had, which is too little where an image has more."""
    usual, other = tmp_path / "usual.json", tmp_path / "other.json"
    chosen = Settings(dets_per_class=30, dets_per_image=5, workers=0, batch=1)
    few, many = RandomDetector(3, rois=9), RandomDetector(3, rois=60)
    rooms: list[tuple[int | None, int]] = []
    seen: dict[int, int] = {}
    choose = box_finder.select

    def noted(*arguments: object) -> tuple[list[Selected], torch.Tensor]:
        found, count = choose(*arguments)  # type: ignore[arg-type]
        rooms.append((arguments[3], int(count)))  # type: ignore[arg-type]
        return found, count

    def swing(self: RandomDetector, features: list[torch.Tensor], batch: Batch) -> Candidates:
        number = seen.setdefault(int(features[0].sum(dtype=torch.int64)), len(seen))
        one = many if number % 4 >= 2 else few
        return RandomDetector.candidates(one, features, batch)

    detector = RandomDetector(3)
    monkeypatch.setattr(detector, "candidates", partial(swing, detector))
    predict(random_model(detector), images, usual, chosen)
    monkeypatch.setattr(Execution, "asynchronous", property(lambda _: True))
    monkeypatch.setattr(box_finder, "LEAST_ROOM", 1)
    monkeypatch.setattr(box_finder, "LOOKED_AT", 1)
    monkeypatch.setattr(box_finder, "select", noted)
    predict(random_model(detector), images, other, chosen)
    assert usual.read_bytes() == other.read_bytes()
    assert any(room is not None and count > room for room, count in rooms)
    assert any(room is None for room, _ in rooms)  # an image of which more were looked at
    expected = brute_force(
        random_model(detector), images, dets_per_class=30, dets_per_image=5, score=1e-7, nms=0.5
    )
    assert_same(records_of(other), expected)


def test_candidates_are_dropped_before_suppression(
    images: list[tuple[int, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once classes are full, fewer come to be suppressed."""
    counts = []
    suppress = selection.suppressed_in_groups

    def counting(box: torch.Tensor, *others: object) -> torch.Tensor:
        counts.append(len(box))
        return suppress(box, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(selection, "suppressed_in_groups", counting)
    model = random_model(RandomDetector(3))
    chosen = Settings(dets_per_class=5, dets_per_image=0, workers=0, batch=1)
    predict(model, images, tmp_path / "a.json", chosen)
    assert counts[-1] < counts[0] / 3


class Cramped(RandomDetector):
    """Has memory for only so many images."""

    fits = 2

    def features(self, batch: object) -> list[torch.Tensor]:
        found = super().features(batch)  # type: ignore[arg-type]
        if len(found) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found


def test_out_of_memory(images: list[tuple[int, Path]], tmp_path: Path) -> None:
    """Goes on with fewer images at a time, says so once, and gives up at one."""
    roomy, small = tmp_path / "roomy.json", tmp_path / "small.json"
    chosen = Settings(dets_per_image=0, dets_per_class=11, workers=0)
    predict(random_model(RandomDetector(3)), images, roomy, chosen)
    cramped = Cramped(3)
    summary = predict(random_model(cramped), images, small, chosen)
    assert roomy.read_bytes() == small.read_bytes()
    assert cramped.batches[:6] == [8, 4, 2, 2, 2, 2]
    assert summary.batch == 2
    assert len(summary.notes) == 1
    assert "8 images per batch" in summary.notes[0]
    cramped.fits = 0
    with pytest.raises(LvdetError, match="not enough GPU memory for a single image"):
        predict(random_model(cramped), images, tmp_path / "none.json", chosen)


def test_what_makes_no_sense_is_refused(images: list[tuple[int, Path]], tmp_path: Path) -> None:
    model = random_model(RandomDetector(2))
    for wrong in (
        {"dets_per_class": 0, "dets_per_image": 0},
        {"dets_per_image": -1},
        {"nms": (0.5, 1.5)},
        {"nms": (0.5, 0.5)},
        {"batch": 0},
    ):
        with pytest.raises(InputError):
            Settings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown extension"):
        predict(model, images, tmp_path / "out.txt")
    with pytest.raises(InputError, match="occurs more than once"):
        predict(model, [images[0], images[0]], tmp_path / "out.json")
    (tmp_path / "out.json").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        predict(model, images, tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out.json"]
