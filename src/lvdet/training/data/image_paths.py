"""Where the images of an annotation file are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from lvdet.errors import InputError


def candidates(image: dict[str, Any]) -> list[str]:
    """The names below the folder of images under which an image may be, best first.

    LVIS has no file names, but addresses that end in train2017/000000391895.jpg: the images may
    be in a folder of that name, or straight in the one given. [] where there is neither.
    """
    name, address = image.get("file_name"), image.get("coco_url")
    if isinstance(name, str) and name:
        return [name]
    if isinstance(address, str) and (tail := address.split("/")[-2:])[-1]:
        return list(dict.fromkeys(["/".join(tail), tail[-1]]))
    return []


def leaves(name: str) -> bool:
    """Whether the name can lead out of the folder it is in."""
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or "\0" in name


def find_images(folder: Path, names: Sequence[list[str]]) -> list[str]:
    """For each image the first of its names that is there. Each folder is listed once."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder, expected the images in it")
    listed: dict[str, set[str]] = {}
    found: list[str] = []
    missing: list[str] = []
    for of_image in names:
        for name in of_image:
            parent, _, last = name.rpartition("/")
            if parent not in listed:
                listed[parent] = _files(folder / parent)
            if last in listed[parent]:
                found.append(name)
                break
        else:
            missing.append(of_image[0])
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(names)} images are not there, the first is "
            f"{missing[0]}"
        )
    return found


def _files(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
