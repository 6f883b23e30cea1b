"""Runs a verb on a cluster: its own code, in a task, over shards that other tasks read."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from lvdet.cluster.engine import cancel, cpus_here, fetch, start_here
from lvdet.cluster.progress_board import Board, drawn
from lvdet.cluster.tasks import in_folder
from lvdet.files.progress import Progress
from lvdet.threads import set_threads

_Answer = TypeVar("_Answer")


def run_on(
    verb: Callable[..., _Answer],
    *arguments: Any,
    progress: Progress | None = None,
    **options: Any,
) -> _Answer:
    """The answer of a verb whose detections are `Shards`, on the cluster that Ray is connected to.
    Only the answer comes back to this process.

    verb: `evaluate`, `sweep`, `audit`, `compare`, `convert`, or `fit` of a `Calibrator`, followed
        by its arguments. Relative paths begin in the folder of this process.
    """
    answer = None
    try:
        board = None if progress is None else Board.start()
        answer = start_here(_coordinate, verb, os.getcwd(), arguments, options, board)
        if board is not None and progress is not None:
            drawn(board, progress, answer)
        return fetch(answer)  # type: ignore[no-any-return]
    except KeyboardInterrupt:  # Ray waits for a task that is under way
        if answer is not None:
            cancel(answer)
        raise


def _coordinate(
    verb: Callable[..., Any],
    folder: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    board: Any,
) -> Any:
    """Runs the verb. It waits while others read and match, and then has the machine for itself."""
    set_threads(cpus_here())
    if board is not None:
        options = {**options, "progress": Board(board)}
    with in_folder(folder):
        return verb(*arguments, **options)
