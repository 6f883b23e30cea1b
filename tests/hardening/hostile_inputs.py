"""Inputs that are damaged or made to do harm, each as files and a command on them.

As a program, it runs each in a process of its own and writes the table of docs/hardening.md.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hardening.md"
BEGIN, END = "<!-- begin: hostile inputs -->\n", "<!-- end: hostile inputs -->\n"
LARGEST, MEMORY, SECONDS = 1_000_000, 1024, 10.0

ROW = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.5}
EVALUATE = "evaluate gt.json {}"


#: Runs lvdet and prints its exit code, seconds, and peak memory in MiB. In a small process, because
#: a new one counts the memory of the one that started it.
WATCHED = """
import os, sys, time
begin = time.monotonic()
command = [sys.executable, "-m", "lvdet", *sys.argv[1:]]
pid = os.posix_spawn(sys.executable, command, os.environ)
_, status, usage = os.wait4(pid, 0)
print()
print(os.waitstatus_to_exitcode(status), time.monotonic() - begin, usage.ru_maxrss / 1024)
"""


@dataclass(frozen=True)
class Hostile:
    """An input: what it is, the name and content of its file (or what makes it), and the
    command."""

    what: str
    name: str
    content: bytes | Callable[[Path], None]
    command: str = EVALUATE
    long: bool = False

    def make(self, folder: Path) -> str:
        """Writes the files into a folder; returns the command."""
        (folder / "gt.json").write_text(json.dumps(annotations()))
        (folder / "dt.json").write_text(json.dumps([ROW]))
        if callable(self.content):
            self.content(folder / self.name)
        else:
            (folder / self.name).write_bytes(self.content)
        return self.command.format(self.name)


def annotations(side: int = 100, **values: Any) -> dict[str, Any]:
    image = {"id": 1, "height": side, "width": side}
    lists = {"neg_category_ids": [], "not_exhaustive_category_ids": []}
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100}
    category = {"id": 1, "name": "cat", "frequency": "r"}
    return {
        "images": [image | lists],
        "categories": [category],
        "annotations": [row | values],
    }


def row(**values: Any) -> bytes:
    return json.dumps([ROW | values]).encode()


def masked(segmentation: Any) -> bytes:
    return row(segmentation=segmentation)


def with_score(text: str) -> bytes:
    return row(score=0.125).replace(b"0.125", text.encode())


def npz_bomb(path: Path) -> None:
    """80 MB of zeros in an array that is read."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in (("image_id", 10**7), ("category_id", 1), ("score", 1), ("bbox", 1)):
            with archive.open(f"{name}.npy", "w") as file:
                header = {"descr": "<f8", "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(max(8 * rows // 1_000_000, 1)):
                    file.write(bytes(1_000_000))


def npz_of_a_scalar(path: Path) -> None:
    columns = {"image_id": [1], "category_id": [1], "score": [0.5], "bbox": [[0, 0, 1, 1]]}
    np.savez(path, **columns, segmentation=np.array(5))


def gzip_bomb(path: Path) -> None:
    """80 MB of one string."""
    with gzip.open(path, "wb") as file:
        file.write(b'[{"image_id": "')
        for _ in range(80):
            file.write(b"a" * 1_000_000)


def parquet(columns: dict[str, Any]) -> Callable[[Path], None]:
    return lambda path: pq.write_table(
        pa.table(columns), path, compression="zstd", use_dictionary=False, store_schema=False
    )


def equal_rows(path: Path) -> None:
    columns = {name: np.full(1_300_000, 1.0) for name in ("image_id", "category_id", "score")}
    parquet(columns | dict.fromkeys("xywh", columns["score"]))(path)


def large_cell(size: int) -> dict[str, Any]:
    columns: dict[str, Any] = {"image_id": [1], "category_id": [1], "score": [0.5]}
    columns |= {name: [1.0] for name in "xywh"}
    columns |= {"mask": pa.array([b"0" * size], pa.large_binary())}
    return columns | {"mask_kind": pa.array([1], pa.uint8()), "mask_height": [2], "mask_width": [2]}


def lying_footer(path: Path) -> None:
    """A mask of 70 MB, of which the metadata says that it has 100 bytes."""
    parquet(large_cell(70_000_000))(path)
    size = pq.ParquetFile(path).metadata.row_group(0).column(7).total_uncompressed_size
    content = path.read_bytes()
    at = content.rindex(varint(size))
    path.write_bytes(content[:at] + varint(100, 4) + content[at + 4 :])


def varint(number: int, length: int = 4) -> bytes:
    """A number in Thrift's compact protocol, in that many bytes."""
    digits = [(2 * number >> 7 * place & 127) | 128 for place in range(length)]
    return bytes([*digits[:-1], digits[-1] & 127])


def cut_parquet(path: Path) -> None:
    parquet(large_cell(4))(path)
    path.write_bytes(path.read_bytes()[:-20])


def pipe(path: Path) -> None:
    os.mkfifo(path)
    subprocess.run(["sh", "-c", '(printf "[{" > "$0") &', path], check=True)


def folder(path: Path) -> None:
    path.mkdir()


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def many_points(points: list[float]) -> bytes:
    return masked([points])


def annotation_file(**values: Any) -> Callable[[Path], None]:
    return lambda path: path.with_name("gt.json").write_text(json.dumps(annotations(**values)))


def large_polygons(path: Path) -> None:
    square = [0, 0, 100_000, 0, 100_000, 100_000, 0, 100_000]
    annotation_file(side=100_000, segmentation=[square], area=10**10)(path)
    path.write_bytes(
        masked([[value * 0.6 if i % 2 == 0 else value for i, value in enumerate(square)]])
    )


def crossing_polygon(path: Path) -> None:
    square = [[0, 0, 1_000_000, 0, 1_000_000, 1_000_000, 0, 1_000_000]]
    annotation_file(side=1_000_000, segmentation=square, area=10**10)(path)
    path.write_bytes(
        masked([[1_000_000 * (i // 2 % 2) if i % 2 == 0 else i % 3 for i in range(400)]])
    )


def many_crossings(path: Path) -> None:
    """Each polygon is fine by itself."""
    square = [[0, 0, 1_000_000, 0, 1_000_000, 1_000_000, 0, 1_000_000]]
    annotation_file(side=1_000_000, segmentation=square, area=10**10)(path)
    edges = [1_000_000 * (i // 2 % 2) if i % 2 == 0 else i % 3 for i in range(32)]
    one = ROW | {"segmentation": [edges]}
    path.write_text(json.dumps([one] * 1_500))


def large_boundary(path: Path) -> None:
    side = 1_000_000
    square = [[0, 0, side, 0, side, side, 0, side]]
    annotation_file(side=side, segmentation=square, area=10**12)(path)
    path.write_bytes(masked(square))


def far_polygon(path: Path) -> None:
    annotation_file(segmentation=[[0, 0, 10, 0, 10, 10]])(path)
    path.write_bytes(masked([[1e6, 5, -1e6, 0] * 50]))


def planted(path: Path) -> None:
    parts = path.with_name("out.json.parts")
    parts.mkdir()
    (parts / ".finished").write_text("/etc/passwd")
    path.write_text("")


CONVERT = "convert {} -o out.json"
SEGM = "evaluate gt.json {} --iou segm"
INPUTS = [
    Hostile("image of 100,000 x 100,000 pixels", "dt.json", large_polygons, SEGM),
    Hostile("polygon far beyond its image", "dt.json", far_polygon, SEGM),
    Hostile(
        "polygon across 1,000,000 columns, 200 times", "dt.json", crossing_polygon, SEGM, long=True
    ),
    Hostile("1,500 polygons across 1,000,000 columns", "dt.json", many_crossings, SEGM),
    Hostile("boundary of 10^12 pixels", "dt.json", large_boundary, f"{SEGM[:-4]}boundary"),
    Hostile("npz whose array unpacks to 80 MB", "r.npz", npz_bomb),
    Hostile("npz with a scalar for masks", "r.npz", npz_of_a_scalar),
    Hostile("gzip with a string of 80 MB", "r.json.gz", gzip_bomb),
    Hostile("Parquet with 1,300,000 equal rows", "r.parquet", equal_rows),
    Hostile("Parquet with a mask of 70 MB", "r.parquet", parquet(large_cell(70_000_000))),
    Hostile("Parquet whose metadata lies about it", "r.parquet", lying_footer),
    Hostile("Parquet cut short", "r.parquet", cut_parquet),
    Hostile("Parquet of noise", "r.parquet", b"PAR1" + bytes(range(256)) * 9 + b"PAR1"),
    Hostile("planted `.finished`", "x", planted, "rerank gt.json dt.json -o out.json"),
    Hostile("output to standard output", "dt.json", row(), "convert {} -o /dev/stdout"),
    Hostile("lists, 100,000 deep", "r.json", b'[{"a":' + b"[" * 100_000),
    Hostile("objects, 100,000 deep", "r.json", b"[" + b'{"a":' * 100_000),
    Hostile("score 1e400", "r.json", with_score("1e400")),
    Hostile("score of 900,000 digits", "r.json", with_score("1" * 900_000)),
    Hostile("score NaN", "r.json", with_score("NaN")),
    Hostile("score -Infinity", "r.json", with_score("-Infinity")),
    Hostile("half of a surrogate pair", "r.json", row(image_id=7).replace(b"7", b'"\\ud800"')),
    Hostile("a key that occurs twice", "r.json", row().replace(b"{", b'{"score": 0.9, ')),
    Hostile("an image id of 10^30", "r.json", row(image_id=10**30)),
    Hostile("an image id of -1", "r.json", row(image_id=-1)),
    Hostile("a box of negative size", "r.json", row(bbox=[5, 5, -5, -5])),
    Hostile("a box of 1e308", "r.json", row(bbox=[1e308, 1e308, 1e308, 1e308])),
    Hostile("a mask of negative size", "r.json", masked({"size": [-5, 5], "counts": [25]})),
    Hostile("a mask of 10^9 x 10^9", "r.json", masked({"size": [10**9, 10**9], "counts": [25]})),
    Hostile("counts beyond the mask", "r.json", masked({"size": [5, 5], "counts": [2**32 - 1]})),
    Hostile("counts of 2^64", "r.json", masked({"size": [5, 5], "counts": [2**64]})),
    Hostile("counts of noise", "r.json", masked({"size": [5, 5], "counts": "~~~~~~~~"})),
    Hostile("a polygon of 100,000 points", "r.json", masked([[1, 2] * 100_000]), CONVERT),
    Hostile("a polygon at 1e300", "r.json", masked([[1e300] * 6])),
    Hostile("cut short", "r.json", row()[:-9]),
    Hostile("empty", "r.json", b""),
    Hostile("UTF-8 with a byte order mark", "r.json", b"\xef\xbb\xbf" + row()),
    Hostile("UTF-16", "r.json", row().decode().encode("utf-16")),
    Hostile("a million NULs", "r.json", bytes(1_000_000)),
    Hostile("a folder without files", "r", folder),
    Hostile("a folder named like a file", "gt2.json", folder, "evaluate {} dt.json"),
    Hostile("a pipe that ends early", "r.json", pipe),
    Hostile("/dev/zero as results", "r.json", link("/dev/zero")),
    Hostile(
        "/dev/zero as a calibrator",
        "c.json",
        link("/dev/zero"),
        "calibrate apply {} dt.json -o o.json",
    ),
    Hostile("a link to itself", "r.json", link("r.json")),
    Hostile(
        "annotations with an image of -5 pixels",
        "x",
        annotation_file(side=-5),
        "evaluate gt.json dt.json",
    ),
    Hostile("annotations of a million brackets", "gt.json", b"[" * 1_000_000, "check {}"),
    Hostile(
        "a config, 50,000 deep", "c.toml", b"a = " + b"[" * 50_000, "train {} -o run", long=True
    ),
    Hostile("groups, 50,000 deep", "g.json", b"[" * 50_000, "evaluate gt.json dt.json --groups {}"),
]


def said(code: int, output: str, errors: str, folder: Path) -> str:
    """What the table shows of what a command printed: its error, or that it worked."""
    if code == 0:
        return "works"
    return re.sub(r"\s+", " ", (errors.strip() or output.strip()).replace(f"{folder}/", ""))


def line_of(hostile: Hostile, code: int, text: str) -> str:
    """The part of its line that is always the same."""
    return f"| {hostile.what} | {code} | `{text[:160]}` |"


def measured(hostile: Hostile, folder: Path) -> tuple[str, float, float]:
    """Its line, the seconds and the peak memory in MiB of a process of its own."""
    command = hostile.make(folder)
    program = [sys.executable, "-c", WATCHED, *command.split()]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, errors="replace")
    *output, last = done.stdout.splitlines()
    code, seconds, memory = last.split()
    line = line_of(hostile, int(code), said(int(code), "\n".join(output), done.stderr, folder))
    return line, float(seconds), float(memory)


def main() -> None:
    """Writes the table."""
    import tempfile

    table = io.StringIO()
    table.write("| input | exit code | lvdet says | seconds | MiB |\n|---|---|---|---|---|\n")
    for hostile in INPUTS:
        with tempfile.TemporaryDirectory() as folder:
            line, seconds, memory = measured(hostile, Path(folder))
        table.write(f"{line} {seconds:.1f} | {memory:,.0f} |\n")
        print(line, f"{seconds:.1f} s, {memory:,.0f} MiB", flush=True)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table.getvalue() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
