"""`lvdet train`: a detector from a config file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lvdet.cli import BARE
from lvdet.cli.argument_parser import ArgumentParser
from lvdet.cli.json_file import write_json
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar

if TYPE_CHECKING:
    from lvdet.files.progress import Update
    from lvdet.training.configuration.config import Config
    from lvdet.training.model.detector import Detector
    from lvdet.training.records.vocabulary import Vocabulary

EXAMPLES = """\
Examples:
  lvdet train images/config.toml
  lvdet train mask_rcnn.toml --set schedule.rate=0.01 --set classifier.loss=federated
  lvdet train mask_rcnn.toml --out runs/second --resume
"""
_MORE = (
    " Ctrl-C writes a checkpoint and stops; --resume goes on as if nothing had happened. On"
    " several GPUs: torchrun --nproc-per-node 8 -m lvdet train CONFIG.toml"
)


def run(arguments: Sequence[str]) -> None:
    """Parses, trains, and says where the last checkpoint is."""
    parser = ArgumentParser("train", BARE["train"] + _MORE, EXAMPLES)
    parser.add_argument("config", metavar="CONFIG.toml", type=Path, help="What to train.")
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="Change a key of the config; may be given several times.",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="Folder of the run. Default: runs/ and the config's name.",
    )
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--resume", action="store_true", help="Go on from the last checkpoint in the folder."
    )
    again.add_argument(
        "--overwrite", action="store_true", help="Remove the run that is in the folder."
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), help="Default: cuda where there is a GPU."
    )
    parser.add_argument(
        "--output", metavar="FILE.json", type=Path, help="Write what came out as JSON."
    )
    options = parser.parse_args(arguments)
    require_target(options.output)

    from lvdet.training.configuration.config_file import read_config
    from lvdet.training.loop.stopping import StoppedError
    from lvdet.training.records.live_line import LiveLine
    from lvdet.training.records.log import read_log
    from lvdet.training.train import train

    config = read_config(options.config, options.set)
    folder = options.out or Path("runs") / options.config.stem
    first = os.environ.get("RANK", "0") == "0"
    try:
        checkpoint = train(
            config,
            folder,
            device=options.device,
            resume=options.resume,
            overwrite=options.overwrite,
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
    records = read_log(folder / "log.jsonl")
    if options.output is not None:
        write_json(
            {
                "checkpoint": str(checkpoint),
                "steps": config.schedule.steps,
                "log": next((r for r in reversed(records) if "losses" in r), None),
                "evaluation": next((r for r in reversed(records) if "evaluation" in r), None),
            },
            options.output,
        )
    print(checkpoint)


def _check(config: Config, trained: Vocabulary, update: Update | None) -> None:
    """Refuses validation data that an evaluation would refuse, after many steps."""
    from lvdet.inference.image_list import annotated_images

    listed = annotated_images(Path(config.data.val), Path(config.data.val_images), update)
    listed.require_classes_of(trained.ids.tolist(), trained.names)


def _evaluate(detector: Detector, config: Config, folder: Path, step: int) -> dict[str, Any]:
    from lvdet.inference.validation import evaluate

    return evaluate(detector, config, folder, step, progress_bar)
