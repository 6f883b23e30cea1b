"""Tensors there and back, and files that are damaged."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.records.tensor_file import read_metadata, read_tensors, write_tensors

METADATA = {"step": "12", "names": '["ü", "\\n"]'}


def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    types = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
    made = {str(kind): (torch.randn(3, 5) * 4).to(kind) for kind in types}
    made["scalar"] = torch.tensor(2.5)
    made["none"] = torch.empty(0, 3)
    made["across"] = torch.randn(4, 6).t()
    made["trained"] = torch.randn(2, requires_grad=True)
    made["channels last"] = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    return made


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors(), METADATA)
    found, metadata = read_tensors(path)
    assert metadata == METADATA == read_metadata(path)
    assert found.keys() == tensors().keys()
    for name, tensor in tensors().items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name
    write_tensors(path, {})
    assert read_tensors(path) == ({}, {})
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("end", [0, 3, 9, 200, -9, -1])
def test_a_truncated_file(end: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, tensors(), METADATA)
    path.write_bytes(path.read_bytes()[:end])
    refused(path, "not a safetensors file, or truncated")


@pytest.mark.parametrize("offsets", [[8, 16], [0, 4], [0, 1 << 60]])
def test_a_header_that_lies(offsets: list[int], tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": offsets}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"12345678")
    refused(path, "not a safetensors file, or truncated")


def test_no_file(tmp_path: Path) -> None:
    refused(tmp_path / "none", "No such file")
    refused(tmp_path, "")


def refused(path: Path, says: str) -> None:
    for read in (read_tensors, read_metadata):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: {says}")
        assert "\n" not in str(caught.value)


def test_a_message_stays_on_one_line(tmp_path: Path) -> None:
    """It quotes the header, in which there may be what ends a line."""
    header = '{"a": {"dtype": "\u2028F32\\n", "shape": [], "data_offsets": [0, 4]}}'.encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(InputError, match="not a safetensors file") as caught:
        read_tensors(path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_it_is_on_disk_and_readable_as_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    path, other = tmp_path / "model.safetensors", tmp_path / "other"
    write_tensors(path, tensors())
    other.touch()
    assert path.stat().st_ino in synced
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    write_tensors(path, tensors())
    assert path.stat().st_ino in synced
    assert path.stat().st_mode & 0o777 == 0o600
