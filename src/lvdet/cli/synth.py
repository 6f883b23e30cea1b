"""`lvdet synth`: makes a synthetic long-tail image set to train on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar
from lvdet.extras import extra
from lvdet.files.writing import write_json
from lvdet.threads import thread_count

EXAMPLES = """\b
Examples:
  lvdet synth images
  lvdet synth small --images 500 --classes 60 --size 160
  lvdet synth images --images 50000 --val-images 5000 --overwrite --summary summary.json
"""


@extra("train", "making synthetic images")
def run(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the images and annotations.")
    ],
    images: Annotated[int, typer.Option(metavar="N", help="Number of training images.")] = 10_000,
    val_images: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of validation images. Default: a fifth of the training images.",
        ),
    ] = None,
    classes: Annotated[
        int, typer.Option(metavar="N", help="Number of classes; LVIS has 1,203.")
    ] = 1203,
    size: Annotated[
        int, typer.Option(metavar="N", help="Longer side of the images in pixels.")
    ] = 320,
    objects: Annotated[
        float, typer.Option(metavar="N", help="Target number of labelled objects per image.")
    ] = 12.0,
    classes_per_image: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Average number of labelled classes per image; 3.5 in LVIS. Default: "
            "--objects / 1.3.",
        ),
    ] = None,
    rarest: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Approximate number of training images with the rarest class. Default: 1 or 2.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Number of processes. Default: one per core.")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an image set that is already in the folder."),
    ] = False,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Also write the counts as JSON.")
    ] = None,
) -> None:
    """Make a synthetic long-tail image set in LVIS format.

    Writes training and validation images, annotations that are incomplete like LVIS's, and a
    config for lvdet train. The same settings give the same set.
    """
    require_target(summary)

    from lvdet.images.image_set import Settings, make_image_set

    made = make_image_set(
        folder,
        Settings(images, val_images, classes, size, objects, seed, classes_per_image, rarest),
        workers=thread_count() if workers is None else workers,
        overwrite=overwrite,
        progress=progress_bar,
    ).to_dict()
    if summary is not None:
        write_json(made, summary)
    for part in ("train", "val"):
        numbers = made[part]
        groups = ", ".join(f"{number:,} {group}" for group, number in numbers["classes"].items())
        shown = sum(numbers["classes"].values())
        print(
            f"{part}: {numbers['images']:,} images, {numbers['objects']:,} objects of "
            f"{shown:,} classes ({groups})"
        )
    print(f"\nwrote {folder}: annotations, train, val, config.toml")
    print(f"next: lvdet train {folder / 'config.toml'}")
