"""Locates the images of an annotation file."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from lvdet.errors import InputError
from lvdet.tables.ground_truth import Images


def find_images(source: Path, images: Images, folder: Path) -> list[str]:
    """For each image of an annotation file its name below `folder`.

    LVIS v1 has no file names, but addresses that end in train2017/000000391895.jpg: images may be
    in a folder of that name, or directly in the one given. An image's address wins where no file
    has its file name: LVIS v0.5 has names of COCO 2014. Each folder is listed once.
    """
    if not len(images):
        raise InputError(f"{source}: no images")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such image folder")
    listed: dict[str, set[str]] = {}
    found: list[str] = []
    missing: list[str] = []
    addresses = images.addresses or ("",) * len(images)
    for number, whole, address in zip(
        images.ids.tolist(), images.file_names, addresses, strict=True
    ):
        if not whole:
            raise InputError(f"{source}: image {number} has neither 'file_name' nor 'coco_url'")
        for name in (whole, address):
            if _leaves(name):
                raise InputError(
                    f"{source}: image {number} has the file name {name!r}, which lies outside "
                    "the image folder"
                )
        leaves = [name.rpartition("/")[2] for name in (whole, address)]
        for name in dict.fromkeys((whole, address, *leaves)):
            if not name:
                continue
            parent, _, last = name.rpartition("/")
            if parent not in listed:
                listed[parent] = _files(folder / parent)
            if last in listed[parent]:
                found.append(name)
                break
        else:
            missing.append(whole)
    if missing:
        raise InputError(
            f"{folder}: {len(missing):,} of {len(images):,} images are missing, the first is "
            f"{missing[0]}"
        )
    return found


def _leaves(name: str) -> bool:
    """Whether the name can refer to something outside its folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or "\0" in name


def _files(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
