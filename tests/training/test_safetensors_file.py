"""The safetensors format beside its own package, both ways, and files that lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from lvdet.errors import InputError
from lvdet.training.records.safetensors_file import read_metadata, read_tensors, write_tensors

TYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]
METADATA = {"step": "12", "names": '["ü", "\\n"]'}


def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    made = {str(kind): (torch.randn(3, 5) * 4).to(kind) for kind in TYPES}
    made["scalar"] = torch.tensor(2.5)
    made["none"] = torch.empty(0, 3)
    made["byte"] = torch.tensor([True])
    made["across"] = torch.randn(4, 6).t()
    made["channels last"] = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    return made


def require_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor), name


def test_the_package_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors(), METADATA)
    require_same(load_file(path), tensors())
    with safe_open(path, "pt") as file:
        assert file.metadata() == METADATA


def test_what_the_package_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    whole = {name: tensor.contiguous() for name, tensor in tensors().items()}
    save_file(whole, path, METADATA)
    found, metadata = read_tensors(path)
    require_same(found, whole)
    assert metadata == METADATA == read_metadata(path)


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors())
    found, metadata = read_tensors(path)
    require_same(found, tensors())
    assert metadata == {}
    write_tensors(path, {})
    assert read_tensors(path) == ({}, {})


def test_tensors_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors())
    length = int.from_bytes(path.read_bytes()[:8], "little")
    assert length % 8 == 0
    header = json.loads(path.read_bytes()[8 : 8 + length])
    for name, tensor in tensors().items():
        assert header[name]["data_offsets"][0] % tensor.element_size() == 0


def lying(path: Path, header: Any, content: bytes, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + content)
    return path


def entry(begin: Any, end: Any, shape: Any = (2,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "content", "says"),
    [
        ({"a": entry(0, 8)}, b"1234567", "7 bytes of tensors, its header says 8"),
        ({"a": entry(0, 8)}, b"123456789", "9 bytes of tensors, its header says 8"),
        ({"a": entry(8, 16)}, b"1" * 16, "a begins at byte 8, expected 0"),
        ({"a": entry(0, 8), "b": entry(4, 12)}, b"1" * 12, "b begins at byte 4, expected 8"),
        ({"a": entry(0, 8), "b": entry(0, 8)}, b"1" * 8, "b begins at byte 0, expected 8"),
        ({"a": entry(0, 8), "b": entry(12, 20)}, b"1" * 20, "b begins at byte 12"),
        ({"a": entry(0, 8, [3])}, b"1" * 8, "shape [3] and dtype F32 is in 8 bytes"),
        ({"a": entry(8, 0)}, b"1" * 8, "is in -8 bytes"),
        ({"a": entry(0, 8, [-1, -2])}, b"1" * 8, "no whole numbers"),
        ({"a": entry(0, 8.0)}, b"1" * 8, "no whole numbers"),
        ({"a": entry(0, True)}, b"1" * 8, "no whole numbers"),
        ({"a": entry(0, 0, [0, 1 << 70])}, b"", "no whole numbers"),
        ({"a": entry(0, 8, "ab")}, b"1" * 8, "no whole numbers"),
        ({"a": entry(0, 8, [2], "F4")}, b"1" * 8, "'F4'"),
        ({"a": entry(0, 8, [2], ["F32"])}, b"1" * 8, "'F32'"),
        ({"a": {"dtype": "F32"}}, b"", "expected to have dtype, shape and 2 data_offsets"),
        ({"a": 3}, b"", "expected to have dtype"),
        ({"__metadata__": {"a": 3}}, b"", "expected to hold texts"),
        ({"__metadata__": 3}, b"", "expected to hold texts"),
        ([], b"", "not an object"),
        (b"{" * 100_000, b"", "not JSON"),
        (b"[" * 100_000, b"", "not JSON"),
        (b'{"a": {}, "a": {}}', b"", "not JSON"),
        (b"\xff\xfe", b"", "not JSON"),
    ],
)
def test_files_that_lie(header: Any, content: bytes, says: str, tmp_path: Path) -> None:
    path = lying(tmp_path / "a.safetensors", header, content)
    with pytest.raises(InputError) as caught:
        read_tensors(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [3, 1 << 30, (1 << 64) - 1])
def test_a_header_that_is_longer_than_the_file(length: int, tmp_path: Path) -> None:
    path = lying(tmp_path / "a.safetensors", b"{}", b"", length)
    with pytest.raises(InputError, match="not a whole one"):
        read_tensors(path)


def test_no_file_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for path, says in ((tmp_path / "empty", "0 bytes"), (tmp_path / "none", "No such file")):
        with pytest.raises(InputError, match=says):
            read_tensors(path)


def test_a_large_empty_tensor(tmp_path: Path) -> None:
    path = lying(tmp_path / "a.safetensors", {"a": entry(0, 0, [1 << 40, 0, 1 << 40])}, b"")
    try:
        found = read_tensors(path)[0]["a"]
    except InputError:
        return
    assert found.numel() == 0


def test_a_tensor_that_is_not_aligned(tmp_path: Path) -> None:
    header = {"a": entry(0, 1, [1], "U8"), "b": entry(1, 9, [2], "F32")}
    content = b"\x07" + torch.tensor([1.5, -2.0]).numpy().tobytes()
    found, _ = read_tensors(lying(tmp_path / "a.safetensors", header, content))
    assert found["b"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_file_that_was_cut(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors(), METADATA)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError):
        read_tensors(path)
