"""Records as the files a user would have, and what a table must hold of them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from numpy.typing import NDArray

import lvdet
from lvdet.files import detections_json, parquet, stream
from lvdet.files.stream import detection_tables
from lvdet.tables.masks import NONE, POLYGONS, RLE

Json = dict[str, Any]

#: Two results as most detectors write them.
ROWS: list[Json] = [
    {"image_id": 7, "category_id": 3, "bbox": [1.5, 2.25, 30.0, 4.125], "score": 0.75},
    {"image_id": 2, "category_id": 5, "bbox": [0.0, 12.0, 8.5, 9.0], "score": 0.0625},
]
#: The same with a mask of 3 columns and 4 rows each, and with masks but no boxes.
MASKED = [row | {"segmentation": {"size": [4, 3], "counts": "174"}} for row in ROWS]
MASKS_ALONE = [{key: value for key, value in row.items() if key != "bbox"} for row in MASKED]
#: A record of valid JSON text with a place for the score's text.
WITH_SCORE = '{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": %s}'


def save(path: Path, content: bytes | str | object) -> Path:
    """Writes bytes and text as they are, anything else as JSON."""
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def _whole(digits: str) -> float:
    """ "-0" is a whole number without a sign to `json`."""
    return -0.0 if digits == "-0" else int(digits)


def parsed(text: str) -> Any:
    """What the text means to `json`, but for "-0"."""
    return json.loads(text, parse_int=_whole)


def parsed_records(text: str) -> list[Any]:
    """The same of values one after another, each on a line or on several."""
    decoder, values = json.JSONDecoder(parse_int=_whole), []
    while text := text.lstrip(" \t\r\n"):
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


def bits(numbers: Any) -> list[Any]:
    """The doubles as integers, so that -0.0 is not 0.0."""
    return np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64).tolist()


def polygons_of(content: bytes) -> list[list[float]]:
    """Polygon parts from the bytes of a row of `Masks`, by the definition in its docstring."""
    parts = int.from_bytes(content[:4], "little")
    lengths = np.frombuffer(content, "<u4", parts, 4)
    numbers = np.frombuffer(content[4 + 4 * parts :], "<f8")
    assert lengths.sum() == len(numbers)
    return [part.tolist() for part in np.split(numbers, np.cumsum(lengths)[:-1])]


def encoded(pixels: NDArray[Any]) -> Json:
    """Compressed RLE as a JSON file has it."""
    rle = coco_mask.encode(np.asfortranarray(pixels, dtype=np.uint8))
    return {"size": list(rle["size"]), "counts": rle["counts"].decode()}


def assert_mask(masks: lvdet.Masks, row: int, segmentation: Any) -> None:
    """The row holds this COCO segmentation."""
    kind, content = int(masks.kind[row]), masks.row(row)
    if segmentation is None:
        assert (kind, content) == (NONE, b"")
    elif isinstance(segmentation, list):
        assert kind == POLYGONS
        assert [bits(part) for part in polygons_of(content)] == [bits(p) for p in segmentation]
    else:
        height, width = (int(number) for number in segmentation["size"])
        counts = segmentation["counts"]
        if isinstance(counts, list):
            plain = {"size": [height, width], "counts": [int(run) for run in counts]}
            counts = coco_mask.frPyObjects(plain, height, width)["counts"]
        elif isinstance(counts, str):
            counts = counts.encode()
        assert (kind, content) == (RLE, counts)
        assert (masks.height[row], masks.width[row]) == (height, width)


def assert_holds(table: lvdet.Detections, records: Sequence[Json], *, masks: bool = True) -> None:
    """The table's rows are the records, to the last bit; ids stand by first appearance.

    Boxes are compared where the records have them."""
    assert len(table) == len(records)
    for column, ids, key in (
        (table.image, table.image_ids, "image_id"),
        (table.category, table.category_ids, "category_id"),
    ):
        expected = [int(record[key]) for record in records]
        assert ids[column].tolist() == expected
        assert ids.tolist() == list(dict.fromkeys(expected))
        assert (column.dtype, ids.dtype) == (np.int32, np.int64)
    assert bits(table.score) == bits([record["score"] for record in records])
    assert table.box.shape == (len(records), 4)
    for row, record in enumerate(records):
        if "bbox" in record:
            assert bits(table.box[row]) == bits(record["bbox"])
    segmentations = [record.get("segmentation") for record in records]
    if not masks or all(value is None for value in segmentations):
        assert table.masks is None
        return
    assert table.masks is not None
    assert len(table.masks) == len(records)
    for row, segmentation in enumerate(segmentations):
        assert_mask(table.masks, row, segmentation)


def assert_same(a: lvdet.Detections, b: lvdet.Detections) -> None:
    """All columns are equal, bit for bit."""
    for name in ("image", "category", "image_ids", "category_ids"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    assert bits(a.score) == bits(b.score)
    assert bits(a.box) == bits(b.box)
    assert (a.masks is None) == (b.masks is None)
    if a.masks is not None and b.masks is not None:
        assert_same_masks(a.masks, b.masks)


def assert_same_masks(a: lvdet.Masks, b: lvdet.Masks) -> None:
    for mine, other in zip(a.columns, b.columns, strict=True):
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist()


def one_line(error: Exception) -> str:
    """The error's text, which must be fit to show to a user."""
    text = str(error)
    assert text.strip()
    assert len(text.splitlines()) == 1, text
    return text


def refused(path: Path | str, *says: str, read: Any = lvdet.read_detections) -> str:
    """Reading gives an InputError of one line that names the file and holds the words; results
    read as a stream give the same one."""
    with pytest.raises(lvdet.InputError) as caught:
        read(path)
    text = one_line(caught.value)
    assert Path(path).name in text
    for words in says:
        assert words in text, text
    if read is lvdet.read_detections:
        assert refused_stream(path) == text
    return text


def refused_stream(source: Any) -> str:
    """The errors about a source that is read as a stream of small tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detections_json, "CHUNK", 64)
        patch.setattr(detections_json, "STRETCH", 100)
        with pytest.raises(lvdet.InputError) as caught:
            for _ in detection_tables(source):
                pass
    return one_line(caught.value)


def small(patch: pytest.MonkeyPatch, stretch: int = 400) -> None:
    """A few rows are read, and written, at a time."""
    patch.setattr(detections_json, "CHUNK", 150)
    patch.setattr(detections_json, "STRETCH", stretch)
    patch.setattr(detections_json, "BLOCK", 3)
    patch.setattr(parquet, "BATCH", 7)
    patch.setattr(parquet, "MASK_BATCH", 5)
    patch.setattr(parquet, "ROW_GROUP", 9)
    patch.setattr(stream, "ROWS", 6)


def written(records: Sequence[Json], folder: Path, kind: str) -> Path:
    """The records as a file of this kind."""
    if kind == "json":
        return save(folder / "r.json", records)
    if kind == "gzip":
        return save(folder / "r.json.gz", gzip.compress(json.dumps(records).encode()))
    lines = "".join(json.dumps(record) + "\n" for record in records)
    if kind == "lines":
        return save(folder / "r.jsonl", lines)
    if kind == "gzip lines":
        return save(folder / "r.jsonl.gz", gzip.compress(lines.encode()))
    dt = lvdet.read_detections(records)
    if kind == "npz":
        ids = {"image_id": dt.image_ids[dt.image], "category_id": dt.category_ids[dt.category]}
        np.savez(folder / "r.npz", **ids, score=dt.score, bbox=dt.box)
        return folder / "r.npz"
    lvdet.write_detections(dt, folder / "r.parquet")
    return folder / "r.parquet"


# Random text that means the same to every JSON reader.

STRINGS = ["", "a", "},{", '"},{"', "]", "\\", '\\"', "é", "\u2028", "𝄞", "\n\t\r\b\f", "/", "[{"]
SIZES = [(1, 1), (3, 5), (20, 40), (123, 77)]


def any_segmentation(rng: random.Random) -> Any:
    """Compressed or plain RLE, or polygons."""
    height, width = rng.choice(SIZES)
    form = rng.choice(["rle", "rle", "counts", "polygons"])
    if form == "polygons":
        return [
            [round(rng.uniform(-5, 90), rng.choice([0, 2, 15])) for _ in range(2 * points)]
            for points in rng.choices([3, 4, 9], k=rng.choice([1, 1, 3]))
        ]
    runs, left = [rng.randint(0, 2)], height * width
    runs[0] = min(runs[0], left)
    left -= runs[0]
    while left:
        runs.append(min(left, rng.choice([1, 2, 3, 40, 1000])))
        left -= runs[-1]
    rle = {"size": [height, width], "counts": runs}
    if form == "counts":
        return rle
    return rle | {"counts": coco_mask.frPyObjects(rle, 0, 0)["counts"].decode()}


def any_number(rng: random.Random, low: float = -1e4) -> int | float:
    kind = rng.random()
    if kind < 0.3:
        return rng.randint(int(max(low, -300)), 300)
    if kind < 0.6:
        return round(rng.uniform(low, 1e4), rng.choice([1, 2, 3, 5, 17]))
    return rng.choice([1, -1] if low < 0 else [1]) * 10 ** rng.uniform(-320, 300)


def any_value(rng: random.Random, depth: int = 0) -> Any:
    """What a record may carry under a key nobody knows."""
    kind = rng.random()
    if depth < 3 and kind < 0.3:
        return [any_value(rng, depth + 1) for _ in range(rng.choice([0, 1, 3]))]
    if depth < 3 and kind < 0.6:
        return {
            rng.choice([*STRINGS, "score", "bbox", "image_id"]): any_value(rng, depth + 1)
            for _ in range(rng.choice([0, 1, 3]))
        }
    return rng.choice([None, True, False, any_number(rng), rng.choice(STRINGS)])


def any_record(rng: random.Random, *, masks: bool = True) -> Json:
    record: Json = {
        "image_id": rng.choice([0, 5, 139, -3, 16_383, 16_384, 2**40, -(2**63), 2**63 - 1]),
        "category_id": rng.choice([1, 2, 3, 1203]),
        "score": any_number(rng),
    }
    box = rng.random()
    if masks and rng.random() < 0.6:
        record["segmentation"] = any_segmentation(rng) if rng.random() < 0.9 else None
    if box < 0.9 or record.get("segmentation") is None:
        record["bbox"] = [any_number(rng), any_number(rng), any_number(rng, 0), any_number(rng, 0)]
    while rng.random() < 0.4:
        record[rng.choice([*STRINGS, "id", "image_idx", "scores", "bbo", "area"])] = any_value(rng)
    return record


def boxed_records(rng: random.Random, count: int) -> list[Json]:
    """Random records, all of them with a box."""
    return [{"bbox": [1.0, 2.0, 3.0, 4.0]} | any_record(rng) for _ in range(count)]


def number_text(rng: random.Random, value: float) -> str:
    if isinstance(value, int):
        forms = ["{}", "{}", "{}.0", "{}e0", "{}.000E+00"]
        return rng.choice(forms if abs(value) < 2**53 else forms[:1]).format(value)
    form = rng.choice(["%r", "%r", "%.17g", "%.20g", "%.25e", "%.3e", "%.20E"])
    return form % value


def string_text(rng: random.Random, value: str) -> str:
    """The string in quotes with some characters written as escapes that need none."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)[1:-1]
    plain = text.isascii() and "\\" not in text
    if plain and rng.random() < 0.15:
        text = "".join(f"\\u{ord(c):04x}" if rng.random() < 0.4 else c for c in text)
    return f'"{text}"'


def text_of(rng: random.Random, value: Any, space: Sequence[str] = ("",)) -> str:
    """JSON text in any order of keys, with any white space between tokens."""

    def gap() -> str:
        return rng.choice(space)

    def joined(parts: list[str]) -> str:
        return ",".join(f"{gap()}{part}{gap()}" for part in parts) or gap()

    if isinstance(value, dict):
        pairs = list(value.items())
        rng.shuffle(pairs)
        if pairs and rng.random() < 0.05:
            pairs.insert(0, pairs[-1])  # the same key twice, which must be the last that counts
        return (
            "{"
            + joined(
                [
                    f"{string_text(rng, key)}{gap()}:{gap()}{text_of(rng, item, space)}"
                    for key, item in pairs
                ]
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + joined([text_of(rng, item, space) for item in value]) + "]"
    if isinstance(value, str):
        return string_text(rng, value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return number_text(rng, value)


def object_text(rng: random.Random, value: Json, space: Sequence[str] = ("",)) -> str:
    """The same for the outermost object of an annotation file, where no key may stand twice."""
    pairs = list(value.items())
    rng.shuffle(pairs)
    parts = [f"{string_text(rng, key)}: {text_of(rng, item, space)}" for key, item in pairs]
    return f"{rng.choice(space)}{{{','.join(parts)}{rng.choice(space)}}}{rng.choice(space)}"


SPACES = [("",), ("", " "), ("\n", "  ", "\t"), ("\r\n    ",), ("", "", "", " \r\n\t ")]
LINE_SPACES = [("",), ("", " "), (" ", "\t")]


def array_text(rng: random.Random, records: Sequence[Json]) -> str:
    space = rng.choice(SPACES)
    edge = rng.choice(["", " ", "\n"])
    return edge + text_of(rng, list(records), space) + edge


def lines_text(rng: random.Random, records: Sequence[Json]) -> str:
    """A record a line; blank lines, and the last line's end is not always there."""
    space = rng.choice(LINE_SPACES)
    end = rng.choice(["\n", "\r\n", "\n\n", "\n \t\n"])
    text = end.join(text_of(rng, record, space) for record in records)
    return rng.choice(["", "\n"]) + text + rng.choice(["", "\n", "\n\n"])
