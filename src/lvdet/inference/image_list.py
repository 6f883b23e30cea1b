"""The images to predict, and their ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lvdet.errors import InputError
from lvdet.files.annotation_files import load_ground_truth
from lvdet.files.progress import Progress, track
from lvdet.files.writing import write_text
from lvdet.inference.batches import Image
from lvdet.tables.values import require
from lvdet.training.data.image_paths import find_images

#: Extensions of image files.
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm")


@dataclass(frozen=True)
class ImageList:
    """Images by id.

    source:     the annotation file or the folder
    categories: names by id, if an annotation file gives them
    """

    source: Path
    images: list[Image]
    categories: dict[int, str] = field(default_factory=dict)

    def require_classes_of(self, ids: Sequence[int], names: Sequence[str]) -> None:
        """Raises for a file with a class that the model does not have, whose AP would be 0, or with
        a class of a different name, for which detections would be mistaken."""
        for category_id, name in zip(ids, names, strict=True):
            theirs = self.categories.get(category_id, name)
            if theirs != name:
                raise InputError(
                    f"{self.source}: category {category_id} is {theirs!r}, but {name!r} in the "
                    "checkpoint"
                )
        known = {*ids}
        unknown = [number for number in self.categories if number not in known]
        if unknown:
            raise InputError(
                f"{self.source}: {len(unknown):,} of {len(self.categories):,} categories are "
                f"not among the checkpoint's {len(ids):,} classes, such as {unknown[0]} "
                f"{self.categories[unknown[0]]!r}; their AP would be 0"
            )

    def missing_note(self, ids: Sequence[int], names: Sequence[str]) -> str | None:
        """A note about classes that only the model has. They are harmless: an evaluation drops them
        before any limit applies."""
        missing = [
            (number, name)
            for number, name in zip(ids, names, strict=True)
            if self.categories and number not in self.categories
        ]
        if not missing:
            return None
        return (
            f"{self.source} lacks {len(missing):,} of the checkpoint's {len(ids):,} classes, "
            f"such as {missing[0][0]} {missing[0][1]!r}; detections of these classes are "
            "written too"
        )

    def find(self, wanted: str) -> Image:
        """Finds an image by id or by file name, with or without extension."""
        for image in self.images:
            path = image[1]
            if wanted in (str(image[0]), path.name, path.stem) or str(path).endswith(f"/{wanted}"):
                return image
        raise InputError(f"{self.source}: no image has the id or file name {wanted!r}")


def images_of(
    source: Path, folder: Path | None = None, progress: Progress | None = None
) -> ImageList:
    """The images of an annotation file, with their files in `folder`; or the images in a folder."""
    if source.is_dir():
        if folder is not None:
            raise InputError(
                f"{source}: is a folder of images; --images applies only to annotation files"
            )
        return images_in(source)
    if not source.is_file():
        raise InputError(f"{source}: no such annotation file or folder of images")
    if source.suffix.lower() in ENDINGS:
        raise InputError(f"{source}: is an image, expected an annotation file or a folder")
    if folder is None:
        raise InputError(f"{source}: pass --images FOLDER, the folder with its images")
    return annotated_images(source, folder, progress)


def annotated_images(source: Path, folder: Path, progress: Progress | None = None) -> ImageList:
    """The images of a file in LVIS or COCO format, by ascending id. Annotations are not
    required."""
    with track(progress, "reading annotations") as update:
        gt, problems = load_ground_truth(source, masks=False, annotated=False, update=update)
    require(iter(problems))
    assert gt is not None
    paths = [folder / name for name in find_images(source, gt.images, folder)]
    return ImageList(
        source,
        list(zip(gt.images.ids.tolist(), paths, strict=True)),
        dict(zip(gt.categories.ids.tolist(), gt.categories.names, strict=True)),
    )


def categories_of(source: Path, progress: Progress | None = None) -> dict[int, str]:
    """The names of an annotation file's categories, by id."""
    with track(progress, "reading annotations") as update:
        gt, problems = load_ground_truth(source, masks=False, annotated=False, update=update)
    require(iter(problems))
    assert gt is not None
    return dict(zip(gt.categories.ids.tolist(), gt.categories.names, strict=True))


def images_in(folder: Path) -> ImageList:
    """The images in a folder, with ids from 1 in order of file name."""
    try:
        paths = sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in ENDINGS and not path.name.startswith(".") and path.is_file()
        )
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
    if not paths:
        raise InputError(f"{folder}: no images found ({', '.join(ENDINGS)})")
    return ImageList(folder, list(enumerate(paths, start=1)))


def sidecar(out: Path) -> Path:
    """The path of the file with the ids of a folder's images."""
    return out.with_name(f"{out.stem}.images.json")


def write_sidecar(listed: ImageList, ids: Sequence[int], names: Sequence[str], path: Path) -> None:
    """Writes ids, file names and classes, in the format of annotation files."""
    content = {
        "images": [{"id": number, "file_name": file.name} for number, file in listed.images],
        "categories": [
            {"id": number, "name": name} for number, name in zip(ids, names, strict=True)
        ],
    }
    write_text(json.dumps(content, indent=1) + "\n", path)
