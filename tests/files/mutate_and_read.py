"""Damages a good file in random ways and reads it: `python mutate_and_read.py KIND EXAMPLES`.

Reading, and whatever follows it, may end in a table or an InputError of one line. Where it ends
in a table, that holds what `json` reads. Run in a process of its own, so that a crash is seen.
"""

from __future__ import annotations

import faulthandler
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
faulthandler.enable()
warnings.simplefilter("error")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lvdet  # noqa: E402
from files.annotation_files import assert_holds_truth, assert_same_truth  # noqa: E402
from files.record_files import assert_holds, assert_same, one_line, parsed, parsed_records  # noqa: E402
from oracles.cases import coco_case, lvis_case  # noqa: E402

PIECES = [
    *(bytes([byte]) for byte in b'{}[],:"\\\0\x01\x7f\xff -+.eE0179tfnNI\n'),
    *(b"null", b"NaN", b"1e999", b"-1", b"9" * 25, b"1.5", b"true", b"[]", b"{}", b'"a"', b"},{"),
    *(b"-Infinity", b"1e-320", b"2147483648", b"99999999999", b"\\u00e9", b"\xc3\xa9", b"[["),
    *(b'"bbox":', b'"segmentation":', b'"counts":', b'"size":', b'"score":', b'"image_id":'),
]
NUMBERS = [b"0", b"1", b"-1", b"-0.0", b"2.5", b"0.3333333333333333", b"1e2", b"7E-3", b"1e5"]
NUMBERS += [b"1e308", b"1e-320", b"999999", b"1000000", b"2147483648", b"123456789012345678901"]
NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?")

places = st.integers(0, 1 << 20)
bytes_changed = st.tuples(
    st.just("bytes"), places, st.sampled_from([0, 0, 1, 1, 2, 9]), st.sampled_from(PIECES)
)
number_changed = st.tuples(
    st.just("number"), places, st.just(0), st.sampled_from(NUMBERS + PIECES[:3])
)
digit_changed = st.tuples(
    st.just("digit"), places, st.just(0), st.sampled_from([b"1", b"5", b"90", b"o", b"P"])
)
changes = st.lists(st.one_of(number_changed, digit_changed, bytes_changed), min_size=1, max_size=3)
Change = tuple[str, int, int, bytes]


def damaged(content: bytes, changes: list[Change]) -> bytes:
    for kind, place, removed, piece in changes:
        numbers = list(NUMBER.finditer(content))
        if kind == "bytes" or not numbers:
            begin = place % (len(content) + 1)
            end = begin + removed
        else:
            begin, end = numbers[place % len(numbers)].span()
            if kind == "digit":
                begin = end - 1
        content = content[:begin] + piece + content[end:]
    return content


def compare(kind: str, content: bytes, gt: lvdet.GroundTruth, dt: lvdet.Detections) -> None:
    """The tables hold what the text means to `json`, but for bytes that are not UTF-8."""
    text = content.decode("utf-8", errors="replace")
    if kind == "annotations":
        assert_holds_truth(gt, parsed(text))
    elif kind == "detections":
        assert_holds(dt, parsed(text))
    else:
        assert_holds(dt, parsed_records(text))


def follow(gt: lvdet.GroundTruth, dt: lvdet.Detections, folder: Path) -> None:
    """What a user does with the tables."""
    for iou in ("bbox", "segm", "boundary"):
        try:
            lvdet.evaluate(gt, dt, iou=iou)
        except lvdet.InputError as error:
            one_line(error)
    lvdet.write_ground_truth(gt, folder / "again.json")
    assert_same_truth(lvdet.read_ground_truth(folder / "again.json"), gt)
    lvdet.write_detections(dt, folder / "again.json")
    assert_same(lvdet.read_detections(folder / "again.json"), dt)


def run(kind: str, examples: int, folder: Path) -> None:
    outcomes = {"read": 0, "refused": 0}

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.integers(0, 11), changes)
    def try_it(seed: int, changes: list[Change]) -> None:
        content, results = (lvis_case if seed % 2 else coco_case)(seed, seed % 3 > 0)
        texts = {"annotations": json.dumps(content), "detections": json.dumps(results)}
        texts["lines"] = "\n".join(json.dumps(row) for row in results)
        files = {name: text.encode() for name, text in texts.items()}
        files[kind] = damaged(files[kind], changes)
        for name, text in files.items():
            (folder / name).write_bytes(text)
        found = "lines" if kind == "lines" else "detections"
        try:
            gt = lvdet.read_ground_truth(folder / "annotations")
            dt = lvdet.read_detections(folder / found)
        except lvdet.InputError as error:
            outcomes["refused"] += 1
            one_line(error)
            return
        outcomes["read"] += 1
        compare(kind, files[kind], gt, dt)
        follow(gt, dt, folder)

    try_it()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run(sys.argv[1], int(sys.argv[2]), Path(name))
