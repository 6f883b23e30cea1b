"""Small files that unpack to large ones are refused before they do."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lvdet
from cli.run_lvdet import python_program
from files.record_files import ROWS, refused, save
from lvdet import bounds
from lvdet.files import parquet_layout
from lvdet.training.data.image_files import read_picture

UNPACKS = "unpacks to .* bytes"
BASE = {"image_id": [1, 1], "category_id": [1, 1], "score": [0.5, 0.25]}
BOX = {name: [1.0, 2.0] for name in "xywh"}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of them: the files stay small."""
    monkeypatch.setattr(bounds, "INFLATED", 1 << 16)


def test_gzip(tmp_path: Path) -> None:
    record = b'{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1},\n'
    many = b"[" + record * 30_000 + b"]"
    path = save(tmp_path / "r.json.gz", gzip.compress(many))
    for read in (lvdet.read_detections, lvdet.read_ground_truth):
        with pytest.raises(lvdet.InputError, match="64 for each byte of the file; if it is to be"):
            read(path)
    few = b"[" + record * 900 + b"]"
    assert len(few) < 1 << 16
    path = save(tmp_path / "few.json.gz", gzip.compress(few.replace(b"},\n]", b"}]")))
    assert len(lvdet.read_detections(path)) == 900


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    np.savez_compressed(path, **BASE, bbox=np.ones((2, 4)), other=np.zeros(1 << 20))
    assert len(lvdet.read_detections(path)) == 2  # what is not used is not unpacked
    np.savez_compressed(path, **(BASE | {"score": np.zeros(1 << 20)}), bbox=np.ones((2, 4)))
    refused(path, "unpacks to 8,38")


@pytest.mark.parametrize("segmentation", [np.array(5), np.array("x"), np.ones((2, 2, 2))])
def test_npz_with_a_segmentation_that_is_none(segmentation: object, tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", **BASE, bbox=np.ones((2, 4)), segmentation=segmentation)
    refused(tmp_path / "r.npz")


def test_parquet_of_equal_rows(tmp_path: Path) -> None:
    columns = {name: np.full(100_000, 1.0) for name in (*BASE, *BOX)}
    pq.write_table(pa.table(columns), tmp_path / "r.parquet", compression="zstd")
    refused(tmp_path / "r.parquet", "unpacks to 5,6")
    lists = {name: [[1.0] * 100_000] for name in ("scores", "labels")}
    lists |= {"image_id": [1], "boxes": [[1.0] * 400_000]}
    pq.write_table(pa.table(lists), tmp_path / "l.parquet", compression="zstd")
    refused(tmp_path / "l.parquet", "unpacks to ")


def lying(folder: Path) -> Path:
    """A file with a mask of a million bytes, whose metadata says that it is shorter."""
    path = folder / "r.parquet"
    masks = {"mask": pa.array([b"0" * 1_000_000, b""]), "mask_kind": pa.array([1, 1], pa.uint8())}
    masks |= {"mask_height": [2, 2], "mask_width": [2, 2]}
    pq.write_table(pa.table(BASE | BOX | masks), path, compression="zstd", use_dictionary=False)
    content = path.read_bytes()
    size = pq.ParquetFile(path).metadata.row_group(0).column(7).total_uncompressed_size
    true = varint(size)
    false = varint(100, len(true))
    footer = content.rindex(true)
    path.write_bytes(content[:footer] + false + content[footer + len(true) :])
    assert pq.ParquetFile(path).metadata.row_group(0).column(7).total_uncompressed_size == 100
    return path


def varint(number: int, length: int = 0) -> bytes:
    """Of Thrift's compact protocol, in that many bytes."""
    number, out = 2 * number, b""
    while number or len(out) < length:
        out += bytes([number & 127 | 128])
        number >>= 7
    out = out[:length] if length else out
    return out[:-1] + bytes([out[-1] & 127])


def test_parquet_whose_metadata_lies(tmp_path: Path) -> None:
    refused(lying(tmp_path), "unpacks to 1,000,")


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("compression", ["none", "zstd", "lz4", "snappy"])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
def test_layout_is_what_arrow_says(
    version: str, compression: str, pages: str, tmp_path: Path
) -> None:
    path = tmp_path / "r.parquet"
    rng = np.random.default_rng(0)
    columns = {name: rng.random(5_000) for name in "xy"} | {"s": [["a", "b"]] * 5_000}
    pq.write_table(
        pa.table(columns),
        path,
        version=version,
        compression=compression,
        data_page_version=pages,
        data_page_size=1_000,
        row_group_size=3_000,
    )
    metadata = pq.ParquetFile(path).metadata
    with path.open("rb") as file:
        layout = parquet_layout.read_layout(file, "r.parquet", [*columns], pages=True)
    assert len(layout) == metadata.num_row_groups == 2
    for number, group in enumerate(layout):
        theirs = metadata.row_group(number)
        assert group.rows == theirs.num_rows
        for place, chunk in enumerate(group.chunks):
            their = theirs.column(place)
            assert chunk.name == their.path_in_schema.split(".")[0]
            assert chunk.values == their.num_values
            # Theirs has the headers of pages, too.
            assert chunk.unpacked == their.total_uncompressed_size
            begins = [their.dictionary_page_offset, their.data_page_offset]
            assert chunk.begin == min(one for one in begins if one is not None)
            assert chunk.packed == their.total_compressed_size


@given(st.binary(max_size=200))
def test_metadata_of_any_bytes(content: bytes) -> None:
    end = len(content).to_bytes(4, "little") + b"PAR1"
    file = io.BytesIO(b"PAR1" + content + end)
    with suppress(lvdet.InputError):
        assert isinstance(parquet_layout.read_layout(file, "any.parquet", ["x"], pages=True), list)


def test_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lvdet.training.data.image_files.PICTURE_PIXELS", 10_000)
    Image.new("L", (100, 101)).save(tmp_path / "a.png")
    with pytest.raises(lvdet.InputError, match="100 x 101 pixels, expected at most 10,000"):
        read_picture(tmp_path / "a.png")
    Image.new("L", (100, 100)).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png").size == (100, 100)


#: Reads a file and prints what was wrong with it, and the most memory that it took, in KiB.
READ = """
import sys, lvdet
try:
    lvdet.read_detections(sys.argv[1])
except lvdet.InputError as error:
    print(error)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux does")
def test_memory_of_a_refusal(tmp_path: Path) -> None:
    """An array of 128 MB, which would take that much and more."""
    with zipfile.ZipFile(tmp_path / "r.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (*BASE, "bbox"):
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": "<f8", "fortran_order": False, "shape": (1 << 22,)}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(32):
                    file.write(bytes(1 << 20))
    done = python_program(READ, tmp_path / "r.npz").good()
    what, peak = done.out.splitlines()
    assert "unpacks to 134,218,240 bytes" in what
    assert int(peak) < 100_000


def test_what_a_file_may_unpack_to() -> None:
    assert bounds.most_inflated(0) == bounds.INFLATED
    assert bounds.most_inflated(1 << 20) == bounds.INFLATION << 20
    assert len(ROWS) == 2
