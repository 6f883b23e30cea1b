"""`lvdet synth`: a long-tail set of images to train on, without a download."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lvdet.cli import BARE
from lvdet.cli.argument_parser import ArgumentParser
from lvdet.cli.json_file import write_json
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar

EXAMPLES = """\
Examples:
  lvdet synth images
  lvdet synth small --images 500 --classes 60 --size 160
  lvdet synth images --images 50000 --val-images 5000 --overwrite -o summary.json
"""
_MORE = (
    " There are training and validation images, annotations as incomplete as those of LVIS, and a"
    " config for lvdet train. The same settings make the same set."
)


def run(arguments: Sequence[str]) -> None:
    """Parses, makes the set, and says what is in it."""
    # Small products of matrices, in several processes: more threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from lvdet.images.image_set import Settings, make_image_set

    default = Settings()
    parser = ArgumentParser("synth", BARE["synth"] + _MORE, EXAMPLES)
    parser.add_argument("folder", metavar="DIR", type=Path, help="Where to write the set.")
    for name, kind, value, text in (
        ("images", int, default.images, "Training images. Default: 10,000."),
        ("val-images", int, None, "Validation images. Default: a fifth of the training images."),
        ("classes", int, default.classes, "Default: 1,203, as many as LVIS has."),
        ("size", int, default.size, "Longer side of the images in pixels. Default: 320."),
        ("objects", float, default.objects, "Labelled objects an image, about. Default: 12."),
        ("seed", int, default.seed, "Another seed, another set. Default: 0."),
        ("workers", int, os.cpu_count() or 1, "Processes. Default: one a core."),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=kind, default=value, help=text)
    parser.add_argument(
        "--overwrite", action="store_true", help="Replace the set that is in the folder."
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE.json", type=Path, help="Also write the numbers here."
    )
    options = parser.parse_args(arguments)
    require_target(options.output)
    settings = Settings(
        options.images,
        options.val_images,
        options.classes,
        options.size,
        options.objects,
        options.seed,
    )
    with progress_bar("drawing", unit="images") as update:
        summary = make_image_set(
            options.folder,
            settings,
            workers=options.workers,
            overwrite=options.overwrite,
            update=update,
        )
    made = summary.to_dict()
    if options.output is not None:
        write_json(made, options.output)
    for part in ("train", "val"):
        numbers = made[part]
        groups = ", ".join(f"{number:,} {group}" for group, number in numbers["classes"].items())
        shown = sum(numbers["classes"].values())
        print(
            f"{part}: {numbers['images']:,} images, {numbers['objects']:,} objects of "
            f"{shown:,} classes ({groups})"
        )
    print(f"\nwrote {options.folder}: annotations, train, val, config.toml")
    print(f"next: lvdet train {options.folder / 'config.toml'}")
