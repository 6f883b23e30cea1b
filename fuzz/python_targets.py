"""Fuzz targets that need Python: `python python_targets.py TARGET SECONDS FOLDER`.

Each damages good inputs at random and reads them. That may end in a value that keeps what the
target promises, or in an LvdetError of one line. Anything else is a finding, as are more than 10 s
or 1 GB for one input. The input lies in FOLDER while it is read, so it is still there if the
process dies. Prints a line of JSON. `--input FILE` reads one input and says what comes of it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "fuzz")]

import numpy as np  # noqa: E402
from make_seeds import SEEDS  # noqa: E402
from mutations import PIECES, changed_bytes, changed_json  # noqa: E402

import lvdet  # noqa: E402
from calibration.valid_file import SCORES, VALID  # noqa: E402
from files.annotation_files import assert_holds_truth, coco, lvis, lvis_v05  # noqa: E402
from files.record_files import (  # noqa: E402
    any_record,
    array_text,
    assert_holds,
    lines_text,
    object_text,
    one_line,
    parsed,
    parsed_records,
    text_of,
)
from lvdet import _native  # noqa: E402
from lvdet.calibration.threshold_file import read_values  # noqa: E402

Make = Callable[[random.Random], bytes]
Read = Callable[[Path], None]

SECONDS, BYTES = 10.0, 1 << 30
CORPUS = ROOT / "build" / "fuzz" / "corpus"


@dataclass(frozen=True)
class Target:
    """make: an input; read: reads the file and checks what it holds."""

    make: Make
    read: Read
    ending: str = ".json"


# Readers of JSON, against Python's.


@cache
def corpus(name: str) -> list[bytes]:
    """What the native target has found so far, or its first inputs, without the byte of options."""
    found = sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []
    inputs = [path.read_bytes() for path in found] or list(SEEDS[name](random.Random(name)))
    return [content[1:] for content in inputs]


def from_corpus(name: str, fresh: Make) -> Make:
    """An input of the native target or a new one, damaged or as it is."""

    def make(rng: random.Random) -> bytes:
        content = fresh(rng) if rng.random() < 0.4 else rng.choice(corpus(name))
        return content if rng.random() < 0.4 else changed_bytes(rng, content)

    return make


def new_results(rng: random.Random) -> bytes:
    records = [any_record(rng) for _ in range(rng.randint(0, 3))]
    return rng.choice([array_text, lines_text])(rng, records).encode()


def new_annotations(rng: random.Random) -> bytes:
    return object_text(rng, rng.choice([coco, lvis, lvis_v05])(), ("", " ", "\n")).encode()


def _is_text(content: bytes) -> bool:
    """`json` reads it, and as the same text: bytes that are no UTF-8 are replaced."""
    return b"\xef\xbf\xbd" not in content


def read_results(path: Path) -> None:
    content = path.read_bytes()
    dt = lvdet.read_detections(path)
    text = content.decode("utf-8", errors="replace")
    values = parsed(text) if text.lstrip(" \t\r\n").startswith("[") else parsed_records(text)
    assert_holds(dt, values)


def read_truth(path: Path) -> None:
    content = path.read_bytes()
    gt = lvdet.read_ground_truth(path)
    value = parsed(content.decode("utf-8", errors="replace"))
    if all(text in content for text in (b'"images"', b'"categories"', b'"annotations"')):
        assert_holds_truth(gt, value)


BASE = '{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5, "x": %s}'


def any_text(rng: random.Random) -> bytes:
    """A record with some text in the place of a value nobody reads."""
    text = text_of(rng, any_record(rng), rng.choice([("",), ("", " ", "\n\t")])).encode()
    if rng.random() < 0.3:
        text = b"".join(rng.choices(PIECES, k=rng.randint(1, 6)))
    if rng.random() < 0.8:
        text = changed_bytes(rng, text)
    return b"[" + BASE.encode().replace(b"%s", text) + b"]"


def read_grammar(path: Path) -> None:
    """What `json` refuses is refused, and what it accepts as one such record is accepted."""
    content = path.read_bytes()
    text = content.decode("utf-8", errors="replace")
    try:
        value, known = json.loads(text), True
    except (ValueError, RecursionError):
        known = False
    try:
        table = lvdet.read_detections(path)
    except lvdet.InputError as error:
        keys = ["image_id", "category_id", "bbox", "score", "x"]
        plain = known and len(value) == 1 and list(value[0]) == keys
        plain = plain and value == [json.loads(BASE % "0") | {"x": value[0]["x"]}]
        deep = max(content.count(b"["), content.count(b"{")) > 400
        # A name of the first four may stand twice, the second time with another kind of value.
        twice = any(content.count(f'"{key}"'.encode()) > 1 for key in keys) or b"\\u" in content
        if plain and not deep and not twice:
            raise AssertionError(f"refused what json reads: {error}") from None
        raise
    assert known, "read what json refuses"
    assert len(table) == len(value)


# Masks, against pycocotools in another process.


class Oracle:
    """pycocotools; started again if it dies, which is its own fault."""

    def __init__(self) -> None:
        self.crashes = 0
        self._process: subprocess.Popen[str] | None = None

    def ask(self, case: dict[str, Any]) -> dict[str, Any] | None:
        if self._process is None:
            command = [sys.executable, ROOT / "fuzz" / "mask_oracle.py"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        self._process.communicate()
        self._process, self.crashes = None, self.crashes + 1
        return None


oracle = Oracle()


def some_masks(rng: random.Random) -> bytes:
    """Two masks of one size, with empty runs anywhere."""
    height, width = rng.randint(1, 40), rng.randint(1, 40)
    texts = []
    for _ in range(2):
        runs: list[int] = []
        longest = rng.choice([1, 4, 40, 2000])
        while (left := height * width - sum(runs)) > 0:
            runs.append(min(left, rng.randint(0, longest)))
        offsets = np.array([0, len(runs)], dtype=np.int64)
        data, _ = _native.rle_encode(np.array(runs, dtype=np.uint32), offsets)
        texts.append(data.tobytes())
    return bytes([height, width]) + b" ".join(texts)


def read_rle(path: Path) -> None:
    """Compressed strings of one size, as the native target has them."""
    from lvdet.integrations.pycocotools import mask

    content = path.read_bytes()
    height, width = (*content[:2], 0, 0)[:2]
    texts = content[2:].split(b" ")[:2]
    if not height * width:
        raise lvdet.InputError("no pixels")
    rles = [{"size": [height, width], "counts": text} for text in texts]
    areas = mask.area(rles)
    united = mask.merge(rles)["counts"]
    case = {"size": [height, width], "counts": [text.decode() for text in texts]}
    expected = oracle.ask(case)
    if expected is None:
        return
    assert areas.tolist() == expected["area"]
    found = mask.toBbox(rles).tolist()
    assert found == expected["box"], (found, expected["box"])
    for name, ours in (("united", united), ("common", mask.merge(rles, 1)["counts"])):
        pair = [ours, expected[name].encode()]
        a, b = (mask.decode({"size": [height, width], "counts": counts}) for counts in pair)
        assert np.array_equal(a, b), name
    for name, crowd in (("overlaps", 0), ("of_a_crowd", 1)):
        found = mask.iou(rles, rles, [crowd] * len(rles)).tolist()
        assert np.array_equal(found, expected[name], equal_nan=True), (name, found, expected[name])


def some_polygons(rng: random.Random) -> bytes:
    parts = [
        [rng.uniform(-30, 90) if rng.random() < 0.7 else rng.randint(-3, 70) for _ in range(2 * n)]
        for n in rng.choices([3, 4, 5, 12], k=rng.choice([1, 1, 2, 4]))
    ]
    digits = rng.choice([0, 1, 3, 17])
    parts = [[round(value, digits) for value in part] for part in parts]
    value = {"size": [rng.randint(1, 70), rng.randint(1, 70)], "polygons": parts}
    return json.dumps(value).encode() if rng.random() < 0.6 else changed_json(rng, value)


def read_polygons(path: Path) -> None:
    from lvdet.integrations.pycocotools import mask

    try:
        case = json.loads(path.read_bytes())
        size, parts = case["size"], case["polygons"]
        height, width = size
        plain = type(height) is int and type(width) is int and min(size) > 0 and max(size) < 1000
        plain = plain and all(abs(number) < 2000 for part in parts for number in part)
        plain = plain and all(len(part) != 4 for part in parts)  # a box
    except (ValueError, KeyError, TypeError):
        plain = False
    if not plain:
        raise lvdet.InputError("not a case")
    found = mask.merge(mask.frPyObjects(parts, height, width))["counts"].decode()
    expected = oracle.ask(case)
    assert expected is None or found == expected["counts"], (found, expected)


# Files of calibration and training.


def read_calibrator(path: Path) -> None:
    calibrator = lvdet.Calibrator.load(path)
    ids = np.resize(calibrator.categories_.ids[:3], len(SCORES))
    if len(ids) == len(SCORES) and len(calibrator.categories_.ids):
        boxes = np.tile([0.0, 0.0, 1.0, 1.0], (len(ids), 1))
        dt = lvdet.Detections.from_arrays(np.ones(len(ids), dtype=np.int64), ids, SCORES, boxes)
        scores = calibrator.transform(dt).score
        assert ((scores >= 0) & (scores <= 1)).all(), scores
    again = path.with_name("again.json")
    calibrator.save(again)
    first = again.read_bytes()
    lvdet.Calibrator.load(again).save(again)
    assert again.read_bytes() == first


THRESHOLDS = {
    "lvdet_thresholds": 1,
    "classes": [{"id": 3, "threshold": 0.5}, {"id": 9, "threshold": None}],
}


def some_csv(rng: random.Random) -> bytes:
    return changed_bytes(rng, b'id,name,threshold\n3,cat,0.5\n4,"a, b",\n9,"x\ny",1e-3\n')


def read_thresholds(path: Path) -> None:
    values = read_values(path)
    assert all(type(key) is int and type(value) is float for key, value in values.items())


def some_config(rng: random.Random) -> bytes:
    files = sorted((ROOT / "src" / "lvdet" / "training" / "configs").glob("*.toml"))
    text = rng.choice(files).read_bytes()
    other = rng.choice(files).read_bytes().splitlines(keepends=True)
    if rng.random() < 0.5:
        text += rng.choice(other)
    return changed_bytes(rng, text)


def read_config(path: Path) -> None:
    from lvdet.training.configuration.config_file import config_text, read_config

    config = read_config(path)
    path.with_name("again.toml").write_text(config_text(config))
    assert read_config(path.with_name("again.toml")) == config


def some_tensors(rng: random.Random) -> bytes:
    header: Any = {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "I64", "shape": [], "data_offsets": [24, 32]},
        "__metadata__": {"config": "x"},
    }
    text = json.dumps(header).encode() if rng.random() < 0.3 else changed_json(rng, header)
    whole = struct.pack("<Q", len(text)) + text + bytes(32)
    return whole if rng.random() < 0.6 else changed_bytes(rng, whole)


def read_tensors(path: Path) -> None:
    from lvdet.training.records.tensor_file import read_metadata, read_tensors

    tensors, texts = read_tensors(path)
    assert read_metadata(path) == texts
    assert sum(tensor.nbytes for tensor in tensors.values()) <= path.stat().st_size


@cache
def pickles() -> list[bytes]:
    arrays = {"w": np.arange(6.0).reshape(2, 3), "b": np.ones(2, np.float16), "n": np.float64(2)}
    content = {"model": arrays, "list": [1, (2, None), b"\xff"], "name": "é"}
    return [pickle.dumps(content, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


def some_pickle(rng: random.Random) -> bytes:
    return changed_bytes(rng, rng.choice(pickles()))


def read_pickle(path: Path) -> None:
    from lvdet.training.weights.array_pickle import read_array_pickle

    read_array_pickle(path)


# Tables in binary files.


def rows(rng: random.Random) -> list[dict[str, Any]]:
    return [{"bbox": [1.0, 2.0, 3.0, 4.0]} | any_record(rng) for _ in range(rng.randint(1, 4))]


def some_gzip(rng: random.Random) -> bytes:
    text = lines_text(rng, rows(rng)).encode()
    if rng.random() < 0.5:  # its checksum is right
        return gzip.compress(changed_bytes(rng, text), 1, mtime=0)
    return changed_bytes(rng, gzip.compress(text, 1, mtime=0))


def read_table(path: Path) -> None:
    lvdet.read_detections(path)


def some_arrays(rng: random.Random) -> bytes:
    """An npz file in which some arrays are of another kind than expected."""
    good: dict[str, Any] = {
        "image_id": np.array([1, 2]),
        "category_id": np.array([1, 1]),
        "score": np.array([0.5, 0.25]),
        "bbox": np.ones((2, 4)),
    }
    odd = [
        *(np.array(5), np.zeros((2, 0)), np.array(["a", "b"]), np.array([None, 1]), np.zeros(0)),
        *(np.array([1e300, np.nan]), np.ones((2, 4, 1)), np.array([True, False]), np.ones(3)),
        *(np.array([2**63, 1], dtype=np.uint64), np.ones(2, complex), np.array([b"x", b""])),
        *(np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), np.ones((4, 2)).T),
        *(np.array(["2020-01-01", "NaT"], dtype="M8[D]"), np.ones(2, np.float16)),
    ]
    for _ in range(rng.choice([0, 1, 1, 2])):
        key = rng.choice([*good, "segmentation", "x"])
        if rng.random() < 0.2:
            good.pop(key, None)
        else:
            good[key] = rng.choice(odd)
    out = io.BytesIO()
    np.savez(out, **good)
    return out.getvalue() if rng.random() < 0.5 else changed_bytes(rng, out.getvalue())


def some_parquet(rng: random.Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = rows(rng)
    columns: dict[str, Any] = {
        "image_id": [abs(int(row["image_id"])) % 2**62 for row in records],
        "category_id": [row["category_id"] for row in records],
        "score": [float(row["score"]) for row in records],
        "bbox": [[float(value) for value in row["bbox"]] for row in records],
    }
    count = len(records)
    odd = [
        *([None] * count, ["a"] * count, [[1.0]] * count, [[1.0, None, 2.0, 3.0]] * count),
        *([{"size": [4, 3], "counts": "174"}] * count, [b"\x00\xff"] * count, [True] * count),
        *([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]] * count, [float("nan")] * count, [2**62] * count),
    ]
    for _ in range(rng.choice([0, 1, 1, 2])):
        key = rng.choice([*columns, "segmentation", "rle_counts", "x"])
        if rng.random() < 0.2:
            columns.pop(key, None)
        else:
            columns[key] = rng.choice(odd)
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


# A writer's journal that somebody has changed.


MASK = {"size": [4, 3], "counts": "174"}


def begin_journal(target: Path, *images: int) -> None:
    """What a writer that was not closed leaves."""
    writer = lvdet.TopKWriter(target, dets_per_class=3)
    for number in images:
        rows = number % 3
        writer.add(number, [[1, 2, 3, 4]] * rows, [0.5] * rows, [1] * rows, [MASK] * rows)
    writer.__exit__(KeyboardInterrupt, None, None)


@cache
def journal() -> bytes:
    """A file of rows: an image of two, one of none and one of one."""
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "out.jsonl"
        begin_journal(target, 5, 6, 7)
        return next(target.with_name("out.jsonl.parts").glob("rows-*")).read_bytes()


def some_journal(rng: random.Random) -> bytes:
    content = bytearray(changed_bytes(rng, journal()))
    if rng.random() < 0.7 and len(content) >= 40:  # with the checksum that it would have
        length = struct.unpack_from("<q", content, 8)[0]
        if 0 <= length <= len(content) - 40:
            content[4:8] = struct.pack("<I", zlib.crc32(content[8 : 40 + length]))
    return bytes(content)


def read_journal(path: Path) -> None:
    """A writer finds the rows, resumes and finishes."""
    target, parts = path.with_name("out.jsonl"), path.with_name("out.jsonl.parts")
    target.unlink(missing_ok=True)
    shutil.rmtree(parts, ignore_errors=True)
    begin_journal(target, 4)
    next(parts.glob("rows-*")).write_bytes(path.read_bytes())
    with lvdet.TopKWriter(target, dets_per_class=3) as writer:
        if 99 not in writer:
            writer.add(99, [[1, 2, 3, 4]], [0.75], [1], [MASK])
    assert not parts.exists()
    lvdet.read_detections(target)


# The contribution of a part of the images, as bytes from another process.


@cache
def part_case() -> tuple[lvdet.GroundTruth, list[bytes]]:
    """Annotations, and partials of them: some boxes, masks, and nothing."""
    gt, dt = lvdet.simulate(images=4, classes=5, dets_per_image=6, masks=True, seed=3)
    nothing = dt[np.zeros(len(dt), dtype=bool)]
    parts = [
        lvdet.Partial.of(gt, dt, iou="bbox", dets_per_class=3),
        lvdet.Partial.of(gt, dt, iou="segm"),
        lvdet.Partial.of(gt, nothing, images=gt.images.ids[:1]),
    ]
    return gt, [part.to_bytes() for part in parts]


def some_part(rng: random.Random) -> bytes:
    """With another header or other columns, mostly with the length and checksum of these."""
    content = rng.choice(part_case()[1])
    if rng.random() < 0.2:
        return changed_bytes(rng, content)
    size = struct.unpack_from("<I", content, 20)[0]
    header, columns = content[24 : 24 + size], content[24 + size : -16]
    if rng.random() < 0.5:
        header = changed_json(rng, json.loads(header))
    else:
        columns = changed_bytes(rng, columns)
    start = struct.pack("<QI", 4 + len(header) + len(columns) + 16, len(header))
    whole = content[:12] + start + header + columns
    return whole + hashlib.blake2b(whole, digest_size=16).digest()


def read_part(path: Path) -> None:
    """What it holds is written the same, and can be evaluated."""
    part = lvdet.Partial.from_bytes(path.read_bytes())
    again = lvdet.Partial.from_bytes(part.to_bytes())
    assert again.to_bytes() == part.to_bytes()
    for value in part.evaluate(part_case()[0]).protocols.values():
        assert all(np.isnan(one) or 0 <= one <= 1 for one in value.values()), value


def damaged(value: Any) -> Make:
    return lambda rng: changed_json(rng, value)


#: A new kind of file is a line here: how to make one, and how to read it.
TARGETS: dict[str, Target] = {
    "grammar": Target(any_text, read_grammar),
    "results": Target(from_corpus("detections", new_results), read_results),
    "truth": Target(from_corpus("annotations", new_annotations), read_truth),
    "masks": Target(from_corpus("rle", some_masks), read_rle, ".bin"),
    "outlines": Target(some_polygons, read_polygons),
    "calibrator": Target(damaged(VALID), read_calibrator),
    "thresholds": Target(damaged(THRESHOLDS), read_thresholds),
    "threshold_table": Target(some_csv, read_thresholds, ".csv"),
    "config": Target(some_config, read_config, ".toml"),
    "tensors": Target(some_tensors, read_tensors, ".safetensors"),
    "pickle": Target(some_pickle, read_pickle, ".pkl"),
    "gzip": Target(some_gzip, read_table, ".jsonl.gz"),
    "arrays": Target(some_arrays, read_table, ".npz"),
    "parquet": Target(some_parquet, read_table, ".parquet"),
    "journal": Target(some_journal, read_journal, ".rows"),
    "partial": Target(some_part, read_part, ".part"),
}


@dataclass
class Outcome:
    """What came of the inputs so far."""

    read: int = 0
    refused: int = 0
    finding: str = ""
    texts: set[str] = field(default_factory=set)


def try_one(target: Target, path: Path, outcome: Outcome) -> None:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            target.read(path)
        outcome.read += 1
    except lvdet.LvdetError as error:
        outcome.refused += 1
        try:
            one_line(error)
        except AssertionError:
            outcome.finding = f"a message of several lines: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome.finding = traceback.format_exc()
    taken = time.perf_counter() - started
    if taken > SECONDS:
        outcome.finding = f"took {taken:.1f} s"


def inputs(make: Make, seed: int) -> Iterator[bytes]:
    number = 0
    while True:
        yield make(random.Random(f"{seed} {number}"))
        number += 1


def run(name: str, seconds: float, folder: Path, seed: int) -> Outcome:
    """Until the time is over or something is found, which then lies beside FOLDER/NAME."""
    os.fsync = lambda _: None  # crashes of the machine are not meant here
    target, outcome = TARGETS[name], Outcome()
    work = folder / name
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"input{target.ending}"
    try_one(target, _written(path, target.make(random.Random(0))), Outcome())  # imports
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limit = used * 1024 + BYTES
    end = time.monotonic() + seconds
    for content in inputs(target.make, seed):
        try_one(target, _written(path, content), outcome)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > limit:
            outcome.finding = outcome.finding or "took more than 1 GB"
        if outcome.finding:
            digest = hashlib.sha256(content).hexdigest()[:16]
            _written(folder / f"{name}-crash-{digest}{target.ending}", content)
            break
        if time.monotonic() > end:
            break
    return outcome


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("seconds", type=float, nargs="?", default=10)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "fuzz" / "found")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", type=Path)
    given = parser.parse_args()
    if given.input:
        outcome = Outcome()
        with tempfile.TemporaryDirectory() as name:
            target = TARGETS[given.target]
            path = _written(Path(name) / f"input{target.ending}", given.input.read_bytes())
            try_one(target, path, outcome)
    else:
        outcome = run(given.target, given.seconds, given.folder, given.seed)
    if outcome.finding:
        print(outcome.finding, file=sys.stderr)
    done = {"runs": outcome.read + outcome.refused, "read": outcome.read}
    print(json.dumps(done | {"reference_crashes": oracle.crashes}))
    return bool(outcome.finding)


if __name__ == "__main__":
    sys.exit(main())
