"""Files in object stores: the same outcome as from a disk, whatever the network does."""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from cli.run_lvdet import Done, lvdet_call
from cli.small_set import FOUND, pair
from files.object_store import (
    SECRET_KEY,
    TOKEN,
    ObjectStore,
    Request,
    object_store,
    served_elsewhere,
)
from lvdet.errors import InputError
from lvdet.files import arriving, content_hash, remote_path, stores
from lvdet.files.arriving import Arriving
from lvdet.files.arriving_file import ArrivingFile
from lvdet.files.fingerprint import fingerprints
from lvdet.files.opening import expand
from lvdet.files.remote_path import RemotePath, input_path
from lvdet.files.stores import Stored
from oracles.cases import lvis_case

SHARDS = 16


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts, and pauses that nobody notices."""
    monkeypatch.setattr(stores, "PAUSES", (0.001, 0.002, 0.004, 0.008, 0.016))
    monkeypatch.setattr(stores, "TIMEOUT", 0.5)
    monkeypatch.setattr(arriving, "PART", 1024)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        forget()
        yield made
    forget()


def forget() -> None:
    """Clients are made anew."""
    stores._bucket_store.cache_clear()
    stores._hub.cache_clear()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gt.json, and a folder with sixteen shards of every format."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "shards").mkdir()
    gt, found = lvis_case(3, masks=False, quirks=False)
    (folder / "gt.json").write_text(json.dumps(gt))
    keys = ("image_id", "category_id", "bbox", "score")
    rows = [{key: row[key] for key in keys} for row in found if "bbox" in row]
    rows = [row | {"score": row["score"] / (1 + k)} for k in range(10) for row in rows]
    for number in range(SHARDS):
        table = lvdet.read_detections(rows[number::SHARDS])
        path = folder / "shards" / f"{number:02}"
        kind = (".json", ".jsonl", ".parquet", ".jsonl.gz", ".json", ".npz", ".parquet", ".json")
        ending = kind[number % len(kind)]
        if ending == ".npz":
            columns = {"image_id": table.image_ids[table.image], "score": table.score}
            columns["category_id"] = table.category_ids[table.category]
            np.savez(path.with_suffix(".npz"), bbox=table.box, **columns)
        elif ending.endswith(".gz"):
            plain = path.with_name("plain.jsonl")
            lvdet.write_detections(table, plain)
            path.with_name(path.name + ending).write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
        else:
            lvdet.write_detections(table, path.with_name(path.name + ending))
    return folder


def upload(store: ObjectStore, folder: Path, root: str) -> None:
    store.objects.update(contents(folder, root))


def contents(folder: Path, root: str) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {f"{root}/{path.relative_to(folder)}": path.read_bytes() for path in files}


def evaluated(gt: object, dt: object, folder: Path) -> Done:
    return lvdet_call("evaluate", str(gt), str(dt), "--iou", "bbox", "-o", str(folder / "out.json"))


def test_sixteen_shards_by_range_give_the_local_output_byte_for_byte(
    store: ObjectStore, local: Path, tmp_path: Path
) -> None:
    upload(store, local, "bucket/run")
    store.pace = 0.002, 0.0
    here = evaluated(local / "gt.json", local / "shards", tmp_path).good()
    expected = (tmp_path / "out.json").read_bytes()
    there = evaluated("s3://bucket/run/gt.json", "s3://bucket/run/shards", tmp_path).good()
    found = (tmp_path / "out.json").read_bytes()
    assert found.replace(b"s3://bucket/run", bytes(local)) == expected
    assert there.out.replace("s3://bucket/run", str(local)) == here.out
    reads = [one for one in store.requests if one.verb == "GET"]
    assert all(one.span is not None for one in reads)
    assert {one.key for one in reads} == set(store.objects)
    # Several parts of a file, each once, and several at a time.
    spans = store.spans("gt.json")
    size = len(store.objects["bucket/run/gt.json"])
    assert len(spans) == -(-size // 1024)
    assert sum(end - begin for begin, end in spans) == size
    assert store.most_at_once > 3


def test_errors_and_silence_are_survived(store: ObjectStore, local: Path, tmp_path: Path) -> None:
    upload(store, local, "bucket/run")
    evaluated(local / "gt.json", local / "shards", tmp_path).good()
    expected = (tmp_path / "out.json").read_bytes()
    draw, faults = random.Random(7), {}

    def fault(request: Request) -> float | None:
        """Each request fails once or twice; a few first wait for longer than anybody would."""
        left = faults.setdefault(request, [draw.choice([500, 503, 429, -0.01]) for _ in range(2)])
        if len(faults) in (5, 25):
            faults.setdefault(Request("", f"{len(faults)}"), [])
            return -0.8
        return left.pop() if left and draw.random() < 0.7 else None

    store.fault = fault
    evaluated("s3://bucket/run/gt.json", "s3://bucket/run/shards/*", tmp_path).good()
    found = (tmp_path / "out.json").read_bytes()
    assert (
        found.replace(b"s3://bucket/run", bytes(local)).replace(b"shards/*", b"shards") == expected
    )
    assert len(faults) > 80


@pytest.mark.parametrize("path", ["dt.json", "dt.jsonl", "dt.json.gz", "dt.parquet", "dt.npz"])
def test_every_format_arrives_slowly(store: ObjectStore, tmp_path: Path, path: str) -> None:
    """Readers wait for what has not arrived; the answer is that of the whole file."""
    rows = [
        row | {"image_id": 1 + k % 2, "score": 1 / (1 + k)} for k in range(400) for row in FOUND
    ]
    table = lvdet.read_detections(rows)
    local = tmp_path / path
    if path.endswith(".npz"):
        ids = {"image_id": table.image_ids[table.image], "score": table.score}
        np.savez(local, bbox=table.box, category_id=table.category_ids[table.category], **ids)
    elif path.endswith(".gz"):
        local.write_bytes(gzip.compress(json.dumps(rows).encode()))
    else:
        lvdet.write_detections(table, local)
    store.objects[f"bucket/{path}"] = local.read_bytes()
    store.pace = 0.005, 2e-7
    found = lvdet.read_detections(f"s3://bucket/{path}")
    np.testing.assert_array_equal(found.score, table.score)
    np.testing.assert_array_equal(found.box, table.box)
    np.testing.assert_array_equal(found.image, table.image)


def test_what_is_missing_or_forbidden_is_said_in_one_line(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, _ = pair(tmp_path)
    store.objects["bucket/dt.json"] = json.dumps(FOUND).encode()

    def refused(dt: str, *says: str) -> None:
        forget()
        done = evaluated(gt, dt, tmp_path).refused(dt, *says)
        for secret in (SECRET_KEY, TOKEN, "not-the-secret"):
            assert secret not in done.err
        assert not (tmp_path / "out.json").exists()

    refused("s3://bucket/nothing.json", "no such file")
    refused("s3://bucket/nothing/*.json", "no files match")
    refused("s3://bucket/nothing/", "no such folder")
    refused("s3://elsewhere/dt.json", "no such bucket: elsewhere")
    refused("ftp://bucket/dt.json", "ftp:// is not supported")
    with monkeypatch.context() as change:
        change.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
        refused("s3://bucket/dt.json", "access denied (INVALID_ACCESS_KEY_ID)")
    with monkeypatch.context() as change:
        change.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
        refused("s3://bucket/dt.json", "access denied (SIGNATURE_DOES_NOT_MATCH)")
    store.fault = lambda request: 403
    refused("s3://bucket/dt.json", "access denied (ACCESS_DENIED)")
    asked = len(store.requests)
    store.fault = lambda request: 500
    refused("s3://bucket/dt.json", "cannot read it after 6 attempts (HTTP status 500)")
    assert len(store.requests) == asked + 6
    store.fault = lambda request: 500 if request.span else None
    refused("s3://bucket/dt.json", "cannot read it after 6 attempts (HTTP status 500)")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused("s3://bucket/dt.json", "cannot read it after 6 attempts (Could not connect to server)")


def test_a_part_that_fails_in_the_middle_ends_the_reading(store: ObjectStore) -> None:
    rows = [row | {"score": 1 / (1 + k)} for k in range(2000) for row in FOUND]
    store.objects["bucket/dt.json"] = json.dumps(rows).encode()
    store.fault = lambda request: 500 if request.span and request.span[0] >= 10240 else None
    with pytest.raises(InputError, match=r"^s3://bucket/dt.json: cannot read it after 6 attempts"):
        lvdet.read_detections("s3://bucket/dt.json")


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    store: ObjectStore, tmp_path: Path, ending: str
) -> None:
    table = lvdet.read_detections([row | {"score": k / 1e4} for k in range(900) for row in FOUND])
    lvdet.write_detections(table, tmp_path / f"dt.{ending}")
    content = (tmp_path / f"dt.{ending}").read_bytes()
    key = f"bucket/dt.{ending}"
    store.objects[key] = content

    def fault(request: Request) -> None:
        if request.span is not None:  # in place, as long as before, and still valid
            other = lvdet.read_detections([row | {"score": 0.5} for row in FOUND] * 900)
            lvdet.write_detections(other, tmp_path / f"other.{ending}")
            store.objects[key] = (tmp_path / f"other.{ending}").read_bytes().ljust(len(content))
            store.fault = lambda request: None

    store.fault = fault
    with pytest.raises(InputError, match="changed while it was being read"):
        lvdet.read_detections(f"s3://{key}")


def test_folders_and_patterns_match_as_on_a_disk(store: ObjectStore, tmp_path: Path) -> None:
    names = ["a.json", "b.json", "B.json", "c.jsonl", ".hidden.json", "x/a.json", "x/y/b.json"]
    names += ["x/.h/a.json", "x-1/a.json", "x/y/z/c.json", "1/2.json", "10/2.json", "d[1].json"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]")
    upload(store, tmp_path, "bucket/run")
    patterns = ["", "x", "*.json", "?.json", "[ab].json", "*/*.json", "x*/a.json", "**/*.json"]
    patterns += ["x/**/*.json", "*/**", "**", "**/y/*.json", ".*.json", "a.json", "x/y/**/c.*"]
    for pattern in patterns:
        here = [str(path) for path in expand(str(tmp_path / pattern))]
        there = [str(path) for path in expand(f"s3://bucket/run/{pattern}")]
        assert there == [path.replace(str(tmp_path), "s3://bucket/run") for path in here], pattern


def test_masks_that_are_not_compared_are_not_fetched(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "PART", 1 << 16)
    draw = random.Random(1)
    rows = []
    for row in FOUND * 300:
        counts = [draw.randrange(1, 12) for _ in range(1500)]
        mask = {"size": [100, 100], "counts": [*counts, 10000 - sum(counts)]}
        rows.append(row | {"segmentation": mask, "score": draw.random()})
    gt, _ = pair(tmp_path)
    path = tmp_path / "dt.parquet"
    lvdet.write_detections(lvdet.read_detections(rows), path)
    store.objects["bucket/dt.parquet"] = path.read_bytes()
    found = lvdet.read_detections("s3://bucket/dt.parquet", masks=False)
    np.testing.assert_array_equal(found.score, lvdet.read_detections(path, masks=False).score)
    taken = sum(end - begin for begin, end in store.spans())
    assert taken < len(store.objects["bucket/dt.parquet"]) / 3
    result = lvdet.evaluate(gt, "s3://bucket/dt.parquet", iou="bbox")
    assert str(result) == str(lvdet.evaluate(gt, path, iou="bbox"))


def test_fingerprints_are_those_of_local_files(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "PART", 1 << 16)
    monkeypatch.setattr(content_hash, "WHOLE", 1 << 17)
    for size in (0, 1, 1 << 17, (1 << 17) + 1, 9 << 16):
        (tmp_path / "file").write_bytes(random.Random(size).randbytes(size))
        store.objects["bucket/file"] = (tmp_path / "file").read_bytes()
        [here], [there] = fingerprints([tmp_path / "file"]), fingerprints(["s3://bucket/file"])
        assert there == here | {"path": "s3://bucket/file"}


def test_small_files_of_other_kinds(store: ObjectStore, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet.Calibrator("platt", grouping="all").fit(gt, dt, iou_threshold=0.5).save(
        tmp_path / "cal.json"
    )
    (tmp_path / "map.json").write_text('{"3": 9}')
    upload(store, tmp_path, "bucket")
    for folder, out in (("s3://bucket", "there.json"), (str(tmp_path), "here.json")):
        command = ["calibrate", "apply", f"{folder}/cal.json", f"{folder}/dt.json"]
        lvdet_call(*command, "-o", str(tmp_path / out)).good()
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()
    command = ["convert", "s3://bucket/dt.json", "--category-map", "s3://bucket/map.json"]
    lvdet_call(*command, "-o", str(tmp_path / "mapped.json")).good()
    mapped = json.loads((tmp_path / "mapped.json").read_text())
    assert [row["category_id"] for row in mapped] == [9, 4]
    lvdet_call("check", "s3://bucket/gt.json", "s3://bucket/dt.json").good()


def test_outputs_are_local(store: ObjectStore, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    for command in (["evaluate", str(gt)], ["convert"]):
        done = lvdet_call(*command, str(dt), "-o", "s3://bucket/out.json")
        done.refused("s3://bucket/out.json: outputs are local files")
    assert not store.requests


def test_local_addresses(tmp_path: Path) -> None:
    _, dt = pair(tmp_path)
    spaced = shutil.copy(dt, tmp_path / "d t.json")
    assert len(lvdet.read_detections(dt.as_uri())) == len(FOUND)
    assert len(lvdet.read_detections(spaced.as_uri())) == len(FOUND)
    assert [*map(str, expand(tmp_path.as_uri() + "/d*.json"))] == [str(spaced), str(dt)]
    assert str(input_path(Path("s3://bucket/dt.json"))) == "s3://bucket/dt.json"
    assert input_path("s3") == Path("s3")


def test_without_the_client_one_line_says_what_to_install(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, _ = pair(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for dt in ("s3://bucket/dt.json", "hf://datasets/some/one/dt.json"):
        evaluated(gt, dt, tmp_path).refused("pip install 'lvdet[remote]'")


def test_nothing_stays_behind(
    store: ObjectStore, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    upload(store, local, "bucket")
    lvdet.read_detections("s3://bucket/shards")
    assert not temporary_files(tmp_path)
    store.fault = lambda request: 500 if request.span and "/07." in request.key else None
    with pytest.raises(InputError, match=r"/07\.\w+: cannot read"):
        lvdet.read_detections("s3://bucket/shards")
    gc.collect()
    assert not temporary_files(tmp_path)
    held = Arriving(lambda: Stored(1, "1", lambda begin, count: b"1"))
    assert held.read(0, 1) == b"1"
    assert len(temporary_files(tmp_path)) == 1
    held.close()
    assert not list(tmp_path.iterdir())


def temporary_files(folder: Path) -> list[str]:
    """The open files there, which have no names."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(one))
    return [name for name in found if name.startswith(str(folder))]


def test_only_so_much_is_fetched_ahead(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_path, "AHEAD", 250)
    paths = [RemotePath(f"s3://bucket/{number}", 100) for number in range(6)]
    begun: list[str] = []
    turns = remote_path.in_turn(paths, lambda path: begun.append(str(path)[-1]))
    assert ["".join(begun) for _ in turns] == ["012", "0123", "01234", "012345", "012345", "012345"]
    large = [RemotePath(f"s3://bucket/{number}", 1000) for number in range(3)]
    begun.clear()
    next(remote_path.in_turn(large, lambda path: begun.append(str(path)[-1])))
    assert begun == ["0", "1"]


def test_progress_is_in_bytes_of_all_shards(store: ObjectStore) -> None:
    for number in range(3):
        rows = [row | {"score": 1 / (1 + k)} for k in range(50 + 50 * number) for row in FOUND]
        store.objects[f"bucket/{number}.json"] = json.dumps(rows).encode()
    told: list[tuple[int, int]] = []

    class Told:
        def __call__(self, title: str, /, *, unit: str = "bytes") -> Told:
            assert unit == "bytes"
            return self

        def __enter__(self) -> Callable[[int, int], None]:
            return lambda done, total: told.append((done, total))

        def __exit__(self, *exception: object) -> None:
            pass

    lvdet.read_detections("s3://bucket/*.json", progress=Told())
    total = sum(map(len, store.objects.values()))
    assert {of for _, of in told} == {total}
    assert told == sorted(told)
    assert told[-1] == (total, total)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_wanted_reads_are_of_the_object(data: st.DataObject) -> None:
    content = random.Random(data.draw(st.integers(0, 99))).randbytes(data.draw(st.integers(0, 300)))
    spans = st.tuples(st.integers(0, 320), st.integers(0, 90))
    asked: list[tuple[int, int]] = []

    def read(begin: int, count: int) -> bytes:
        asked.append((begin, count))
        return content[begin : begin + count]

    with pytest.MonkeyPatch.context() as change, ThreadPoolExecutor(3) as readers:
        change.setattr(arriving, "PART", data.draw(st.integers(1, 64)))
        change.setattr(arriving, "_GAP", data.draw(st.integers(0, 16)))
        held = Arriving(lambda: Stored(len(content), "1", read))
        if data.draw(st.booleans()):
            held.want_all()
        held.want(data.draw(st.lists(spans, max_size=5)))
        wanted = data.draw(st.lists(spans, max_size=8))
        found = readers.map(lambda span: held.read(*span), wanted)
        assert [*found] == [content[begin : begin + count] for begin, count in wanted]
        file = ArrivingFile(held)
        assert file.read() == content
        assert file.seek(-1 if content else 0, 2) == max(len(content) - 1, 0)
        assert file.read(5) == content[-1:]
        held.close()
    taken = sorted(place for begin, count in asked for place in range(begin, begin + count))
    assert taken == [*range(len(content))]  # each byte once


@pytest.mark.parametrize("scheme", ["gs", "hf"])
def test_other_stores(
    scheme: str, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = {"gs": "bucket/run", "hf": "datasets/some/run"}[scheme]
    if scheme == "hf":
        pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(arriving, "PART", 1 << 14)
    few = tmp_path / "few"
    shutil.copytree(local, few, ignore=shutil.ignore_patterns("0[4-9]*", "1*"))
    evaluated(few / "gt.json", few / "shards", tmp_path).good()
    expected = (tmp_path / "out.json").read_bytes()
    with served_elsewhere(contents(few, root), failing=1) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if scheme == "hf":  # which reads its variable when it is imported
            monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", environment["HF_ENDPOINT"])
        forget()
        address = f"{scheme}://{root}"
        evaluated(f"{address}/gt.json", f"{address}/shards", tmp_path).good()
        found = (tmp_path / "out.json").read_bytes()
        assert found.replace(address.encode(), bytes(few)) == expected
        gt = few / "gt.json"
        evaluated(gt, f"{address}/nothing.json", tmp_path).refused("no such file")
        if scheme == "gs":
            none = evaluated(gt, "gs://elsewhere/dt.json", tmp_path)
            none.refused("no such bucket: elsewhere")
        else:
            monkeypatch.setenv("HF_TOKEN", "hf_nobody-s")
            none = evaluated(gt, f"{address}/shards", tmp_path)
            assert "hf_nobody" not in none.refused("access denied (HTTP status 401)").err
    forget()
