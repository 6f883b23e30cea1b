"""Compressed, Parquet and npz files that are damaged or hold something else."""

from __future__ import annotations

import builtins
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lvdet
from cli.run_lvdet import python_program
from files.record_files import ROWS, Json, one_line, refused, save
from lvdet.tables.masks import LARGEST_MASK

BASE: Json = {"image_id": [1, 2], "category_id": [3, 4], "score": [0.5, 0.25]}
BOX: Json = {name: [1.0, 2.0] for name in "xywh"}
MASKS: Json = {
    "mask": pa.array([b"04", b"04"]),
    "mask_kind": pa.array([1, 1], pa.uint8()),
    "mask_height": [2, 2],
    "mask_width": [2, 2],
}


# gzip


@pytest.mark.parametrize(
    "content",
    [
        b"\x1f\x8b",
        b"\x1f\x8b\x08\x00" + b"\0" * 20,
        b"\x1f\x8b\x07" + b"\0" * 20,
        gzip.compress(b"[]")[:-1],
        gzip.compress(b"[]")[:-8] + b"\0" * 8,
        gzip.compress(b"[]") + b"more",
        gzip.compress(b"not JSON"),
        gzip.compress(gzip.compress(b"[]")),
        b"\x1f\x8b" + zlib.compress(b"[]"),
    ],
    ids=range(9),
)
def test_damaged_gzip(content: bytes, tmp_path: Path) -> None:
    path = save(tmp_path / "r.json.gz", content)
    refused(path)
    refused(path, read=lvdet.read_ground_truth)


# Parquet


def parquet(folder: Path, columns: Json) -> Path:
    pq.write_table(pa.table(columns), folder / "r.parquet")
    return folder / "r.parquet"


@pytest.mark.parametrize("missing", ["image_id", "category_id", "score"])
def test_parquet_without_a_column(missing: str, tmp_path: Path) -> None:
    columns = {name: value for name, value in (BASE | BOX).items() if name != missing}
    refused(parquet(tmp_path, columns), f"no column '{missing}', found")


def test_parquet_without_boxes(tmp_path: Path) -> None:
    for columns in (BASE, BASE | {"x": [1, 2], "y": [1, 2], "w": [1, 2]}):
        refused(parquet(tmp_path, columns), "no columns for boxes (x, y, w, h or bbox) or masks")


NULLS = {"image_id": [1, None], "score": [0.5, None], "x": [1.0, None], "h": [None, 1]}


@pytest.mark.parametrize("name", NULLS)
def test_parquet_with_nulls(name: str, tmp_path: Path) -> None:
    refused(parquet(tmp_path, BASE | BOX | {name: NULLS[name]}), f"column '{name}' has nulls")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"image_id": ["1", "b"]}, 'row 1: image_id "b" is not a number'),
        ({"category_id": ["1", "2"]}, "column 'category_id' has type object, expected numbers"),
        ({"category_id": [1.0, 2.5]}, "row 1: category_id 2.5 is not an integer"),
        ({"image_id": [1.0, float("nan")]}, "row 1: image_id nan is not an integer"),
        ({"image_id": [2.0**63, 1.0]}, "image_id 9.223372036854776e+18 is out of range"),
        ({"image_id": [True, False]}, "column 'image_id' has type bool"),
        ({"score": ["a", "b"]}, "column 'score' has type object, expected numbers"),
        ({"score": [True, False]}, "column 'score' has type bool, expected numbers"),
        ({"score": [0.5, float("nan")]}, "row 1: score is nan"),
        ({"w": [1.0, -1.0]}, "row 1: bbox is [2, 2, -1, 2]"),
        ({"y": [float("inf"), 0]}, "row 0: bbox is [1, inf, 1, 1]"),
        ({"image_id": pa.array([1, 2**63 + 5], pa.uint64())}, "image_id"),
    ],
)
def test_parquet_with_wrong_values(columns: Json, says: str, tmp_path: Path) -> None:
    refused(parquet(tmp_path, BASE | BOX | columns), says)


def test_parquet_with_a_wrong_value_in_a_later_row_group(tmp_path: Path) -> None:
    columns = {name: value * 10 for name, value in (BASE | BOX).items()}
    columns["score"] = [0.5] * 17 + [float("nan")] + [0.5] * 2
    pq.write_table(pa.table(columns), tmp_path / "r.parquet", row_group_size=3)
    refused(tmp_path / "r.parquet", "row 17: score is nan")


@pytest.mark.parametrize(
    ("bbox", "says"),
    [
        ([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0]], "row 1: bbox has 3 numbers"),
        ([[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0]], "row 0: bbox has 5 numbers"),
        ([[1.0, 2.0, 3.0, 4.0], None], "row 1: bbox has 0 numbers"),
        ([[1.0, 2.0, 3.0, 4.0], [1.0, None, 3.0, 4.0]], "row 1: bbox is [1, nan, 3, 4]"),
        ([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, -3.0, 4.0]], "row 1: bbox is [1, 2, -3, 4]"),
        (pa.array([[1.0] * 3] * 2, pa.list_(pa.float64(), 3)), "row 0: bbox has 3 numbers"),
        (pa.array([None, [1.0] * 4], pa.list_(pa.float64(), 4)), "row 0: bbox has 0 numbers"),
        ([1.0, 2.0], "bbox"),
        (["a", "b"], "bbox"),
        ([["1", "2", "3", "4"]] * 2, "bbox"),
        ([["a", "2", "3", "4"]] * 2, "bbox"),
    ],
)
def test_parquet_with_wrong_boxes(bbox: Any, says: str, tmp_path: Path) -> None:
    refused(parquet(tmp_path, BASE | {"bbox": bbox}), says)


@pytest.mark.parametrize(
    ("segmentation", "says"),
    [
        ([{"size": [2, 2], "counts": "04"}, {"size": [2, 2], "counts": "05"}], "row 1: RLE runs"),
        (
            [{"size": [2, 2], "counts": "04"}, {"size": None, "counts": "05"}],
            "row 1: invalid segment",
        ),
        (
            [{"size": [2, 2], "counts": "04"}, {"size": [2], "counts": "2"}],
            "row 1: invalid segment",
        ),
        ([{"size": [2, 2], "counts": "04"}, {"size": [2, 2], "counts": None}], "row 1"),
        (["a", "b"], "row 0: invalid segmentation"),
        ([1, 2], "row 0: invalid segmentation"),
        ([[[1.0] * 6], [[1.0] * 5]], "row 1: invalid segmentation"),
    ],
)
def test_parquet_with_wrong_segmentations(segmentation: Any, says: str, tmp_path: Path) -> None:
    path = parquet(tmp_path, BASE | BOX | {"segmentation": segmentation})
    refused(path, says)
    assert lvdet.read_detections(path, masks=False).masks is None


def test_parquet_with_neither_a_box_nor_a_mask(tmp_path: Path) -> None:
    rle = {"size": [2, 2], "counts": "04"}
    refused(parquet(tmp_path, BASE | {"segmentation": [rle, None]}), "row 1")


@pytest.mark.parametrize(
    "columns",
    [
        {"mask": pa.array([b"04", b"05"])},
        {"mask": pa.array([b"04", b"zz"])},
        {"mask": pa.array([b"04", None])},
        {"mask_kind": [1, 7]},
        {"mask_kind": [1, 257]},
        {"mask_height": [2, -2], "mask_width": [2, -2]},
        {"mask_height": [2, 2**32 + 2]},
        {"mask": [1, 2]},
        {"mask_kind": [1, None]},
        {"mask_height": ["2", "2"]},
    ],
)
def test_parquet_with_wrong_masks(columns: Json, tmp_path: Path) -> None:
    refused(parquet(tmp_path, BASE | BOX | MASKS | columns))


@pytest.mark.parametrize(
    "content", [b"\xff\xff\xff\x7f", b"\x01\0\0\0\0\0\x10\0" + b"\0" * 16, b""]
)
def test_parquet_with_damaged_polygons(content: bytes, tmp_path: Path) -> None:
    """In a process of its own, for it may end in a segmentation fault."""
    columns = BASE | MASKS | {"mask": pa.array([content] * 2), "mask_kind": [2, 2]}
    code = "import sys, lvdet\ntry: lvdet.read_detections(sys.argv[1])\n"
    code += "except lvdet.InputError: sys.exit(2)"
    assert python_program(code, parquet(tmp_path, columns)).code == 2


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"hello", b"x" * 1000, b"[]"])
def test_files_that_are_not_parquet(content: bytes, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.parquet", content))


def whole_parquet(folder: Path) -> bytes:
    rng = np.random.default_rng(0)
    columns = {"image_id": np.arange(400), "category_id": np.arange(400) % 7}
    columns |= {name: rng.random(400) for name in ("score", *"xywh")}
    path = folder / "r.parquet"
    pq.write_table(pa.table(columns), path, store_schema=False, write_statistics=False)
    return path.read_bytes()


def test_every_cut_of_parquet(tmp_path: Path) -> None:
    content = whole_parquet(tmp_path)
    for cut in range(0, len(content), 97):
        refused(save(tmp_path / "cut.parquet", content[:cut]))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("flipped", [0x01, 0x55])
def test_damaged_parquet(flipped: int, tmp_path: Path) -> None:
    """Each byte of the footer: read all the same, or told in one line."""
    content = whole_parquet(tmp_path)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    told = 0
    for at in range(footer, len(content)):
        damaged = bytearray(content)
        damaged[at] ^= flipped
        try:
            lvdet.read_detections(save(tmp_path / "damaged.parquet", bytes(damaged)))
        except lvdet.InputError as error:
            told += 1
            one_line(error)
    assert told > 100


@pytest.mark.parametrize("word", [b"image_id", b"0404040404"])
def test_damaged_text_in_parquet(word: bytes, tmp_path: Path) -> None:
    rle = {"size": [1, 20], "counts": "0404040404"}
    columns = BASE | BOX | {"segmentation": [rle, rle]}
    pq.write_table(
        pa.table(columns), tmp_path / "r.parquet", compression="none", use_dictionary=False
    )
    content = (tmp_path / "r.parquet").read_bytes()
    assert word in content
    path = save(tmp_path / "r.parquet", content.replace(word, b"\xff" + word[1:]))
    refused(path)


def test_parquet_with_masks_larger_than_any(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Refused by what the file says of itself, before they are decoded."""
    monkeypatch.setattr("lvdet.files.parquet.LARGEST_MASK", 10_000)
    columns = BASE | MASKS | {"mask": [bytes(100_000), b""]}
    pq.write_table(pa.table(columns), tmp_path / "r.parquet", compression="zstd")
    refused(tmp_path / "r.parquet", "masks of row group 0 take 50,")


def test_a_mask_larger_than_any(tmp_path: Path) -> None:
    rle = {"size": [4, 3], "counts": "0" * (LARGEST_MASK + 1)}
    with pytest.raises(lvdet.InputError, match="row 0: the mask takes more than 67,108,864 bytes"):
        lvdet.read_detections([{**ROWS[0], "segmentation": rle}])


# npz


def npz(folder: Path, **columns: Any) -> Path:
    np.savez_compressed(folder / "r.npz", **(BASE | {"bbox": np.ones((2, 4))} | columns))
    return folder / "r.npz"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"image_id": np.array([1, "a"], dtype=object)}, "invalid NumPy archive"),
        ({"bbox": np.array([None, None], dtype=object)}, "invalid NumPy archive"),
        ({"score": [0.5]}, "columns differ in length"),
        ({"score": [0.5, np.nan]}, "row 1: score is nan"),
        ({"bbox": np.ones((2, 3))}, "box has shape (2, 3)"),
        ({"image_id": [0.5, 1]}, "row 0: image_id is 0.5"),
        ({"image_id": np.array(["a", "b"])}, 'row 0: image_id "a" is not a number'),
    ],
)
def test_npz_with_wrong_values(columns: Json, says: str, tmp_path: Path) -> None:
    refused(npz(tmp_path, **columns), says)


def test_npz_without_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", image_id=[1])
    refused(tmp_path / "r.npz", "no 'category_id' array, found ['image_id']")


@pytest.fixture
def all_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes what was opened: np.load leaves a file open that is not an archive, which would
    be a warning in whichever test runs when it is collected."""
    opened: list[Any] = []
    real = builtins.open

    def remember(*arguments: Any, **options: Any) -> Any:
        opened.append(real(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(builtins, "open", remember)
    yield
    for file in opened:
        file.close()


left_open = pytest.mark.usefixtures("all_closed")


def test_npz_runs_no_code(tmp_path: Path) -> None:
    """A pickle that would write a file when loaded."""

    class Trap:
        def __reduce__(self) -> Any:
            return open, (str(tmp_path / "trapped"), "w")

    refused(npz(tmp_path, image_id=np.array([Trap(), Trap()], dtype=object)))
    assert not (tmp_path / "trapped").exists()


@left_open
@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04" + b"x" * 100, b"[]", b"\x80\x04]."])
def test_files_that_are_not_npz(content: bytes, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.npz", content), "invalid NumPy archive")


@left_open
def test_an_empty_npz(tmp_path: Path) -> None:
    refused(save(tmp_path / "r.npz", b""))


@left_open
def test_an_array_named_npz(tmp_path: Path) -> None:
    with open(tmp_path / "r.npz", "wb") as file:
        np.save(file, np.ones(3))
    refused(tmp_path / "r.npz")


@left_open
def test_damaged_npz(tmp_path: Path) -> None:
    content = npz(tmp_path, **{name: value * 50 for name, value in BASE.items()}).read_bytes()
    others = set()
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        try:
            lvdet.read_detections(save(tmp_path / "damaged.npz", bytes(damaged)))
        except lvdet.InputError:
            continue
        except Exception as error:
            others.add(type(error).__name__)
    assert others == set()


@left_open
def test_every_cut_of_npz(tmp_path: Path) -> None:
    content = npz(tmp_path).read_bytes()
    for cut in range(1, len(content), 13):
        refused(save(tmp_path / "cut.npz", content[:cut]))


def test_a_good_file_with_the_wrong_ending(tmp_path: Path) -> None:
    """Refused with a reason, whatever the mix of endings."""
    dt = lvdet.read_detections(ROWS)
    lvdet.write_detections(dt, tmp_path / "r.parquet")
    (tmp_path / "r.parquet").rename(tmp_path / "r.json")
    refused(tmp_path / "r.json", "expected a list of detections")
    refused(save(tmp_path / "s.parquet", ROWS), "invalid Parquet file")
