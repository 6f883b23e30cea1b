"""`lvdet predict`: runs a trained detector and keeps the best detections of each class."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.targets import require_target
from lvdet.cli.terminal import note, progress_bar
from lvdet.errors import InputError
from lvdet.extras import extra
from lvdet.files.writing import write_json

if TYPE_CHECKING:
    from lvdet.inference.image_list import ImageList
    from lvdet.inference.settings import Settings, Summary
    from lvdet.training.loop.processes import Process
    from lvdet.training.records.checkpoint import LoadedModel

EXAMPLES = """\b
Examples:
  lvdet predict runs/first lvis_v1_val.json --images coco -o results.json
  lvdet predict runs/first photos -o photos.json --score 0.05
  lvdet predict runs/first val.json --images coco -o results.json --nms 0.3,0.5,0.7
  lvdet predict runs/first photos --picture found.png --image street.jpg --above 0.5
  torchrun --nproc-per-node 8 -m lvdet predict runs/first val.json --images coco -o results.json
"""


@extra("train", "prediction")
def run(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Run folder (uses its last checkpoint), checkpoint folder or "
            "model.safetensors; or a .pkl or .pth file from Detectron2 or torchvision.",
        ),
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES",
            help="LVIS or COCO annotations that list the images, or a folder of images, "
            "which get ids from 1 in order of file name.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Output file of detections: .json, .jsonl, .ndjson or .parquet. For a folder of "
            "images, results.json comes with results.images.json, which lists their ids.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of the images named in the annotations."),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Annotations that name the classes of a Detectron2 or torchvision "
            "checkpoint. Default: the categories of IMAGES.",
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Colour and stride convention of a Detectron2 or torchvision backbone: "
            "msra, caffe2 or torchvision. Default: inferred from the file.",
        ),
    ] = None,
    dets_per_class: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Keep the best N detections per class across all images; 0 turns this off.",
        ),
    ] = 10_000,
    dets_per_image: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Also keep the best N detections per image across all classes; 0 turns this off.",
        ),
    ] = 300,
    score: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Minimum score (exclusive). A higher value is faster but may leave rare "
            "classes with too few detections.",
        ),
    ] = 1e-7,
    nms: Annotated[
        str,
        typer.Option(
            metavar="IOU,…",
            help="IoU above which a box suppresses lower-scored boxes of its class. With "
            "several values, one pass writes a file for each: results.nms0.3.json, …",
        ),
    ] = "0.5",
    no_masks: Annotated[bool, typer.Option("--no-masks", help="Write boxes only.")] = False,
    batch: Annotated[int, typer.Option(metavar="N", help="Images per batch.")] = 8,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of processes that load images; -1 means one per core, up to 8.",
        ),
    ] = -1,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cuda, cuda:1, cpu, … Default: cuda if there is a GPU."),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="fp32, or bf16, which needs a GPU that supports it: faster, but scores have only "
            "about three digits.",
        ),
    ] = "fp32",
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Also write counts and times as JSON.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing output files.")
    ] = False,
    skip_damaged: Annotated[
        bool,
        typer.Option(
            "--skip-damaged",
            help="Skip damaged images; the first five are named at the end, all in --summary. "
            "May be added when resuming.",
        ),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw the detections of one image. Without -o, predict only that image.",
        ),
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="ID|NAME", help="Image to draw with --picture.")
    ] = None,
    above: Annotated[
        float, typer.Option(metavar="S", help="Minimum score (exclusive) in the picture.")
    ] = 0.3,
) -> None:
    """Run a trained detector over images.

    Memory use is bounded. Run the same command again to resume an interrupted prediction.
    """
    if output is None and picture is None:
        raise InputError("pass -o FILE for the detections, or --picture FILE.png for a picture")
    if (picture is None) != (image is None):
        raise InputError(
            "pass --picture and --image together: the file to write and the image to draw"
        )
    require_target(summary, (".json",))
    require_target(picture, (".png",))
    require_target(output)

    from lvdet.files.detection_files import require_format
    from lvdet.inference.device import predicting_processes
    from lvdet.inference.image_list import images_of, sidecar, write_sidecar
    from lvdet.inference.settings import Settings
    from lvdet.training.records.checkpoint import load_model
    from lvdet.training.weights.weight_file import is_weight_file

    if output is not None:
        require_format(output)
    settings = Settings(
        dets_per_class=dets_per_class,
        dets_per_image=dets_per_image,
        score=score,
        nms=_thresholds(nms),
        masks=not no_masks,
        batch=batch,
        workers=workers,
        precision=precision,
        overwrite=overwrite,
        skip_damaged=skip_damaged,
    )
    with predicting_processes(device) as process:
        shown_progress = progress_bar if process.first else None
        listed = images_of(source, images, shown_progress)
        shown = None if image is None else listed.find(image)
        if is_weight_file(checkpoint):
            model = _foreign(checkpoint, listed, annotations, convention, process)
        elif annotations is not None or convention is not None:
            raise InputError(
                f"{checkpoint}: --annotations and --convention do not apply to a checkpoint "
                "of lvdet"
            )
        else:
            model = load_model(checkpoint, process.device)
        ids, names = model.category_ids.tolist(), model.category_names
        listed.require_classes_of(ids, names)
        missing = listed.missing_note(ids, names)
        if missing is not None and process.first:
            note(missing)

        if output is None:
            assert shown is not None
            assert picture is not None
            if process.first:
                _picture_alone(model, shown, settings, picture, above)
            return
        done = _predict(model, listed, output, settings, process)
        if not process.first:
            return
        if not listed.categories:
            write_sidecar(listed, ids, names, sidecar(output))
            print(f"wrote {sidecar(output)}: the ids of {len(listed.images):,} images")
        if summary is not None:
            write_json(done.to_dict() | {"step": model.step}, summary)
        if shown is not None and picture is not None:
            _draw(shown, done.files[0].path, model, picture, above)


def _foreign(
    checkpoint: Path,
    listed: ImageList,
    annotations: Path | None,
    convention: str | None,
    process: Process,
) -> LoadedModel:
    """A detector from Detectron2 or torchvision, with its classes named by annotations."""
    from lvdet.inference.image_list import categories_of
    from lvdet.training.weights.foreign_detector import load_foreign

    where = annotations or listed.source
    shown = progress_bar if process.first else None
    known = listed.categories if annotations is None else categories_of(annotations, shown)
    return load_foreign(checkpoint, known, where, process.device, convention)


def _thresholds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--nms is {text!r}, expected numbers such as 0.3,0.5,0.7") from None


def _predict(
    model: LoadedModel, listed: ImageList, output: Path, settings: Settings, process: Process
) -> Summary:
    from lvdet.inference.loading import DamagedImageError
    from lvdet.inference.predict import predict
    from lvdet.training.records.live_line import duration

    try:
        shown = progress_bar if process.first else None
        summary = predict(model, listed.images, output, settings, shown, process)
    except DamagedImageError as error:
        raise InputError(
            f"{error}; run the command again with --skip-damaged to resume without damaged images"
        ) from None
    if not process.first:
        return summary
    for text in summary.notes:
        note(text)
    for file in summary.files:
        print(
            f"wrote {file.path}: {file.detections:,} detections of {file.classes:,} classes "
            f"{_full(file.full_classes, settings.dets_per_class)}on {summary.images:,} "
            f"images, {file.detections / summary.images:,.1f} per image"
            f"{'' if summary.masks else ', without masks'}"
        )
    seconds, starting = (
        f"{time:.1f} s" if time < 10 else duration(time)
        for time in (summary.seconds, summary.starting)
    )
    print(f"took {seconds}, including {starting} before the first batches")
    return summary


def _full(classes: int, dets_per_class: int) -> str:
    return f"({classes:,} with {dets_per_class:,} or more) " if dets_per_class else ""


def _picture_alone(
    model: LoadedModel, shown: tuple[int, Path], settings: Settings, picture: Path, above: float
) -> None:
    """Predicts one image and writes only the picture."""
    from dataclasses import replace

    from lvdet.inference.predict import predict

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "detections.jsonl"
        score = max(settings.score, above)  # nothing below it is drawn
        alone = replace(settings, nms=settings.nms[:1], workers=0, batch=1, score=score)
        predict(model, [shown], out, alone)
        _draw(shown, out, model, picture, above)


def _draw(
    shown: tuple[int, Path], detections: Path, model: LoadedModel, picture: Path, above: float
) -> None:
    from lvdet.inference.picture import detections_on, save_picture

    names = dict(zip(model.category_ids.tolist(), model.category_names, strict=True))
    image_id, path = shown
    count = save_picture(path, detections_on(detections, image_id), names, picture, above=above)
    print(f"wrote {picture}: {count:,} detections above {above:g} on {path.name}")
