"""Where a verb runs: in this process or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from lvdet.errors import InputError

_Answer = TypeVar("_Answer")

Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Ray cluster: local[N] for N processes on this machine, auto for the cluster "
        "that this machine belongs to, or an address such as ray://head:10001. Each file is a "
        "shard.",
    ),
]
SkipBadShards: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--skip-bad-shards",
        help="With --cluster: leave out files that cannot be read, and list them with the result.",
    ),
]
PlanOnly: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--plan",
        metavar="NODES",
        help="With --cluster: print an estimate of time and memory on this many nodes, and exit. "
        "Reads one of the smallest files.",
    ),
]


def placed(
    verb: Callable[..., _Answer], cluster: str | None, skip_bad: bool = False, *, place: int = 1
) -> Callable[..., _Answer]:
    """The verb as a function that runs on the cluster, if there is one.

    place: the position of the detections among its arguments
    """
    if cluster is not None:
        return partial(_run, verb, cluster, skip_bad, place)
    if skip_bad:
        raise InputError("--skip-bad-shards needs --cluster")
    return verb


def _run(
    verb: Callable[..., _Answer],
    cluster: str,
    skip_bad: bool,
    place: int,
    *arguments: Any,
    **options: Any,
) -> _Answer:
    from lvdet.cluster import Shards, connected, run_on

    def shards(detections: str | list[str]) -> Any:
        if isinstance(detections, list):
            return [shards(one) for one in detections]
        return Shards.of(detections, skip_bad=skip_bad)

    given = list(arguments)
    given[place] = shards(given[place])
    with connected(cluster):
        return run_on(verb, *given, **options)


def print_plan(
    cluster: str | None, ground_truth: Path, detections: str, nodes: int, **options: Any
) -> None:
    """Prints an estimate of the time and memory that `evaluate` would take."""
    if cluster is None:
        raise InputError("--plan needs --cluster")
    from lvdet.cluster import Shards, connected
    from lvdet.cluster.run_plan import plan_run

    shards = Shards.of(detections)
    with connected(cluster):
        plan = plan_run(ground_truth, shards, nodes=nodes, **options)
    print("\n".join(plan.lines()))
