"""Images with their detections: the right ones, bounded in size, from nowhere but the folder."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import lvdet
from lvdet.errors import InputError
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.reporting.detection_pictures import (
    MOST_EXCHANGED,
    SIDE,
    TOP,
    PictureFolder,
    take_pictures,
)
from lvdet.simulation.simulate import simulate
from lvdet.studies.account import outcomes

CAP = 40


@pytest.fixture(scope="module")
def pair() -> Pair:
    gt, dt = simulate(12, 400, dets_per_image=None, candidates_per_image=2000, bias=1.0, seed=1)
    return load_pair(gt, dt, None)


def rescored(
    pair: Pair, scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    return scores, outcomes(pair.with_scores(scores).matches, len(scores))


@pytest.fixture
def folder(pair: Pair, tmp_path: Path) -> Path:
    images = pair.gt.images
    for name, width, height in zip(images.file_names, images.width, images.height, strict=True):
        Image.new("RGB", (int(width), int(height)), (90, 120, 150)).save(tmp_path / name)
    return tmp_path


def test_the_best_of_an_image_with_their_outcomes(pair: Pair, folder: Path) -> None:
    """By hand: rows of the image by descending score, and right ones as the match has them."""
    matches = pair.matches
    scores = 1 - pair.results.ranking.score  # the order turned around
    wanted = tuple(pair.gt.images.ids[[4, 2]].tolist())
    pictures = take_pictures(
        pair, rescored(pair, scores), PictureFolder(folder, wanted), class_cap=CAP
    )
    assert [picture.image_id for picture in pictures] == list(wanted)
    table = pair.results.detections
    for picture in pictures:
        rows = np.flatnonzero(table.image_ids[table.image] == picture.image_id)
        for shown, values in ((picture.before, table.score), (picture.after, scores)):
            order = rows[np.argsort(-values[rows], kind="stable")][:TOP]
            assert len(shown) == TOP
            assert [box.score for box in shown] == values[order].tolist()
            assert [list(box.box) for box in shown] == table.box[order].tolist()
            names = {
                int(number): name
                for number, name in zip(
                    pair.gt.categories.ids, pair.gt.categories.names, strict=True
                )
            }
            ids = table.category_ids[table.category[order]].tolist()
            assert [box.name for box in shown] == [names[number] for number in ids]
        matched, ignored = matches.flags(0)
        right = set(matches.detection[matched & ~ignored].tolist())
        wrong = set(matches.detection[~matched & ~ignored].tolist())
        order = rows[np.argsort(-table.score[rows], kind="stable")][:TOP]
        for row, box in zip(order.tolist(), picture.before, strict=True):
            expected = "right" if row in right else "wrong" if row in wrong else "not counted"
            assert box.outcome == expected


def test_what_re_ranking_exchanged(pair: Pair, folder: Path) -> None:
    """As `rerank` has it."""
    table = lvdet.Detections(**vars(pair.results.detections))
    best = lvdet.rerank(pair.gt, table, dets_per_class=CAP)
    pictures = take_pictures(pair, None, PictureFolder(folder), class_cap=CAP)
    assert pictures
    for picture in pictures:
        account = best.account().image(picture.image_id)
        assert picture.class_cap == CAP
        assert picture.dropped_count == len(account.dropped)
        assert picture.added_count == len(account.added)
        assert len(picture.dropped) == min(len(account.dropped), MOST_EXCHANGED)
        for box, item in zip(picture.dropped, account.dropped, strict=False):
            assert (box.name, box.score, box.outcome) == (item.name, item.score, item.outcome)
        assert picture.after == []
    assert any(picture.dropped for picture in pictures)


def test_chosen_are_those_that_change_most(pair: Pair, folder: Path) -> None:
    """Images in which no detection that counts changes come last."""
    scores = pair.results.ranking.score.copy()
    changed = 5
    rows = np.flatnonzero(
        pair.results.ranking.image_ids[pair.results.ranking.image] == pair.gt.images.ids[changed]
    )
    scores[rows] = 1 - scores[rows]
    first, *_ = take_pictures(pair, rescored(pair, scores), PictureFolder(folder), class_cap=CAP)
    assert first.image_id == pair.gt.images.ids[changed]


def test_thumbnails_are_bounded(pair: Pair, tmp_path: Path) -> None:
    name = pair.gt.images.file_names[0]
    noise = np.random.default_rng(0).integers(0, 256, (2000, 3000, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / name, quality=95)
    asked = PictureFolder(tmp_path, (int(pair.gt.images.ids[0]),))
    (picture,) = take_pictures(pair, None, asked, class_cap=CAP)
    with Image.open(io.BytesIO(picture.thumbnail)) as small:
        assert max(small.size) == SIDE
        assert small.format == "JPEG"
    assert len(picture.thumbnail) < 600_000
    # Boxes are of the annotated image, whatever the file's size.
    assert (picture.width, picture.height) == (
        pair.gt.images.width[0],
        pair.gt.images.height[0],
    )


def test_only_files_of_the_folder_are_read(pair: Pair, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    folder = PictureFolder(inside)
    (inside / "val2017").mkdir()
    for name in (
        "../secret.png",
        "../../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "",
        "\0",
        "none.png",
    ):
        assert folder.find(name) is None, name
    Image.new("RGB", (8, 8)).save(inside / "val2017" / "a.png")
    Image.new("RGB", (8, 8)).save(inside / "b.png")
    for name, place in (("a.png", "val2017/a.png"), ("train/b.png", "b.png")):
        assert folder.find(name) == inside / place
    names = ("../secret.png",) * len(pair.gt.images)
    truth = replace(pair.gt, images=replace(pair.gt.images, file_names=names))
    with pytest.raises(InputError, match="no image of"):
        take_pictures(Pair(truth, pair.results, pair.options), None, folder, class_cap=CAP)


def test_damaged_images_are_passed_over(pair: Pair, folder: Path) -> None:
    """Without requests by id, other images are chosen."""
    everything = take_pictures(pair, None, PictureFolder(folder), class_cap=CAP)
    (folder / everything[0].file_name).write_bytes(b"no image")
    left = take_pictures(pair, None, PictureFolder(folder), class_cap=CAP)
    assert everything[0].image_id not in [picture.image_id for picture in left]
    assert left[0].image_id == everything[1].image_id


def test_no_detections_are_no_harm(pair: Pair, folder: Path) -> None:
    none = pair.where(np.zeros(len(pair.results.ranking), bool))
    pictures = take_pictures(none, None, PictureFolder(folder), class_cap=CAP)
    assert pictures
    assert all(picture.before == picture.dropped == [] for picture in pictures)


def test_refusals(pair: Pair, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such image folder"):
        PictureFolder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="at most 50"):
        PictureFolder(folder, tuple(range(51)))
    with pytest.raises(InputError, match="image 123456 is not in"):
        take_pictures(pair, None, PictureFolder(folder, (123456,)), class_cap=CAP)
    number, name = int(pair.gt.images.ids[3]), pair.gt.images.file_names[3]
    (folder / name).write_bytes(b"no image")
    with pytest.raises(InputError, match="not a readable image"):
        take_pictures(pair, None, PictureFolder(folder, (number,)), class_cap=CAP)
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"image {number} .* not found"):
        take_pictures(pair, None, PictureFolder(folder, (number,)), class_cap=CAP)
