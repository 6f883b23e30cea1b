"""Reading with budgets: what is dropped on the way never changes a number."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from cli.run_lvdet import lvdet_command, python_program
from files.record_files import written
from long_cases import first
from lvdet.files import collect, detections_json, parquet
from lvdet.files import detection_files as detections
from oracles.cases import coco_case, lvis_case, without_boxes
from oracles.lvis_reference import cut_per_class, drop_unknown
from tabled import read_case, write_case
from thread_setting import threads


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rows come in small blocks, and are dropped as soon as there are a few."""
    monkeypatch.setattr(collect, "ROOM", 3)
    monkeypatch.setattr(collect, "ROOM_WITH_BOXES", 3)
    monkeypatch.setattr(collect, "MASK_BYTES", 100)
    monkeypatch.setattr(detections_json, "CHUNK", 300)
    monkeypatch.setattr(parquet, "BATCH", 7)
    monkeypatch.setattr(parquet, "MASK_BATCH", 5)
    return


def rewritten(results: list[dict[str, Any]], folder: Path, kind: str) -> Any:
    """The results in another kind of file, or in several."""
    if kind != "shards":
        return written(results, folder, kind)
    cut = len(results) // 3
    return [written(results[:cut], folder, "json"), written(results[cut:], folder, "parquet")]


KINDS = ["json", "lines", "gzip", "parquet", "shards"]


def assert_same(streamed: lvdet.Evaluation, whole: lvdet.Evaluation, what: str) -> None:
    for name, result in whole.items():
        for metric, value in result.items():
            other = streamed[name][metric]
            assert other == value or (np.isnan(other) and np.isnan(value)), (what, name, metric)
    counts = ("images", "classes", "annotations", "detection_count", "iou", "format")
    assert {key: streamed.inputs[key] for key in counts} == {
        key: whole.inputs[key] for key in counts
    }


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["lvis boxes", "lvis masks", "coco boxes", "coco masks"])
@pytest.mark.parametrize("seeds", first(1, [range(3), range(3, 24)]), ids=str)
def test_an_evaluation_of_files_is_that_of_tables(
    seeds: range, case: str, kind: str, tmp_path: Path
) -> None:
    style, shape = case.split()
    for seed in seeds:
        make = lvis_case if style == "lvis" else coco_case
        annotations, results = make(1000 + seed, shape == "masks")
        if not drop_unknown(annotations, results) or len(results) < 3:
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        if kind == "shards" and shape == "masks":
            cut = len(results) // 3
            carried = ["segmentation" in row for row in results]
            if any(carried[:cut]) != any(carried[cut:]):
                continue
        path = rewritten(results, tmp_path, kind)
        for options in (
            {},
            {"dets_per_image": 3, "dets_per_class": 2},
            {"dets_per_image": 2, "dets_per_class": 5, "exact_lvis": True},
            {"dets_per_image": 0, "dets_per_class": 0},
            {"protocols": ["pool"], "dets_per_class": 3},
        ):
            whole = lvdet.evaluate(gt, dt, **options)
            streamed = lvdet.evaluate(tmp_path / "gt.json", path, **options)
            assert_same(streamed, whole, f"{case}, {kind}, seed {seed}, {options}")


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("count", [1, 3])
def test_classes_are_chosen_before_rows_are_dropped(count: int, tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=20, classes=30, dets_per_image=60, seed=4)
    paths = write_case(gt, dt, tmp_path)
    for classes in ("r", "c", "rf", "class_0003,class_0007", None):
        options: dict[str, Any] = {"classes": classes, "dets_per_image": 7, "dets_per_class": 11}
        whole = lvdet.evaluate(gt, dt, **options)
        with threads(count):
            streamed = lvdet.evaluate(*paths, **options)
        assert_same(streamed, whole, f"classes {classes}")
        told = "\n".join(whole.warnings).replace("simulated detections", str(paths[1]))
        told = told.replace("simulated annotations", str(paths[0]))
        assert "\n".join(streamed.warnings) == told


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("exact_lvis", [False, True])
@pytest.mark.parametrize("masks", [False, True])
def test_a_sweep_of_files_is_that_of_tables(masks: bool, exact_lvis: bool, tmp_path: Path) -> None:
    """Caps in both orders and all subsets at once: each row's first cap says what is kept."""
    for seed in range(8):
        annotations, results = lvis_case(2000 + seed, masks)
        if not drop_unknown(annotations, results):
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        options: dict[str, Any] = {
            "dets_per_image": [2, 5],
            "dets_per_class": [1, 4],
            "order": ("class-first", "image-first"),
            "subsets": ["r", "c", "f", "rc", "cf", "rf", "rcf"] if gt.categories.groups() else None,
            "rerank": 3,
            "exact_lvis": exact_lvis,
        }
        whole = lvdet.sweep(gt, dt, **options).to_dict()
        streamed = lvdet.sweep(tmp_path / "gt.json", tmp_path / "dt.json", **options).to_dict()
        assert streamed["rows"] == whole["rows"], f"seed {seed}"


@pytest.mark.usefixtures("tight")
def test_each_subset_of_classes_has_its_own_best_of_an_image(tmp_path: Path) -> None:
    """Rare classes score low: the best of an image over all classes has none of theirs."""
    gt, dt = lvdet.simulate(images=20, classes=60, dets_per_image=80, bias=2.0, seed=4)
    paths = write_case(gt, dt, tmp_path)
    options: dict[str, Any] = {"dets_per_image": [3, 8], "subsets": ["r", "c", "rc", "rcf"]}
    whole = lvdet.sweep(gt, dt, **options).to_dict()
    streamed = lvdet.sweep(*paths, **options).to_dict()
    assert streamed["rows"] == whole["rows"]


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 9)), min_size=0, max_size=120
)


@settings(max_examples=120)
@given(ROWS, st.integers(0, 12), st.sampled_from(["json", "lines", "parquet", "shards"]))
def test_the_best_of_each_class(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]], k: int, kind: str
) -> None:
    """Exactly the best k of each class, in file order; earlier ones first among equals."""
    results = [
        {"image_id": i, "category_id": c, "score": s / 9, "bbox": [n, 1, 2, 3]}
        for n, (i, c, s) in enumerate(rows)
    ]
    if not results:
        return
    folder = tmp_path_factory.mktemp("best")
    path = rewritten(results, folder, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "ROOM_WITH_BOXES", 4)
        patch.setattr(detections_json, "CHUNK", 200)
        patch.setattr(parquet, "BATCH", 5)
        found = lvdet.read_detections(path, dets_per_class=k)
    expected = cut_per_class(results, k)
    assert found.box[:, 0].tolist() == [row["bbox"][0] for row in expected]
    assert found.image_ids[found.image].tolist() == [row["image_id"] for row in expected]
    assert found.category_ids[found.category].tolist() == [r["category_id"] for r in expected]
    assert found.score.tolist() == [row["score"] for row in expected]
    assert lvdet.read_detections(results, dets_per_class=k).box.tolist() == found.box.tolist()


@pytest.mark.parametrize("mask_bytes", [1, 5000, 1 << 29])
def test_masks_move_to_a_file(
    mask_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same masks, and nothing left in the folder for temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(collect, "MASK_BYTES", mask_bytes)
    monkeypatch.setattr(collect, "ROOM_WITH_BOXES", 500)
    monkeypatch.setattr(detections_json, "CHUNK", 1 << 14)
    gt, dt = lvdet.simulate(images=30, classes=10, dets_per_image=100, masks=True, seed=3)
    paths = write_case(gt, dt, tmp_path)
    best = lvdet.read_detections(paths[1], dets_per_class=40)
    expected = lvdet.read_detections(dt, dets_per_class=40)
    assert best.masks is not None
    assert expected.masks is not None
    assert [best.masks.row(i) for i in range(len(best))] == [
        expected.masks.row(i) for i in range(len(expected))
    ]
    lvdet.write_detections(best, tmp_path / "best.json")
    streamed = lvdet.evaluate(*paths, dets_per_class=40)
    assert streamed.iou == "segm"
    assert_same(streamed, lvdet.evaluate(gt, dt, dets_per_class=40), "masks")
    assert list(temporary.iterdir()) == []


NO_ROOM = """
import resource, sys
import lvdet
from lvdet.files import collect
collect.MASK_BYTES = 1000
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    lvdet.read_detections(sys.argv[1])
except lvdet.LvdetError as error:
    print(error)
"""


def test_no_room_for_masks(tmp_path: Path) -> None:
    """A full disk is an error that says where, and no end of the process."""
    _, dt = lvdet.simulate(images=60, classes=10, dets_per_image=100, masks=True)
    lvdet.write_detections(dt, tmp_path / "dt.json")
    done = python_program(NO_ROOM, tmp_path / "dt.json").good()
    assert f"{tmp_path / 'dt.json'}: cannot store masks in " in done.out


@pytest.mark.parametrize("score", [0.5, 0.1, 1e-300, -3.7])
def test_ties_are_dropped_too(
    score: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that all have one score: the first ones count, and the room does not grow."""
    monkeypatch.setattr(collect, "ROOM", 500)
    monkeypatch.setattr(detections_json, "CHUNK", 1 << 12)
    gt, _ = lvdet.simulate(images=3, classes=4, seed=1)
    image = int(gt.images.ids[0])
    rows = [
        {"image_id": image, "category_id": 1 + n % 4, "score": score, "bbox": [n, 0, 1, 1]}
        for n in range(20_000)
    ]
    path = rewritten(rows, tmp_path, "json")
    caps = [collect.Cap(by_image=False, limit=10), collect.Cap(by_image=True, limit=20)]
    read = detections.read_results(detections.NamedFiles([path], "r"), gt, caps)
    assert read.total == 20_000
    assert len(read.ranking) < 700
    assert read.per_class.tolist() == [5000] * 4


def test_a_class_limit_before_an_image_s_with_unknown_classes(tmp_path: Path) -> None:
    """As in lvis, unknown classes use up an image's limit, also after a limit of one per class."""
    annotations = {
        "images": [
            {
                "id": i,
                "height": 9,
                "width": 9,
                "neg_category_ids": [],
                "not_exhaustive_category_ids": [],
            }
            for i in (1, 2)
        ],
        "categories": [{"id": c, "name": str(c), "frequency": "f"} for c in (1, 2)],
        "annotations": [
            {"id": 10 * i + c, "image_id": i, "category_id": c, "bbox": [1, 1, 4, 4], "area": 16}
            for i in (1, 2)
            for c in (1, 2)
        ],
    }
    rows = [(1, 998, 0.9), (1, 999, 0.8), (2, 999, 0.7), (2, 1, 0.6), (1, 1, 0.5)]
    results = [
        {"image_id": i, "category_id": c, "score": s, "bbox": [1, 1, 4, 4]} for i, c, s in rows
    ]
    gt, dt = read_case(annotations, results, tmp_path)
    options: dict[str, Any] = {"dets_per_image": 1, "dets_per_class": 5, "exact_lvis": True}
    streamed = lvdet.sweep(tmp_path / "gt.json", tmp_path / "dt.json", **options)
    assert streamed.rows[0].metrics["AP"] == 0.0
    assert lvdet.sweep(gt, dt, **options).rows[0].metrics["AP"] == 0.0
    # A limit per image after one per image and class leaves only unknown classes too.
    budgets = [(lvdet.PerImageClass(1), lvdet.PerImage(1))]
    chain = {"protocols": (), "budgets": budgets, "exact_lvis": True}
    for pair in ((gt, dt), (tmp_path / "gt.json", tmp_path / "dt.json")):
        assert lvdet.evaluate(*pair, **chain)["1/image/class,1/image"].AP == 0.0


@pytest.mark.usefixtures("tight")
def test_coco_s_recalls_need_more_than_a_limit_of_one_s_own(tmp_path: Path) -> None:
    """AR100 counts 100 detections per image and class, whatever AP-Old's limit is. The second of
    these two finds the second of two objects: half of the recall is its."""
    places = [[0, 0, 20, 20], [50, 50, 20, 20]]
    annotations = {
        "images": [{"id": 1, "height": 99, "width": 99}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": n + 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 400, "iscrowd": 0}
            for n, box in enumerate(places)
        ],
    }
    results = [
        {"image_id": 1, "category_id": 1, "score": 0.9 - n / 10, "bbox": box}
        for n, box in [(0, places[0]), *((8, [80, 1, 9, 9]),) * 400, (1, places[1])]
    ]
    read_case(annotations, results, tmp_path)
    found = lvdet.evaluate(
        tmp_path / "gt.json", tmp_path / "dt.json", protocols=["old"], dets_per_image=1
    )["old"]
    assert (found.metrics["AR1"], found.metrics["AR100"]) == (0.5, 1.0)
    assert found.metrics["AR"] == 0.5


def test_masks_alone_from_standard_input(tmp_path: Path) -> None:
    """What can be read only once is read with its masks, from which boxes are made."""
    gt, dt = lvdet.simulate(images=5, classes=5, dets_per_image=20, masks=True, seed=1)
    gt_path, dt_path = write_case(gt, dt, tmp_path)
    records = without_boxes(json.loads(dt_path.read_text()))
    standard_input = json.dumps(records).encode()
    done = lvdet_command("evaluate", gt_path, "-", "--iou", "bbox", input=standard_input)
    expected = lvdet.evaluate(gt, lvdet.read_detections(records), iou="bbox")
    assert done.code == 0, done
    assert done.out == f"{expected}\n"


def test_an_empty_file_among_others_changes_nothing(tmp_path: Path) -> None:
    _, dt = lvdet.simulate(images=5, classes=5, dets_per_image=20, masks=True, seed=1)
    lvdet.write_detections(dt, tmp_path / "dt.json")
    records = without_boxes(json.loads((tmp_path / "dt.json").read_text()))
    (tmp_path / "a.json").write_text("[]")
    (tmp_path / "b.json").write_text(json.dumps(records))
    joined = lvdet.read_detections([tmp_path / "a.json", tmp_path / "b.json"])
    assert not joined.boxes_given
    assert lvdet.read_detections(tmp_path / "a.json").boxes_given


def test_rows_of_the_file_are_named_after_a_cut(tmp_path: Path) -> None:
    gt, _ = lvdet.simulate(images=3, classes=2, seed=1)
    image = int(gt.images.ids[0])
    rows = [
        {"image_id": image, "category_id": 1, "score": n / 10, "bbox": [1, 1, 2, 2]}
        for n in range(6)
    ]
    rows[5]["image_id"] = 10**9
    path = rewritten(rows, tmp_path, "json")
    best = lvdet.read_detections(path, dets_per_class=3)
    with pytest.raises(lvdet.InputError, match="row 5: image_id 1000000000"):
        lvdet.evaluate(gt, best)
    with pytest.raises(lvdet.InputError, match="row 5: image_id 1000000000"):
        lvdet.evaluate(gt, lvdet.read_detections(best, dets_per_class=1))


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("kind", ["json", "lines", "parquet"])
def test_what_is_wrong_is_found_in_rows_that_are_dropped(kind: str, tmp_path: Path) -> None:
    """Rows of low score that no budget keeps are checked all the same, and named by their place
    in the file."""
    gt, _ = lvdet.simulate(images=4, classes=5, seed=1)
    lvdet.write_ground_truth(gt, tmp_path / "gt.json")
    image = int(gt.images.ids[0])
    rows = [
        {"image_id": image, "category_id": 1, "score": 0.9, "bbox": [1, 2, 3, 4]} for _ in range(90)
    ]

    def said(row: dict[str, Any]) -> str:
        results = [*rows, row | {"score": 0.1}]
        if kind == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(
                pa.table({key: [r[key] for r in results] for key in results[0]}),
                tmp_path / "r.parquet",
            )
            path = tmp_path / "r.parquet"
        else:
            path = rewritten(results, tmp_path, kind)
        with pytest.raises(lvdet.InputError) as error:
            lvdet.evaluate(tmp_path / "gt.json", path, dets_per_image=2, dets_per_class=2)
        return str(error.value)

    assert "row 90" in said(rows[0] | {"bbox": [1, 2, -3, 4]})
    assert "expected a non-negative width and height" in said(rows[0] | {"bbox": [1, 2, -3, 4]})
    text = said(rows[0] | {"image_id": 10**9})
    assert "row 90: image_id 1000000000 is not in" in text
    assert "(1 detection)" in text


@pytest.mark.usefixtures("tight")
def test_a_mask_of_the_wrong_size_is_named_by_its_row_of_the_file(tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=4, classes=5, dets_per_image=50, masks=True, seed=1)
    paths = write_case(gt, dt, tmp_path)
    results = json.loads(paths[1].read_text())
    counted = {
        (int(gt.images.ids[i]), int(gt.categories.ids[c]))
        for i, c in zip(gt.image, gt.category, strict=True)
    }
    row = max(
        place
        for place, record in enumerate(results)
        if (record["image_id"], record["category_id"]) in counted
    )
    results[row]["score"] = 2.0
    results[row]["segmentation"] = {"size": [1, 1], "counts": "1"}
    paths[1].write_text(json.dumps(results))
    with pytest.raises(lvdet.InputError, match=f"row {row}: mask is 1 x 1"):
        lvdet.evaluate(*paths, dets_per_class=3)


def test_masks_that_come_late(tmp_path: Path) -> None:
    """A file whose beginning has no masks is still compared by masks where others have them."""
    gt, dt = lvdet.simulate(images=10, classes=5, dets_per_image=200, masks=True, seed=1)
    paths = write_case(gt, dt, tmp_path)
    paths[1].write_text("[" + " " * (1 << 17) + paths[1].read_text()[1:])
    late = lvdet.evaluate(*paths)
    assert late.iou == "segm"
    assert_same(late, lvdet.evaluate(gt, dt), "late")


#: Reads and evaluates a file under a limit of memory, as a batch system would set it.
LIMITED = """
import resource, sys
import numpy, pyarrow.parquet, lvdet
from lvdet.evaluation import protocols
from lvdet.files import annotation_files as annotations, collect, detection_files as detections
used = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]) * 2**20,) * 2)
lvdet.set_threads(2)
try:
    if sys.argv[4] == "whole":
        dt = lvdet.read_detections(sys.argv[2])
        gt = lvdet.read_ground_truth(sys.argv[1])
        result = lvdet.evaluate(gt, dt, dets_per_class=200)
    else:
        collect.ROOM = 1 << 16
        result = lvdet.evaluate(sys.argv[1], sys.argv[2], dets_per_class=200)
    print(*(repr(result[name].AP) for name in ("old", "fixed", "pool")))
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize(("ending", "room"), [("json", 100), ("parquet", 200)])
def test_a_file_larger_than_the_memory_allowed(ending: str, room: int, tmp_path: Path) -> None:
    """2.4 million rows, 115 MB as a table, in `room` MiB of address space more than the program
    itself takes, where reading them all fails. (Arrow decodes with buffers of its own.)"""
    gt, dt = lvdet.simulate(images=800, classes=300, dets_per_image=3000, seed=5)
    lvdet.write_ground_truth(gt, tmp_path / "gt.json")
    path = tmp_path / f"dt.{ending}"
    lvdet.write_detections(dt, path)
    expected = lvdet.evaluate(gt, dt, dets_per_class=200)

    def run(mode: str) -> str:
        # An arena of malloc for each thread would take 64 MiB of address space, or not, by chance.
        arguments = (LIMITED, tmp_path / "gt.json", path, str(room), mode)
        done = python_program(*arguments, MALLOC_ARENA_MAX="1")
        return (done.out + done.err).strip()

    assert run("whole").startswith("MemoryError")
    assert run("streamed") == " ".join(repr(expected[name].AP) for name in ("old", "fixed", "pool"))


def test_rows_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rising scores, where every row passes all before it, are the worst case; and shuffled."""
    monkeypatch.setattr(collect, "ROOM", 1000)
    monkeypatch.setattr(detections_json, "CHUNK", 1 << 14)
    gt, dt = lvdet.simulate(images=40, classes=50, dets_per_image=200, seed=6)
    shuffled = np.random.default_rng(1).permutation(len(dt))
    for rows in (np.argsort(dt.score, kind="stable"), shuffled):
        options = {"dets_per_image": 20, "dets_per_class": 30}
        whole = lvdet.evaluate(gt, dt[rows], **options)
        streamed = lvdet.evaluate(*write_case(gt, dt[rows], tmp_path), **options)
        assert_same(streamed, whole, "order")
