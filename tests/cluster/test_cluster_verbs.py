"""Every verb on a cluster gives what it gives in one process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lvdet
from cluster.shard_files import write_shards
from lvdet.cluster.engine import start
from lvdet.cluster.run_on import run_on
from lvdet.cluster.shards import Shards, shard_facts
from lvdet.evaluation.load_pair import load_pair
from lvdet.files.progress import Progress
from lvdet.limits.needs import everything
from progress_calls import calling
from tabled import Tables, write_case

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Annotations, and a pattern of shards in several formats."""
    folder = tmp_path_factory.mktemp("files")
    gt, dt = write_case(*simulated(), folder)
    shards = folder / "shards"
    shards.mkdir()
    write_shards(json.loads(dt.read_text()), shards, 5, seed=2)
    return gt, str(shards / "*")


def simulated() -> Tables:
    return lvdet.simulate(images=40, classes=30, dets_per_image=60, seed=3)


def saved(result: Any, path: Path) -> bytes:
    result.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (lvdet.sweep, {"dets_per_image": [10, 30, None], "dets_per_class": [20, None]}),
        (lvdet.sweep, {"paper": "all"}),
        (lvdet.audit, {}),
        (lvdet.evaluate, {"classes": "rc", "groups": {"some": [1, 2, 3]}, "thresholds": [0.3]}),
        (lvdet.Calibrator("beta", missing="keep").fit, {}),
        (lvdet.Calibrator("hierarchical").fit, {"iou_threshold": 0.42}),
    ],
)
def test_verbs_of_one_results_file(
    files: tuple[Path, str], verb: Callable[..., Any], options: dict[str, Any], tmp_path: Path
) -> None:
    gt, shards = files
    expected = saved(verb(gt, shards, **options), tmp_path / "one.json")
    found = run_on(verb, gt, Shards.of(shards), **options)
    assert saved(found, tmp_path / "many.json") == expected


def test_compare(files: tuple[Path, str], tmp_path: Path) -> None:
    gt, shards = files
    other = tmp_path / "other.json"
    lvdet.write_detections(lvdet.rerank(gt, shards, dets_per_class=5).detections, other)
    options = {"resamples": 200}
    expected = lvdet.compare(gt, [str(other), shards], **options)
    found = run_on(lvdet.compare, gt, [Shards.of(str(other)), Shards.of(shards)], **options)
    assert found.to_dict() == expected.to_dict()


@pytest.mark.parametrize(
    ("ending", "options"),
    [
        (".json", {}),
        (".jsonl", {"dets_per_class": 7, "dets_per_image": 3}),
        (".parquet", {"dets_per_image": 5, "masks": False}),
        (".json", {"category_map": {1: 1000}, "box_format": "xyxy"}),
    ],
)
def test_convert(
    files: tuple[Path, str], ending: str, options: dict[str, Any], tmp_path: Path
) -> None:
    _, shards = files
    one, many = tmp_path / f"one{ending}", tmp_path / f"many{ending}"
    counts = _ask(lvdet.convert, shards, one, **options)
    found = _ask(run_on, lvdet.convert, Shards.of(shards), many, **options)
    assert found == counts
    assert one.exists() == many.exists() == isinstance(counts, tuple)
    if one.exists():
        assert many.read_bytes() == one.read_bytes()


def _ask(verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return verb(*arguments, **options)
    except lvdet.InputError as error:
        return str(error).partition(", row")[0]


def test_relative_paths_are_those_of_the_caller(
    files: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, _ = files
    monkeypatch.chdir(gt.parent)
    expected = lvdet.evaluate(gt.name, "shards/*").to_dict()
    assert expected["inputs"]["files"][1]["path"].startswith("shards/")
    found = run_on(lvdet.evaluate, gt.name, Shards.of("shards/*"))
    assert found.to_dict() == expected


def test_absolute_paths_need_no_folder(files: tuple[Path, str], tmp_path: Path) -> None:
    gt, shards = files
    found = replace(Shards.of(shards), folder=str(tmp_path / "not on this node"))
    assert run_on(lvdet.evaluate, gt, found).to_dict() == lvdet.evaluate(gt, shards).to_dict()


def test_progress_arrives(cluster: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def waiting_verb(progress: Progress) -> str:  # workers do not find the modules of tests
        with progress("waiting", unit="things") as update:
            assert update is not None
            update(3, 4)
            while not seen.exists():
                time.sleep(0.05)
        return "done"

    def note(done: int, total: int) -> None:
        assert (done, total) == (3, 4)
        seen.touch()

    assert run_on(waiting_verb, progress=calling(note)) == "done"


@pytest.fixture
def with_bad_shard(files: tuple[Path, str], tmp_path: Path) -> tuple[list[str], str]:
    """Shards with two bad ones among them, and what is wrong with the first."""
    bad, cut = tmp_path / "bad.json", tmp_path / "cut.json"
    row = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}
    bad.write_text(json.dumps([row, row | {"bbox": [1, 2, 3]}]))
    cut.write_text('[{"image_id"')
    paths = [str(path) for path in sorted(Path(files[1]).parent.iterdir())]
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.read_detections(bad)
    return [*paths[:2], str(bad), str(cut), *paths[2:]], str(caught.value)


def test_the_first_bad_shard_is_named_with_its_row(
    files: tuple[Path, str], with_bad_shard: tuple[list[str], str]
) -> None:
    gt, _ = files
    paths, wrong = with_bad_shard
    assert "bad.json, row 1" in wrong
    with pytest.raises(lvdet.InputError) as caught:
        run_on(lvdet.evaluate, gt, Shards.of(paths))
    assert str(caught.value) == wrong


def test_the_first_bad_shard_is_named_even_if_it_is_read_later() -> None:
    def fail(seconds: float, text: str) -> None:
        time.sleep(seconds)
        raise lvdet.InputError(text)

    first, second = start(fail, 1, "first"), start(fail, 0, "second")
    with pytest.raises(lvdet.InputError, match="first"):
        shard_facts(second, 7, {first: (6, None, None)})


def test_bad_shards_are_left_out_on_request_and_listed(
    files: tuple[Path, str], with_bad_shard: tuple[list[str], str]
) -> None:
    gt, _ = files
    paths, wrong = with_bad_shard
    good = [path for path in paths if not path.endswith(("bad.json", "cut.json"))]
    expected = lvdet.evaluate(gt, good).to_dict()
    result = run_on(lvdet.evaluate, gt, Shards.of(paths, skip_bad=True))
    found = result.to_dict()
    assert found["inputs"].pop("skipped_shards")[0] == wrong
    found["warnings"].remove(f"detections: 2 shards left out; the first: {wrong}")
    assert found == expected


def test_without_any_good_shard_there_is_nothing_to_evaluate(
    files: tuple[Path, str], with_bad_shard: tuple[list[str], str]
) -> None:
    paths, wrong = with_bad_shard
    with pytest.raises(lvdet.InputError, match="no shard can be read; the first: ") as caught:
        run_on(lvdet.evaluate, files[0], Shards.of(paths[2:4], skip_bad=True))
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (lvdet.evaluate, {"agnostic_recall": [10]}),
        (lvdet.evaluate, {"drop_duplicates": True}),
        (lvdet.Calibrator("identity").measure, {}),
        (lvdet.diagnose, {}),
        (lvdet.rerank, {"dets_per_class": 5}),
    ],
)
def test_what_needs_all_boxes_is_refused(
    files: tuple[Path, str], verb: Callable[..., Any], options: dict[str, Any]
) -> None:
    gt, shards = files
    with pytest.raises(lvdet.InputError, match="is in shards, but this needs all"):
        verb(gt, Shards.of(shards), **options)


def test_a_match_without_boxes_cannot_be_made_again(files: tuple[Path, str]) -> None:
    """Rather than with the boxes of the sample that is left."""
    gt, shards = files
    pair = load_pair(gt, Shards.of(shards), everything)
    with pytest.raises(lvdet.InputError, match="has no boxes left"):
        pair.matched_at(0.33)
