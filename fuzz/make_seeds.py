"""Writes the first inputs of each native fuzz target: `python make_seeds.py FOLDER`.

All are drawn from a fixed seed by the generators of the tests.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from files.annotation_files import coco, lvis, lvis_v05
from files.record_files import any_record, array_text, lines_text, number_text, object_text
from oracles.cases import coco_case, lvis_case, polygon_case

#: Options of the readers' targets: chunks, masks, threads, steps, a limit.
OPTIONS = [0, 3, 11, 0x33, 0x76, 0xB4, 0xF2, 7]


def of_number(rng: random.Random) -> Iterator[bytes]:
    for _ in range(60):
        value = rng.choice([rng.randint(-(2**63), 2**63), rng.uniform(-1e3, 1e3), rng.random()])
        yield number_text(rng, value * 10.0 ** rng.randint(-30, 30)).encode() + b","
        yield number_text(rng, int(value)).encode() + b"]"


def of_detections(rng: random.Random) -> Iterator[bytes]:
    for number in range(24):
        results = (lvis_case if number % 2 else coco_case)(number, number % 3 > 0)[1][:4]
        records = [any_record(rng) for _ in range(2)]
        options = bytes([OPTIONS[number % 8]])
        for write in (array_text, lines_text):
            yield options + write(rng, records).encode()
            yield options + write(rng, results).encode()
        named = [row | {"image_id": rng.choice(["a.jpg", "b", "139"])} for row in results]
        yield options + json.dumps(named).encode()


def of_annotations(rng: random.Random) -> Iterator[bytes]:
    for number in range(16):
        options = bytes([OPTIONS[number % 8]])
        content = (lvis_case if number % 2 else coco_case)(number, number % 3 > 0)[0]
        content = {key: value[:3] for key, value in content.items()}
        yield options + object_text(rng, content).encode()
        yield options + object_text(rng, rng.choice([coco, lvis, lvis_v05])()).encode()


def of_rle(rng: random.Random) -> Iterator[bytes]:
    import numpy as np
    import pycocotools.mask as coco_mask

    for number in range(60):
        height, width = rng.randint(1, 60), rng.randint(1, 60)
        pixels = np.random.default_rng(number).random((2, height, width)) < rng.random()
        texts = [
            coco_mask.encode(np.asfortranarray(one, dtype=np.uint8))["counts"] for one in pixels
        ]
        yield bytes([rng.choice([0, 2, 4, 6]), height, width]) + b" ".join(texts)
        runs = [rng.choice([0, 1, 31, 2**16, 2**32 - 1]) for _ in range(rng.randint(0, 9))]
        yield bytes([1, 0, 0]) + struct.pack(f"<{len(runs)}I", *runs)


def of_polygons(rng: random.Random) -> Iterator[bytes]:
    for _ in range(60):
        parts, height, width = polygon_case(rng)
        made = b""
        for part in parts:
            values = [max(-(2**15), min(2**15 - 1, round(8 * value))) for value in part]
            made += bytes([len(part)]) + struct.pack(f"<{len(values)}h", *values)
        yield bytes([rng.choice([0, 2, 4, 6]), height, width]) + made
        row = struct.pack(f"<{1 + len(parts)}I", len(parts), *map(len, parts))
        yield (
            bytes([1, height, width])
            + row
            + b"".join(struct.pack(f"<{len(part)}d", *part) for part in parts)
        )


def of_paste(rng: random.Random) -> Iterator[bytes]:
    for number in range(40):
        yield bytes([rng.randint(0, 7), number % 2]) + rng.randbytes(rng.randint(0, 300))


def of_image_names(rng: random.Random) -> Iterator[bytes]:
    names = ["a.jpg", "val/a.jpg", "train/a.png", "b", "000000000139.jpg", "./x//y.z", "é.jpg"]
    for _ in range(30):
        known, asked = rng.choices(names, k=4), rng.choices([*names, "139", "7", "a"], k=4)
        yield "\n".join([*known, "", *asked]).encode()


SEEDS = {
    name.removeprefix("of_"): make for name, make in globals().items() if name.startswith("of_")
}


def main(folder: Path) -> None:
    for name, make in SEEDS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(make(random.Random(name))):
            (folder / name / f"{number:03}").write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
