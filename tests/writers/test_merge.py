"""Files of several processes, merged, are the file of one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from cli.run_lvdet import lvdet_call
from writers.added_images import add_all, best, random_images, records_of


@settings(max_examples=25)
@given(
    st.integers(0, 1000),
    st.sampled_from([(1, 0), (3, 0), (8, 0), (0, 2), (1, 1), (3, 2), (2, 5)]),
    st.lists(st.integers(0, 30), max_size=3),
    st.sampled_from([".jsonl", ".json", ".parquet"]),
)
def test_as_one_process(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    budgets: tuple[int, int],
    cuts: list[int],
    ending: str,
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    images = random_images(30, seed, classes=3, scores=5)
    per_class, per_image = budgets
    limits = {"dets_per_class": per_class, "dets_per_image": per_image}
    bounds = [0, *sorted(cuts), 30]
    paths = []
    for number, (begin, end) in enumerate(pairwise(bounds)):
        paths.append(folder / f"out-{number}{ending}")
        with lvdet.TopKWriter(paths[-1], **limits) as sink:
            add_all(sink, images[begin:end])
    expected = best(images, per_class, per_image)
    assert lvdet.merge_top_k(paths, folder / "a.parquet", **limits) == len(expected)
    assert records_of(folder / "a.parquet") == expected
    lvdet.merge_top_k(folder / f"out-*{ending}", folder / "b.json", **limits)
    assert records_of(folder / "b.json") == expected
    out = folder / "c.jsonl"
    pattern = folder / f"out-*{ending}"
    flags = ("--dets-per-class", str(per_class), "--dets-per-image", str(per_image))
    lvdet_call("convert", pattern, "-o", out, *flags).good()
    assert records_of(out) == expected


def test_in_the_order_of_the_list(tmp_path: Path) -> None:
    for name, image_id in (("a.json", 1), ("b.json", 2)):
        with lvdet.TopKWriter(tmp_path / name, dets_per_class=1) as sink:
            sink.add(image_id, [[0, 0, 1, 1]], [0.5], [1])
    paths = [tmp_path / "b.json", str(tmp_path / "a.json")]
    lvdet.merge_top_k(iter(paths), tmp_path / "out.json", dets_per_class=1)
    assert [row["image_id"] for row in records_of(tmp_path / "out.json")] == [2]


def test_what_cannot_be_merged(tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="no files to merge"):
        lvdet.merge_top_k([], tmp_path / "out.json", dets_per_class=1)
    with pytest.raises(lvdet.InputError, match="no such file"):
        lvdet.merge_top_k([tmp_path / "a.json"], tmp_path / "out.json", dets_per_class=1)
    with pytest.raises(lvdet.InputError, match="unknown extension"):
        lvdet.merge_top_k([tmp_path / "a.json"], tmp_path / "out.csv", dets_per_class=1)
    with pytest.raises(lvdet.InputError, match="dets_per_class and dets_per_image are both 0"):
        lvdet.merge_top_k([tmp_path / "a.json"], tmp_path / "out.json", dets_per_class=0)
    assert list(tmp_path.iterdir()) == []
