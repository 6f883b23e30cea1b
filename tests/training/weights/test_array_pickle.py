"""Pickles of arrays are read as NumPy reads them; whatever else is in one is refused."""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.training.weights.array_pickle import read_array_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_and_plain_values(tmp_path: Path, protocol: int) -> None:
    rng = np.random.default_rng(protocol)
    arrays = {
        "conv": rng.normal(size=(4, 3, 2, 2)).astype(np.float32),
        "columns": np.asfortranarray(rng.normal(size=(3, 5))),
        "half": rng.normal(size=7).astype(np.float16),
        "swapped": rng.integers(0, 99, 6).astype(">i4"),
        "nothing": np.zeros((0, 3)),
        "one": np.array(2.5),
        "true": np.array([True, False]),
        "view": np.arange(12.0)[::3],
    }
    content = {
        "model": OrderedDict(arrays),
        "__author__": "somebody",
        "matching_heuristics": True,
        "step": np.float64(1.5),
        "list": [1, (2, None), {"x": b"\xff\x00"}],
    }
    path = written(tmp_path / "a.pkl", pickle.dumps(content, protocol))
    found = read_array_pickle(path)
    assert list(found["model"]) == list(arrays)
    for name, array in arrays.items():
        assert found["model"][name].dtype == array.dtype, name
        np.testing.assert_array_equal(found["model"][name], array)
    assert {k: v for k, v in found.items() if k != "model"} == {
        k: v for k, v in content.items() if k != "model"
    }


def test_as_python_2_and_the_numpy_of_its_time_wrote_them(tmp_path: Path) -> None:
    """Strings are bytes there, and modules have NumPy's older names."""
    data = np.arange(6, dtype="<f4").tobytes()
    content = (
        b"\x80\x02}q\x00U\x05blobsq\x01}q\x02U\x07conv1_wq\x03"
        b"cnumpy.core.multiarray\n_reconstruct\nq\x04cnumpy\nndarray\nq\x05K\x00\x85q\x06"
        b"U\x01bq\x07\x87q\x08Rq\x09(K\x01K\x02K\x03\x86q\x0acnumpy\ndtype\nq\x0bU\x02f4q\x0c"
        b"K\x00K\x01\x87q\x0dRq\x0e(K\x03U\x01<q\x0fNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x10"
        b"b\x89U" + bytes([len(data)]) + data + b"q\x11tq\x12bss."
    )
    expected = pickle.loads(content, encoding="latin1")["blobs"]["conv1_w"]
    found = read_array_pickle(written(tmp_path / "py2.pkl", content))["blobs"]["conv1_w"]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, np.arange(6, dtype=np.float32).reshape(2, 3))


class Calls:
    """Pickles as a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        function, *arguments = self.call
        return function, tuple(arguments)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((eval, "1 + 1"), r"(builtins|__builtin__)\.eval"),
        ((__import__("os").system, "true"), r"(posix|nt)\.system"),
        ((getattr, "", "format"), r"(builtins|__builtin__)\.getattr"),
        ((np.load, "x"), r"numpy\.load"),
        ((np.zeros, 10**12), r"numpy\.zeros|numpy\..*multiarray\.zeros"),
        ((bytearray, 10**12), r"(builtins|__builtin__)\.bytearray"),
    ],
)
def test_a_global_is_refused(
    tmp_path: Path, call: tuple[Any, ...], name: str, protocol: int
) -> None:
    content = pickle.dumps({"model": {"w": np.ones(2), "x": Calls(*call)}}, protocol)
    path = written(tmp_path / "bad.pkl", content)
    with pytest.raises(InputError, match=rf"bad\.pkl: refused, it refers to {name}, exp") as raised:
        read_array_pickle(path)
    assert "\n" not in str(raised.value)


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


NDARRAY = b"cnumpy\nndarray\n"
RECONSTRUCT = b"cnumpy._core.multiarray\n_reconstruct\n"
EMPTY_ARRAY = RECONSTRUCT + NDARRAY + b"K\x00\x85" + text("b") + b"\x87R"
FLOATS = b"cnumpy\ndtype\n" + text("f4") + b"\x89\x88\x87R"


def state(shape: bytes, dtype: bytes, data: bytes) -> bytes:
    return b"(K\x01" + shape + dtype + b"\x89" + data + b"tb"


def in_dict(value: bytes) -> bytes:
    return b"\x80\x04}" + text("model") + b"}" + text("w") + value + b"ss."


HOSTILE = {
    "a dotted name": b"\x80\x04" + text("numpy") + text("core.multiarray.scalar") + b"\x93.",
    "a name through a function": b"\x80\x04"
    + text("_codecs")
    + text("encode.__globals__")
    + b"\x93.",
    "an instance": b"\x80\x04(cos\nsystem\no.",
    "an instance by name": b"\x80\x02(ios\nsystem\n.",
    "a class made": b"\x80\x04" + NDARRAY + b")\x81.",
    "an array class called": b"\x80\x04" + NDARRAY + b"J\xff\xff\xff\x7f\x85R.",
    "a persistent id": b"\x80\x04" + text("x") + b"Q.",
    "an extension": b"\x80\x04\x82\x01.",
    "a state of a class": b"\x80\x04" + NDARRAY + b"}" + text("a") + b"K\x01sb.",
    "a state of a function": b"\x80\x04" + RECONSTRUCT + b"}" + text("a") + b"K\x01sb.",
    "a subclass of arrays": b"\x80\x04"
    + RECONSTRUCT
    + b"cnumpy\ndtype\n"
    + b"K\x00\x85"
    + text("b")
    + b"\x87R.",
    "a huge array made": b"\x80\x04"
    + RECONSTRUCT
    + NDARRAY
    + b"\x8a\x06\x00\x00\x00\x00\x00\x10\x85"
    + text("b")
    + b"\x87R.",
    "a shape larger than its data": in_dict(
        EMPTY_ARRAY + state(b"\x8a\x06\x00\x00\x00\x00\x00\x10\x85", FLOATS, b"C\x04abcd")
    ),
    "a negative shape": in_dict(
        EMPTY_ARRAY + state(b"J\xff\xff\xff\xffJ\xff\xff\xff\xff\x86", FLOATS, b"C\x04abcd")
    ),
    "a shape of no numbers": in_dict(
        EMPTY_ARRAY + state(text("a") + b"\x85", FLOATS, b"C\x04abcd")
    ),
    "objects": in_dict(
        EMPTY_ARRAY
        + state(b"K\x01\x85", b"cnumpy\ndtype\n" + text("O8") + b"\x89\x88\x87R", b"C\x08abcdefgh")
    ),
    "an array without a type": in_dict(EMPTY_ARRAY + state(b"K\x01\x85", b"N", b"C\x04abcd")),
    "bytes longer than the file": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"abc.",
    "a bytearray longer than the file": b"\x80\x05\x96" + struct.pack("<Q", 1 << 36) + b"abc.",
    "text longer than the file": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"abc.",
    "a frame longer than the file": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
    "a set of what it likes": b"\x80\x04\x8f(K\x01\x90.",
    "keys that are tuples": b"\x80\x04)"
    + b"2\x86" * 64
    + b"0}"
    + b")"
    + b"2\x86" * 64
    + b"K\x01s.",
    "keys that are numbers": b"\x80\x04}K\x01K\x02s.",
    "an OrderedDict of tuples": b"\x80\x04ccollections\nOrderedDict\n(((K\x01K\x02tK\x03tttR.",
    "an OrderedDict of a number": b"\x80\x04ccollections\nOrderedDict\nK\x01\x85R.",
    "numbers as keys of many": b"\x80\x04}(K\x01K\x02u.",
    "numbers as keys of a dict": b"\x80\x04(K\x01K\x02d.",
    "a state that is no tuple": in_dict(EMPTY_ARRAY + b"K\x01b"),
    "an order that is none": b"\x80\x04cnumpy\ndtype\n"
    + text("f4")
    + b"\x85R(K\x03"
    + text("?")
    + b"tb.",
    "bytes in another encoding": b"\x80\x04c_codecs\nencode\n"
    + text("x")
    + text("utf-7")
    + b"\x86R.",
    "nine dimensions": in_dict(
        EMPTY_ARRAY + state(b"(" + b"K\x01" * 9 + b"t", FLOATS, b"C\x04abcd")
    ),
    "a list": b"\x80\x04]K\x01a.",
    "nothing": b"",
    "half of one": pickle.dumps({"model": {"w": np.ones(99)}})[:300],
    "another file": b"PK\x03\x04 a zip archive",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files(tmp_path: Path, what: str) -> None:
    path = written(tmp_path / "bad.pkl", HOSTILE[what])
    with pytest.raises(InputError, match=r"bad\.pkl: (refused|not )") as raised:
        read_array_pickle(path)
    assert "\n" not in str(raised.value)


def test_a_number_in_the_memo_reserves_nothing(tmp_path: Path) -> None:
    """C's unpickler would reserve 64 GiB for this one."""
    content = b"\x80\x04" + text("w") + b"r\xff\xff\xff\xff" + b"0}h\x00s."
    list(pickletools.genops(content))
    with pytest.raises(InputError, match="not a pickle of weights"):
        read_array_pickle(written(tmp_path / "memo.pkl", content))


def test_bytes_that_many_arrays_share(tmp_path: Path) -> None:
    data = b"B" + struct.pack("<I", 4000) + bytes(4000) + b"\x94"
    first = EMPTY_ARRAY + state(b"M\xe8\x03\x85", FLOATS, data)
    more = b"".join(
        text(f"w{number}") + EMPTY_ARRAY + state(b"M\xe8\x03\x85", FLOATS, b"h\x00") + b"s"
        for number in range(50)
    )
    content = b"\x80\x04}" + text("model") + b"}" + text("w") + first + b"s" + more + b"s."
    with pytest.raises(InputError, match=r"204,000 bytes of arrays in a file of "):
        read_array_pickle(written(tmp_path / "shared.pkl", content))


def test_a_dict_that_is_named_many_times_is_looked_at_once(tmp_path: Path) -> None:
    inner = {f"w{number}": number for number in range(1000)}
    content = pickle.dumps({f"d{number}": inner for number in range(1000)})
    found = read_array_pickle(written(tmp_path / "dicts.pkl", content))
    assert len({id(value) for value in found.values()}) == 1
    assert found["d7"] == inner


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.pkl: No such file"):
        read_array_pickle(tmp_path / "none.pkl")


def test_an_ordered_dict_of_pairs_and_types_as_bytes(tmp_path: Path) -> None:
    """As other writers than Python's put them."""
    dtype = b"cnumpy\ndtype\nC\x02f4\x85R(K\x03C\x01<tb"
    array = EMPTY_ARRAY + state(b"K\x01\x85", dtype, b"C\x04" + np.float32(2.5).tobytes())
    content = b"\x80\x04ccollections\nOrderedDict\n]" + text("w") + array + b"\x86a\x85R."
    expected = pickle.loads(content)["w"]
    assert expected.tolist() == [2.5]
    found = read_array_pickle(written(tmp_path / "pairs.pkl", content))
    np.testing.assert_array_equal(found["w"], expected)
