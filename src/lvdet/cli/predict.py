"""`lvdet predict`: a trained detector on images, with the best detections of each class."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lvdet.cli import BARE
from lvdet.cli.argument_parser import ArgumentParser
from lvdet.cli.json_file import write_json
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import note, progress_bar
from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.inference.image_list import ImageList
    from lvdet.inference.settings import Settings, Summary
    from lvdet.training.records.checkpoint import LoadedModel

EXAMPLES = """\
Examples:
  lvdet predict runs/first lvis_v1_val.json --images coco -o results.json
  lvdet predict runs/first photos -o photos.json --score 0.05
  lvdet predict runs/first val.json --images coco -o results.json --nms 0.3,0.5,0.7 --score 1e-7
  lvdet predict runs/first photos --picture found.png --image street.jpg --above 0.5
"""


def run(arguments: Sequence[str]) -> None:
    """Predict, and print what was written."""
    options = _parsed(arguments)
    output: Path | None = options.output
    if output is None and options.picture is None:
        raise InputError("-o has to name a file for the detections, or --picture one for a picture")
    if (options.picture is None) != (options.image is None):
        raise InputError("--picture and --image are given together: a file, and what it shows")
    require_target(options.summary, (".json",))
    require_target(options.picture, (".png",))
    require_target(output)

    from lvdet.inference.device import device_of
    from lvdet.inference.image_list import images_of, sidecar, write_sidecar
    from lvdet.inference.settings import Settings
    from lvdet.inference.sinks import require_format
    from lvdet.training.records.checkpoint import load_model

    if output is not None:
        require_format(output)
    settings = Settings(
        per_class=options.per_class,
        score=options.score,
        nms=_thresholds(options.nms),
        masks=not options.no_masks,
        batch=options.batch,
        workers=options.workers,
        precision=options.precision,
        overwrite=options.overwrite,
        skip_damaged=options.skip_damaged,
    )
    with progress_bar("reading annotations") as update:
        listed = images_of(options.source, options.images, update)
    shown = None if options.image is None else listed.find(options.image)
    model = load_model(options.checkpoint, device_of(options.device))
    ids, names = model.category_ids.tolist(), model.category_names
    listed.require_classes_of(ids, names)
    missing = listed.missing_note(ids, names)
    if missing is not None:
        note(missing)

    if output is None:
        _picture_alone(model, listed, settings, options)
        return
    summary = _predict(model, listed, output, settings)
    if not listed.categories:
        write_sidecar(listed, ids, names, sidecar(output))
        print(f"wrote {sidecar(output)}: the ids of {len(listed.images):,} images")
    if options.summary is not None:
        write_json(summary.to_dict() | {"step": model.step}, options.summary)
    if shown is not None:
        _draw(shown, summary.files[0].path, model, options)


def _parsed(arguments: Sequence[str]) -> Namespace:
    parser = ArgumentParser(
        "predict",
        BARE["predict"]
        + " Memory is bounded, and what was finished is kept: a prediction that was killed goes on "
        "when the same command is given again.",
        EXAMPLES,
    )
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        type=Path,
        help="A run's folder (its last checkpoint), a checkpoint's folder or a model.safetensors.",
    )
    parser.add_argument(
        "source",
        metavar="IMAGES",
        type=Path,
        help="An annotation file in LVIS or COCO format, whose ids the images get, or a folder of "
        "images, which get ids from 1 in the order of their names.",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        help="The detections to write: .json, .jsonl, .ndjson or .parquet (JSON only where lvdet's "
        "compiled core is missing). Of a folder's images, OUT.images.json has the ids.",
    )
    parser.add_argument(
        "--images",
        metavar="FOLDER",
        type=Path,
        help="The folder that the file names of an annotation file are in.",
    )
    parser.add_argument(
        "--per-class",
        metavar="K",
        type=int,
        default=10_000,
        help="Detections of each class to keep over all images, the best. Default: 10000.",
    )
    parser.add_argument(
        "--score",
        metavar="S",
        type=float,
        default=1e-4,
        help="What a score has to exceed. Default: 1e-4; the paper's authors took 1e-7 for the "
        "best of each class, which fills rare classes and takes longer.",
    )
    parser.add_argument(
        "--nms",
        metavar="IOU,…",
        default="0.5",
        help="Overlap above which the better of two boxes of a class suppresses the other. "
        "Default: 0.5. Several come from one pass, each into a file: OUT.nms0.3.json, …",
    )
    parser.add_argument("--no-masks", action="store_true", help="Write boxes only.")
    parser.add_argument(
        "--batch", metavar="N", type=int, default=8, help="Images at a time. Default: 8."
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=-1,
        help="Processes that load images. Default: one a core, up to 8.",
    )
    parser.add_argument(
        "--device", metavar="NAME", help="cuda, cuda:1, cpu, … Default: a GPU where there is one."
    )
    parser.add_argument(
        "--precision",
        metavar="NAME",
        default="fp32",
        help="fp32 or bf16: what the network computes in. bf16 is faster on a GPU, and scores "
        "have about three digits. Default: fp32.",
    )
    parser.add_argument(
        "--summary",
        metavar="FILE.json",
        type=Path,
        help="Write what was done, and how much was written, as JSON.",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="Replace detections that are there already."
    )
    parser.add_argument(
        "--skip-damaged",
        action="store_true",
        help="Go on where a file is no image: it has no detections, and is named at the end. May "
        "be added to a prediction that such a file has ended.",
    )
    parser.add_argument(
        "--picture",
        metavar="FILE.png",
        type=Path,
        help="Draw the detections on one image. Without -o, only that image is predicted.",
    )
    parser.add_argument("--image", metavar="ID|NAME", help="The image of --picture.")
    parser.add_argument(
        "--above",
        metavar="S",
        type=float,
        default=0.3,
        help="The score from which detections are in the picture. Default: 0.3.",
    )
    return parser.parse_args(arguments)


def _thresholds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--nms is {text!r}, expected numbers such as 0.3,0.5,0.7") from None


def _predict(model: LoadedModel, listed: ImageList, output: Path, settings: Settings) -> Summary:
    from lvdet.inference.loading import DamagedImageError
    from lvdet.inference.predict import predict
    from lvdet.training.records.live_line import duration

    progress = progress_bar
    try:
        summary = predict(model, listed.images, output, settings, progress)
    except DamagedImageError as error:
        raise InputError(
            f"{error}; the same command with --skip-damaged goes on from here without such images"
        ) from None
    for text in summary.notes:
        note(text)
    for file in summary.files:
        print(
            f"wrote {file.path}: {file.detections:,} detections of {file.classes:,} classes "
            f"({file.full_classes:,} with {settings.per_class:,}) on {summary.images:,} images, "
            f"{file.detections / summary.images:,.1f} an image"
            f"{'' if summary.masks else ', without masks'}"
        )
    seconds = summary.seconds
    print(f"took {f'{seconds:.1f} s' if seconds < 10 else duration(seconds)}")
    return summary


def _picture_alone(
    model: LoadedModel, listed: ImageList, settings: Settings, options: Namespace
) -> None:
    """Predicts one image, and leaves nothing but the picture."""
    from dataclasses import replace

    from lvdet.inference.predict import predict

    shown = listed.find(options.image)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "detections.jsonl"
        alone = replace(settings, nms=settings.nms[:1], workers=0, batch=1)
        predict(model, [shown], out, alone)
        _draw(shown, out, model, options)


def _draw(
    shown: tuple[int, Path], detections: Path, model: LoadedModel, options: Namespace
) -> None:
    from lvdet.inference.picture import save_picture
    from lvdet.inference.sinks import records_of_image

    names = dict(zip(model.category_ids.tolist(), model.category_names, strict=True))
    count = save_picture(
        shown[1],
        records_of_image(detections, shown[0]),
        names,
        options.picture,
        above=options.above,
    )
    print(
        f"wrote {options.picture}: {count:,} detections above {options.above:g} on {shown[1].name}"
    )
