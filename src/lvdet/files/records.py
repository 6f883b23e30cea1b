"""Detections from Python objects: lists of dicts, dicts of arrays, npz files."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lvdet import _native
from lvdet.bounds import require_inflation
from lvdet.errors import InputError
from lvdet.files.known_images import NO_IMAGES, KnownImages
from lvdet.files.opening import open_file, size_of
from lvdet.files.remote_path import InputPath
from lvdet.tables.detections import Detections
from lvdet.tables.masks import LARGEST_SIDE, NONE, POLYGONS, RLE, Masks

_COLUMNS = ("image_id", "category_id", "score")
_BOX_NAMES = ("bbox", "box", "boxes")


def from_records(
    records: Sequence[Mapping[str, Any]],
    source: str = "detections",
    images: KnownImages = NO_IMAGES,
) -> Detections:
    """Detections from COCO result records, as `json.load` gives them."""
    columns: dict[str, list[Any]] = {"image_id": [], "category_id": [], "score": []}
    boxes: list[Any] = []
    segmentations: list[Any] = []
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise InputError(
                f"{source}, row {row:,}: record is a {type(record).__name__}, expected a dict"
            )
        for name, column in columns.items():
            value = record.get(name)
            if isinstance(value, str) and name == "image_id":
                column.append(value)
                continue
            if isinstance(value, bool | np.complexfloating) or not isinstance(
                value, int | float | np.number
            ):
                what = "missing" if value is None else f"{value!r}, expected a number"
                raise InputError(f"{source}, row {row:,}: {name} is {what}")
            # Beside a float, a long integer would become one.
            if isinstance(value, float | np.floating) and name != "score":
                number = float(value)
                value = int(number) if number.is_integer() and abs(number) < 2.0**63 else value
            column.append(value)
        columns["score"][-1] = _floats([record["score"]], "score", source, row)[0]
        box = record.get("bbox")
        if box is not None:
            if isinstance(box, str) or not isinstance(box, Sequence | np.ndarray):
                raise InputError(f"{source}, row {row:,}: bbox is {box!r}, expected [x, y, w, h]")
            box = _floats(box, "bbox", source, row)
            if len(box) != 4:
                raise InputError(
                    f"{source}, row {row:,}: bbox has {len(box)} numbers, expected 4 [x, y, w, h]"
                )
        segmentation = record.get("segmentation")
        if box is None and _is_none(segmentation):
            raise InputError(f"{source}, row {row:,}: has neither bbox nor segmentation")
        boxes.append(box)
        segmentations.append(segmentation)
    masks = None
    if not all(_is_none(value) for value in segmentations):
        masks = masks_from_segmentations(segmentations, source)
    missing = [row for row, box in enumerate(boxes) if box is None]
    if missing and len(missing) < len(boxes):
        assert masks is not None
        made = _native.mask_boxes(masks[np.array(missing)].columns)
        for row, box in zip(missing, made, strict=True):
            boxes[row] = box
    columns["image_id"] = _image_ids(columns["image_id"], source, images)
    return Detections.from_arrays(
        **columns,
        box=None if missing and len(missing) == len(boxes) else boxes,
        masks=masks,
        source=source,
    )


def from_columns(
    columns: Mapping[str, Any], source: str = "detections", images: KnownImages = NO_IMAGES
) -> Detections:
    """Detections from arrays named image_id, category_id, score, bbox (or box, boxes), and
    optionally segmentation (a list with one mask per row)."""
    for name in _COLUMNS:
        if name not in columns:
            raise InputError(f"{source}: no {name!r} array, found {sorted(columns)}")
    box = next((columns[name] for name in _BOX_NAMES if name in columns), None)
    segmentation = columns.get("segmentation")
    return Detections.from_arrays(
        _image_ids(columns["image_id"], source, images),
        columns["category_id"],
        columns["score"],
        box,
        None if segmentation is None else masks_from_segmentations(segmentation, source),
        source,
    )


def _used(columns: Mapping[str, Any]) -> list[str]:
    """The names of the arrays that are read."""
    box = [name for name in _BOX_NAMES if name in columns][:1]
    return [name for name in (*_COLUMNS, "segmentation") if name in columns] + box


def _image_ids(values: Any, source: str, images: KnownImages) -> Any:
    """The ids in a column of ids or file names."""
    if not isinstance(values, list | tuple):  # of lists NumPy would make texts throughout
        values = np.asarray(values)
        if values.ndim != 1 or values.dtype.kind not in "OSU":
            return values
    ids = list(values)
    texts = [row for row, value in enumerate(ids) if isinstance(value, str | bytes)]
    if not texts:
        return ids
    places: dict[str, int] = {}
    named = []  # the place of each row's text among all
    for row in texts:
        value = ids[row]
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        named.append(places.setdefault(text, len(places)))
    found, problems = images.find([*places])
    for place, what in problems:
        raise InputError(f"{source}, row {texts[named.index(place)]:,}: {what}")
    for row, place in zip(texts, named, strict=True):
        ids[row] = int(found[place])
    return ids


def load_npz(path: InputPath, images: KnownImages = NO_IMAGES) -> Detections:
    """Detections from a NumPy archive with arrays named as in `from_columns`; other arrays are not
    read."""
    try:
        with open_file(path) as file, np.load(file, allow_pickle=False) as archive:
            names = [f"{name}.npy" for name in _used(archive)]
            unpacked = sum(archive.zip.getinfo(name).file_size for name in names)
            require_inflation(str(path), size_of(file), unpacked)
            return from_columns(archive, str(path), images)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # NumPy and zipfile have many ways to say that it is damaged
        what = " ".join(str(error).split())
        raise InputError(f"{path}: invalid NumPy archive: {what}") from None


def have_masks(source: object) -> bool:
    """Whether a list of records, or a dict of arrays, has any mask."""
    if isinstance(source, Mapping):
        return source.get("segmentation") is not None
    records = source if isinstance(source, list | tuple) else ()
    return any(
        isinstance(record, Mapping) and not _is_none(record.get("segmentation"))
        for record in records
    )


def masks_from_segmentations(
    segmentations: Iterable[Any], source: str = "detections", first_row: int = 0
) -> Masks:
    """Masks from COCO segmentations: {size, counts} with counts compressed (str or bytes) or
    not (a list), lists of polygons, or None."""
    if isinstance(segmentations, Mapping | str | bytes) or not isinstance(segmentations, Iterable):
        raise InputError(
            f"{source}: segmentation is a single mask, expected a list with one per row"
        )
    rows: list[bytes] = []
    kinds: list[int] = []
    sizes: list[tuple[int, int]] = []
    for row, value in enumerate(segmentations):
        try:
            content, kind, size = _encode(value)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise InputError(
                f"{source}, row {first_row + row:,}: invalid segmentation: {error}"
            ) from None
        rows.append(content)
        kinds.append(kind)
        sizes.append(size)
    masks = Masks(
        np.frombuffer(b"".join(rows), dtype=np.uint8).copy(),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        np.array(kinds, dtype=np.uint8),
        np.array([size[0] for size in sizes], dtype=np.int32),
        np.array([size[1] for size in sizes], dtype=np.int32),
    )
    require_masks(masks, source, first_row)
    return masks


def require_masks(masks: Masks, source: str, first_row: int = 0) -> None:
    """Raises the first problem with the masks, if any."""
    for row, what in _native.mask_problems(masks.columns):
        size = f"({masks.height[row]} x {masks.width[row]})"
        raise InputError(f"{source}, row {first_row + row:,}: {what} {size}")


def _encode(value: Any) -> tuple[bytes, int, tuple[int, int]]:
    """One segmentation as (bytes, kind, (height, width))."""
    if _is_none(value):
        return b"", NONE, (0, 0)
    if isinstance(value, Mapping):
        height, width = (operator.index(number) for number in value["size"])
        if not (0 <= height <= LARGEST_SIDE and 0 <= width <= LARGEST_SIDE):
            raise ValueError(f"{height} x {width} is not a valid image size")
        counts = value["counts"]
        if isinstance(counts, str):
            return counts.encode(), RLE, (height, width)
        if isinstance(counts, bytes):
            return counts, RLE, (height, width)
        runs = np.asarray(counts)
        if (
            runs.ndim != 1
            or (runs.size and runs.dtype.kind not in "iu")
            or ((runs < 0) | (runs > 0xFFFFFFFF)).any()
        ):
            raise ValueError("counts are not run lengths")
        data, _ = _native.rle_encode(
            runs.astype(np.uint32), np.array([0, len(runs)], dtype=np.int64)
        )
        return data.tobytes(), RLE, (height, width)
    if isinstance(value, str | bytes):
        raise TypeError("it is a string")
    parts = [[_number(number) for number in part] for part in value]
    for part in parts:
        if len(part) < 6 or len(part) % 2:
            raise ValueError(f"a polygon has {len(part)} numbers, expected at least 3 x, y points")
        if not all(abs(number) <= _native.FARTHEST for number in part):
            raise ValueError("a polygon has a coordinate beyond 1,000,000 pixels")
    return _native.polygon_bytes(parts), POLYGONS, (0, 0)


def _is_none(value: Any) -> bool:
    """Whether it means no mask: None, or the empty list found in files of boxes."""
    return value is None or (isinstance(value, list | tuple) and not value)


def _floats(values: Iterable[Any], name: str, source: str, row: int) -> list[float]:
    """The numbers of one record; None becomes NaN, which is reported with the table."""
    try:
        return [float("nan") if value is None else _number(value) for value in values]
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source}, row {row:,}: invalid {name}: {error}") from None


def _number(number: Any) -> float:
    if isinstance(number, str | bytes):
        raise TypeError(f"{number!r} is not a number")
    return float(number)
