"""Runs a verb on a cluster: its own code, in a task, over shards that other tasks read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from lvdet.cluster.progress_board import Board, drawn
from lvdet.cluster.shards import RETRIES
from lvdet.cluster.tasks import in_folder
from lvdet.errors import LvdetError
from lvdet.files.progress import Progress
from lvdet.threads import set_threads

_Answer = TypeVar("_Answer")


def run_on(
    verb: Callable[..., _Answer],
    folder: str,
    *arguments: Any,
    progress: Progress | None = None,
    **options: Any,
) -> _Answer:
    """The answer of a verb whose detections are `Shards`, on the cluster that Ray is connected to.
    Only the answer comes back to this process.

    folder: where relative paths begin
    """
    board = None if progress is None else Board.start()
    task = ray.remote(max_retries=RETRIES, scheduling_strategy=_here())(_coordinate)
    answer = task.remote(verb, folder, arguments, options, board)
    try:
        if board is not None and progress is not None:
            drawn(board, progress, answer)
        return ray.get(answer)  # type: ignore[no-any-return]
    except RayTaskError as error:
        if isinstance(error.cause, LvdetError):
            raise error.cause from None
        raise
    except RayError as error:
        first = str(error).strip().partition("\n")[0]
        raise LvdetError(f"the cluster failed: {first}") from None
    except KeyboardInterrupt:
        ray.cancel(answer, recursive=True)
        raise


def _coordinate(
    verb: Callable[..., Any],
    folder: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    board: Any,
) -> Any:
    """Runs the verb. It waits while others read and match, and then has the machine for itself."""
    set_threads(_node_cpus())
    if board is not None:
        options = {**options, "progress": Board(board)}
    try:
        with in_folder(folder):
            return verb(*arguments, **options)
    except RayTaskError as error:
        if isinstance(error.cause, LvdetError):
            raise error.cause from None
        raise


def _here() -> Any:
    """On this process's node, if it takes tasks: what it owns is then lost only with this
    process."""
    node = ray.get_runtime_context().get_node_id()
    return NodeAffinitySchedulingStrategy(node, soft=True)


def _node_cpus() -> int:
    here = ray.get_runtime_context().get_node_id()
    found = [node["Resources"].get("CPU", 1) for node in ray.nodes() if node["NodeID"] == here]
    return max(int(found[0]) if found else 1, 1)
