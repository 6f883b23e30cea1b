"""Pickles of arrays and plain containers. Reading one does not execute code from the file.

The interpreter of opcodes is Python's own, with three changes: it knows only the opcodes that plain
values need; every global in a file is replaced with one of the stand-ins below, or refused; and a
length beyond the end of the file is an error. Arrays are views of the file's bytes.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError

#: Types of numbers, as NumPy's pickles name them.
_NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_MOST_DIMENSIONS = 8


class _RefusedError(Exception):
    """The problem, in words."""


class _Dtype:
    """Stands for `numpy.dtype` of numbers."""

    def __init__(self, name: object = None, *_: object) -> None:
        if isinstance(name, bytes):
            name = name.decode("latin1")
        if not isinstance(name, str) or name.lstrip("<>=|") not in _NUMBERS:
            raise _RefusedError(f"has an array of {_short(name)}, expected numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if isinstance(order, bytes):
            order = order.decode("latin1")
        if order not in ("<", ">", "=", "|"):
            raise _RefusedError("has an array of an unknown type")
        self.dtype = self.dtype.newbyteorder(cast("Any", order))


class _Array:
    """Stands in for `numpy.ndarray`: created by `_reconstruct`, filled by its state."""

    def __init__(self) -> None:
        self.array: NDArray[Any] | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise _RefusedError("has a damaged array")
        shape, dtype, fortran, data = state[-4:]
        self.array = _viewed(data, dtype, shape, "F" if fortran else "C")


class _Mapping(dict[Any, Any]):
    """Stands for `collections.OrderedDict`; attributes are dropped."""

    def __init__(self, pairs: object = ()) -> None:
        super().__init__()
        if not isinstance(pairs, list | tuple):
            raise _RefusedError("has a damaged OrderedDict")
        for key, value in pairs:
            self[_plain_key(key)] = value

    def __setstate__(self, state: object) -> None:
        pass


class _NdarrayName:
    """What `numpy.ndarray` is in a pickle: an argument, never called."""


def _reconstruct(kind: object, shape: object, *_: object) -> _Array:
    if kind is not _NdarrayName or shape != (0,):
        raise _RefusedError("has an array of a class other than numpy.ndarray")
    return _Array()


def _from_buffer(data: object, dtype: object, shape: object, order: object = "C") -> _Array:
    made = _Array()
    made.array = _viewed(data, dtype, shape, "F" if order == "F" else "C")
    return made


def _scalar(dtype: object, data: object) -> Any:
    return _viewed(data, dtype, (), "C").item()


def _encode(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _RefusedError("has bytes in an unknown encoding")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """How older protocols write `bytes()`."""
    return b""


def _viewed(data: object, dtype: object, shape: object, order: str) -> NDArray[Any]:
    """An array over the file's bytes, if their number matches its shape."""
    if isinstance(data, str):  # of Python 2
        data = data.encode("latin1")
    if not isinstance(data, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise _RefusedError("has an array without bytes")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise _RefusedError("has an array without a shape")
    if len(shape) > _MOST_DIMENSIONS:
        raise _RefusedError(f"has an array of {len(shape)} dimensions")
    needed = math.prod(shape) * dtype.dtype.itemsize
    if needed != len(data):
        raise _RefusedError(
            f"has an array of shape {shape} with {len(data):,} bytes, not {needed:,}"
        )
    return np.frombuffer(data, dtype.dtype).reshape(shape, order=cast("Any", order))


def _short(wanted: object) -> str:
    """On one line."""
    text = "".join(c if c.isprintable() else "?" for c in str(wanted))
    return text if len(text) <= 60 else text[:60] + "…"


def _plain_key(key: object) -> object:
    """Keys are hashed: of tuples in tuples that may take forever, and numbers may collide."""
    if not isinstance(key, str | bytes):
        raise _RefusedError(f"has a key of type {type(key).__name__}, expected text")
    return key


_OF_NUMPY = {"_reconstruct": _reconstruct, "scalar": _scalar}
_GLOBALS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _NdarrayName,
    ("numpy", "dtype"): _Dtype,
    ("collections", "OrderedDict"): _Mapping,
    ("_codecs", "encode"): _encode,
    ("builtins", "bytes"): _no_bytes,
    ("__builtin__", "bytes"): _no_bytes,
    **{
        (f"numpy.{core}.multiarray", name): stand_in
        for core in ("core", "_core")
        for name, stand_in in _OF_NUMPY.items()
    },
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}
_CALLED = (_Dtype, _Mapping, _reconstruct, _from_buffer, _scalar, _encode, _no_bytes)
#: What plain values are written with: no objects, no classes made, no persistent ids.
_OPCODES = (
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.POP_MARK),
    *(pickle.DUP, pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.REDUCE, pickle.BUILD),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.FLOAT, pickle.BINFLOAT),
    *(pickle.INT, pickle.BININT, pickle.BININT1, pickle.BININT2),
    *(pickle.LONG, pickle.LONG1, pickle.LONG4),
    *(pickle.STRING, pickle.BINSTRING, pickle.SHORT_BINSTRING),
    *(pickle.UNICODE, pickle.BINUNICODE, pickle.SHORT_BINUNICODE, pickle.BINUNICODE8),
    *(pickle.BINBYTES, pickle.SHORT_BINBYTES, pickle.BINBYTES8, pickle.BYTEARRAY8),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.EMPTY_LIST, pickle.LIST, pickle.APPEND, pickle.APPENDS),
    *(pickle.EMPTY_DICT, pickle.DICT, pickle.SETITEM, pickle.SETITEMS),
    *(pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE),
    *(pickle.GET, pickle.BINGET, pickle.LONG_BINGET),
)
_PythonUnpickler: Any = pickle._Unpickler


class _File:
    """Gives no more bytes than there are: nothing is reserved for a length that is a lie."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size

    def read(self, count: int) -> bytes:
        if count > self.size - self._file.tell():
            raise EOFError
        return self._file.read(count)

    def readline(self) -> bytes:
        return self._file.readline()


class _ArrayUnpickler(_PythonUnpickler):  # type: ignore[misc]
    """Python's, since the faster one in C reserves memory for numbers in the memo that are lies."""

    def __init__(self, file: _File) -> None:
        super().__init__(file, encoding="latin1")
        self._longest = file.size

    dispatch = {code[0]: _PythonUnpickler.dispatch[code[0]] for code in _OPCODES}  # noqa: RUF012

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _GLOBALS:
            wanted = _short(f"{module}.{name}")
            raise _RefusedError(f"refers to {wanted}, expected arrays and plain containers")
        return _GLOBALS[module, name]

    def load_reduce(self) -> None:
        arguments = self.stack.pop()
        called = self.stack[-1]
        if called not in _CALLED or not isinstance(arguments, tuple):
            raise _RefusedError("calls something that is not callable")
        self.stack[-1] = called(*arguments)

    def load_build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Dtype | _Array | _Mapping):
            raise _RefusedError("sets the state of an object that has none")
        self.stack[-1].__setstate__(state)

    def load_setitem(self) -> None:
        _plain_key(self.stack[-2])
        super().load_setitem()

    def load_setitems(self) -> None:
        for key in self.stack[::2]:
            _plain_key(key)
        super().load_setitems()

    def load_dict(self) -> None:
        for key in self.stack[::2]:
            _plain_key(key)
        super().load_dict()

    def load_bytearray8(self) -> None:
        count = int.from_bytes(self.read(8), "little")
        if count > self._longest:
            raise EOFError
        self.append(bytearray(self.read(count)))

    _changed: dict[bytes, Callable[..., None]] = {  # noqa: RUF012
        pickle.REDUCE: load_reduce,
        pickle.BUILD: load_build,
        pickle.SETITEM: load_setitem,
        pickle.SETITEMS: load_setitems,
        pickle.DICT: load_dict,
        pickle.BYTEARRAY8: load_bytearray8,
    }
    dispatch.update({code[0]: load for code, load in _changed.items()})


def read_array_pickle(path: Path) -> dict[str, Any]:
    """The outermost dict of a file. Dicts in it are dicts, arrays read-only NumPy arrays over the
    file's bytes; in lists and deeper they stay as they are."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            found = _ArrayUnpickler(_File(file, size)).load()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except _RefusedError as error:
        raise InputError(f"{path}: refused, it {error}") from None
    except KeyError as error:
        code = error.args[0] if error.args else ""
        known = f"opcode {bytes([code])!r}" if isinstance(code, int) and code < 256 else "a key"
        raise InputError(f"{path}: refused, {known} is not a plain value") from None
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: not a pickle of weights, or truncated ({text})") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: not weights: {type(found).__name__}, expected a dict")
    resolved: dict[int, dict[str, Any]] = {}
    outer = _resolved(found, resolved)
    outer = {
        key: _resolved(value, resolved) if isinstance(value, dict) else value
        for key, value in outer.items()
    }
    arrays = {id(v): v for part in resolved.values() for v in part.values()}
    held = sum(v.nbytes for v in arrays.values() if isinstance(v, np.ndarray))
    if held > size:
        raise InputError(f"{path}: refused, {held:,} bytes of arrays in a file of {size:,}")
    return outer


def _resolved(found: dict[Any, Any], before: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """A dict with stand-ins replaced by what they stand for, once however often it is named."""
    if id(found) not in before:
        before[id(found)] = {_name(key): _value(value) for key, value in found.items()}
    return before[id(found)]


def _name(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)


def _value(value: Any) -> Any:
    return value.array if isinstance(value, _Array) else value
