"""`lvdet train`: trains a detector from a config file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar
from lvdet.errors import InputError
from lvdet.extras import extra
from lvdet.files.writing import write_json

if TYPE_CHECKING:
    from lvdet.files.progress import Progress
    from lvdet.training.configuration.config import Config
    from lvdet.training.loop.processes import Process
    from lvdet.training.model.detector import Detector
    from lvdet.training.records.vocabulary import Vocabulary

EXAMPLES = """\b
Examples:
  lvdet train images/config.toml
  lvdet train mask_rcnn.toml --set schedule.rate=0.01 --set classifier.loss=federated
  lvdet train --list
  lvdet train federated --set data.train=train.json --set data.train_images=images --set data.val=
  lvdet train mask_rcnn.toml -o runs/second --resume
  torchrun --nproc-per-node 8 -m lvdet train mask_rcnn.toml
"""


@extra("train", "training")
def run(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG.toml", help="Config file, or a name from --list."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Override a config key. Repeatable."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder of the run, for checkpoints and logs. Default: runs/NAME, where NAME is "
            "the config's name.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the last checkpoint in the run folder.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run in the folder and start over.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cuda or cpu. Default: cuda if there is a GPU."),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Also write the checkpoint's path, losses and AP as JSON."
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the configs behind the paper's results, and exit.")
    ] = False,
) -> None:
    """Train a detector from a config file.

    Ctrl-C writes a checkpoint and stops. --resume continues from it.
    """
    if listed:
        _list()
        return
    if config is None:
        raise InputError("CONFIG.toml is missing: pass a file, or a name from --list (see --help)")
    if resume and overwrite:
        raise InputError("--resume and --overwrite cannot be combined")
    require_target(summary)

    from lvdet.training.configuration.config_file import config_name, read_config
    from lvdet.training.loop.stopping import StoppedError
    from lvdet.training.records.live_line import LiveLine
    from lvdet.training.records.log import read_log
    from lvdet.training.train import train

    resolved = read_config(config, assignments or [])
    folder = output or Path("runs") / config_name(config)
    first = os.environ.get("RANK", "0") == "0"
    try:
        checkpoint = train(
            resolved,
            folder,
            device=device,
            resume=resume,
            overwrite=overwrite,
            evaluate=_evaluate,
            check=_check,
            line=LiveLine(),
            progress=progress_bar,
        )
    except StoppedError as stopped:
        if first:
            print(stopped, file=sys.stderr)
        sys.exit(128 + stopped.signal)
    if not first:
        return
    if summary is not None:
        records = read_log(folder / "log.jsonl")
        content = {
            "checkpoint": str(checkpoint),
            "steps": resolved.schedule.steps,
            "log": next((r for r in reversed(records) if "losses" in r), None),
            "evaluation": next((r for r in reversed(records) if "evaluation" in r), None),
        }
        write_json(content, summary)
    print(checkpoint)


def _list() -> None:
    """Prints the configs that ship with lvdet, one per line."""
    from lvdet.training.configuration.config_file import read_config
    from lvdet.training.configuration.shipped import FOLDER, shipped_configs

    rows = []
    for one in shipped_configs():
        count = read_config(FOLDER / f"{one.name}.toml").schedule.steps
        rows.append((one.name, f"{count:,}", one.label, one.what))
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    for name, steps, label, what in rows:
        print(f"{name:{widths[0]}}  {steps:>{widths[1]}}  {label:{widths[2]}}  {what}")


def _check(config: Config, trained: Vocabulary, progress: Progress | None) -> None:
    """Raises early for validation data that the first evaluation would reject."""
    from lvdet.inference.image_list import annotated_images

    listed = annotated_images(Path(config.data.val), Path(config.data.val_images), progress)
    listed.require_classes_of(trained.ids.tolist(), trained.names)


def _evaluate(
    detector: Detector, config: Config, folder: Path, step: int, process: Process
) -> dict[str, Any]:
    from lvdet.inference.validation import evaluate

    shown = progress_bar if process.first else None
    return evaluate(detector, config, folder, step, process, shown)
