"""Bytes of partials: what was written is read, and anything else is an InputError."""

from __future__ import annotations

import functools
import json
import random
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from partitions import written

GT, DT = lvdet.simulate(images=6, classes=8, dets_per_image=12, seed=3)


@functools.cache
def some_bytes() -> bytes:
    return lvdet.Partial.of(
        GT, DT, dets_per_class=20, classes=[1, 2, 3], groups={"novel": [1, 2]}, like=None
    ).to_bytes()


def checked(body: bytes) -> bytes:
    """With the length and the checksum that the bytes should have."""
    body = body[:12] + struct.pack("<Q", len(body) - 20 + 16) + body[20:]
    return body + blake2b(body, digest_size=16).digest()


def with_header(change: Any) -> bytes:
    """The bytes with a changed header."""
    data = some_bytes()
    size = struct.unpack_from("<I", data, 20)[0]
    header = json.loads(data[24 : 24 + size])
    changed = change(header)
    text = changed if isinstance(changed, bytes) else json.dumps(header).encode()
    return checked(data[:20] + struct.pack("<I", len(text)) + text + data[24 + size : -16])


def test_what_is_written_is_read() -> None:
    data = some_bytes()
    one = lvdet.Partial.from_bytes(data)
    assert one.to_bytes() == data
    assert lvdet.Partial.from_bytes(bytearray(data)).to_bytes() == data
    assert lvdet.Partial.from_bytes(memoryview(data)).to_bytes() == data
    assert checked(data[:-16]) == data
    assert with_header(lambda header: None) == data


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    for begin in (b"", b"lvdetPRT", some_bytes()[:24], some_bytes()[:80]):
        with pytest.raises(lvdet.InputError):
            lvdet.Partial.from_bytes(begin + data)


def test_every_truncation_and_every_changed_byte_is_refused() -> None:
    data = some_bytes()
    places = [*range(300), *random.Random(0).sample(range(len(data)), 300)]
    for place in places:
        with pytest.raises(lvdet.InputError):
            lvdet.Partial.from_bytes(data[:place])
        changed = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        with pytest.raises(lvdet.InputError):
            lvdet.Partial.from_bytes(changed)
    with pytest.raises(lvdet.InputError, match="something follows it"):
        lvdet.Partial.from_bytes(data + b"\0")


@given(seed=st.integers(0, 2**32), changes=st.integers(1, 6))
def test_bytes_with_a_right_checksum_are_refused_or_harmless(seed: int, changes: int) -> None:
    """Whatever a partial says that passes all checks can be merged and evaluated, or is refused."""
    rng, data = random.Random(seed), bytearray(some_bytes()[:-16])
    for _ in range(changes):
        place = rng.randrange(24, len(data))
        data[place] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256), ord("9"), ord("-")])
    with suppress(lvdet.InputError):
        one = lvdet.Partial.from_bytes(checked(bytes(data)))
        assert lvdet.Partial.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()
        assert written(one.evaluate(GT))


def test_headers_that_lie_are_refused() -> None:
    huge = 2**31 - 1

    def refused(change: Any) -> None:
        tracemalloc.start()
        with pytest.raises(lvdet.InputError) as error:
            lvdet.Partial.from_bytes(with_header(change))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()
        assert "\n" not in str(error.value)

    for name in json.loads(some_bytes()[24:].split(b"}}")[0] + b"}}")["sizes"]:
        for value in (huge, -1, 1.5, "1", None, True, 2**70, [1]):
            refused(lambda header, name=name, value=value: header["sizes"].update({name: value}))
    settings = json.loads(some_bytes()[24:].split(b"}}")[0] + b"}}")["settings"]
    for name in settings:
        for value in ([[]], {"a": 1}, 0.5, ["x", 1], [float("nan")], [10**400]):
            refused(lambda header, name=name, value=value: header["settings"].update({name: value}))
    refused(lambda header: header.pop("form"))
    refused(lambda header: header.update(form={"iou": "bbox"}))
    refused(lambda header: header["form"].update(iou="no"))
    refused(lambda header: header["form"].update(masks=1))
    refused(lambda header: header.update(form=None))
    refused(lambda header: header.update(source=5))
    refused(lambda header: header.update(more=5))
    refused(lambda header: b"[" * 100_000)
    refused(lambda header: b"9" * 10_000)
    refused(lambda header: b"\xff")
    refused(lambda header: b"[]")


def test_columns_that_lie_are_refused() -> None:
    one = lvdet.Partial.of(GT, DT)
    columns = one.part.columns()

    def refused(name: str, place: int, value: float) -> None:
        column = columns[name].copy()
        column.reshape(-1)[place] = value
        bad = replace(one, part=replace(one.part, **{name: column})).to_bytes()
        with pytest.raises(lvdet.InputError, match="impossible values"):
            lvdet.Partial.from_bytes(bad)

    rows = len(DT)
    for name in ("image", "category", "matched", "hits", "contested", "boxed", "drawn"):
        if len(columns[name]):
            refused(name, 0, -1)
            refused(name, -1, rows)
    refused("image_ids", 0, 2**40)
    refused("category_ids", 0, 2**40)
    refused("score", 3, np.nan)
    refused("score", 3, np.inf)
    refused("position", 0, 2**40)
    refused("image_rows", 0, -1)
    refused("image_rows", 0, 1)
    refused("category_rows", 0, 0)
    refused("in_budgets", 0, 2)
    refused("wrong", 0, 16)
    refused("bits", -1, 4)  # of 10 thresholds, 2 are in the last byte
    refused("outside", 0, -1)


def test_matches_of_classes_that_do_not_exist_are_refused() -> None:
    one = lvdet.Partial.of(GT, DT)
    ids = one.part.category_ids + 10**6
    data = replace(one, part=replace(one.part, category_ids=ids)).to_bytes()
    with pytest.raises(lvdet.InputError, match="of classes that do not exist"):
        lvdet.Partial.from_bytes(data).evaluate(GT)


def test_bytes_of_another_version_or_type() -> None:
    data = some_bytes()
    with pytest.raises(lvdet.InputError, match="version 2, expected 1"):
        lvdet.Partial.from_bytes(data[:8] + struct.pack("<I", 2) + data[12:])
    with pytest.raises(lvdet.InputError, match="of type str, expected contiguous bytes"):
        lvdet.Partial.from_bytes("text")  # type: ignore[arg-type]
    with pytest.raises(lvdet.InputError, match="they begin otherwise"):
        lvdet.Partial.from_bytes(b"\x80\x05" + data)
