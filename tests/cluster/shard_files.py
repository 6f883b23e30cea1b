"""Results cut into files of several formats."""

from __future__ import annotations

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import lvdet

Json = dict[str, Any]


def write_shards(results: list[Json], folder: Path, count: int, seed: int) -> list[Path]:
    """The results in their order, in `count` files, some of them empty."""
    rng = random.Random(seed)
    cuts = sorted(rng.randint(0, len(results)) for _ in range(count - 1))
    cuts = [0, *cuts, len(results)]
    pieces = [results[begin:end] for begin, end in pairwise(cuts)]
    return [write_shard(rows, folder / f"{place:03}", rng) for place, rows in enumerate(pieces)]


def write_shard(rows: list[Json], stem: Path, rng: random.Random) -> Path:
    """The rows in some format."""
    form = rng.choice(["json", "jsonl", "json.gz", "parquet"])
    path = stem.with_suffix(f".{form}")
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json.gz":
        path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    elif form == "parquet" and rows:
        whole = stem.with_suffix(".tmp.json")
        whole.write_text(json.dumps(rows))
        lvdet.write_detections(lvdet.read_detections(whole), path)
        whole.unlink()
    else:
        path = stem.with_suffix(".json")
        path.write_text(json.dumps(rows))
    return path
