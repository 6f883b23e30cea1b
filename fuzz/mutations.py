"""Random changes to good inputs."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

#: What often lies at an edge, as JSON values.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 0.5, -0.0, 1e308, -1e-320, 2**31, 2**53 + 1, 2**63, 10**400),
    *("", "a", "é\u2028", "r", "old", "\x00", [], {}, [[]], [None], {"a": 1}, float("nan")),
    *(float("inf"), [0] * 9, "1" * 300),
]
PIECES = [
    *(bytes([byte]) for byte in b'{}[],:"\\\0\x01\x7f\x80\xff -+.eE0179tfnNI\n\r='),
    *(b"null", b"NaN", b"1e999", b"9" * 25, b"[[", b'""', b"\\u00e9", b"\xc3\xa9", b"\xed\xa0\x80"),
]
NUMBERS = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
]


def changed_bytes(rng: random.Random, content: bytes) -> bytes:
    """One to four changes, mostly small."""
    out = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at:at] = rng.choice(PIECES)
        elif kind == 2:
            del out[at : at + rng.choice([1, 1, 2, 4, 8, 50])]
        elif kind == 3:
            del out[at:]
        elif kind == 4:
            begin = rng.randrange(len(out) + 1)
            out[at:at] = out[begin : begin + rng.choice([1, 4, 20, 200])]
        elif kind == 5:
            width = rng.choice([1, 2, 4, 8])
            number = rng.choice(NUMBERS) % 256**width
            out[at : at + width] = number.to_bytes(width, rng.choice(["little", "big"]))
        else:
            out[at : at + 8] = struct.pack("<d", rng.choice([0.0, -1.0, 1e308, float("nan"), 0.5]))
    return bytes(out)


def changed_value(rng: random.Random, content: Any) -> Any:
    """The JSON value with a few parts replaced, removed, doubled or moved."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        places = _places(content)
        if not places:
            return rng.choice(VALUES)
        holder, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, its_key = rng.choice(places)
            holder[key] = copy.deepcopy(other[its_key])
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 3 and isinstance(holder[key], int | float):
            holder[key] = rng.choice([-holder[key], holder[key] + 1, holder[key] // 2, 0])
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return content


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    keys = content if isinstance(content, dict) else range(len(content))
    for key in keys:
        found.append((content, key))
        if isinstance(content[key], dict | list):
            found += _places(content[key])
    return found


def changed_json(rng: random.Random, content: Any) -> bytes:
    """JSON text of a changed value, or changed text."""
    if rng.random() < 0.6:
        return json.dumps(changed_value(rng, content)).encode()
    return changed_bytes(rng, json.dumps(content).encode())
