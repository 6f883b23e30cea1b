"""Where a verb runs: in this process, or on a cluster."""

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
        help="Run on a Ray cluster: local[N] for N processes of this machine, auto for the cluster "
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
        help="With --cluster: only print what the run would take on so many nodes, from the sizes "
        "of the files and from one of the smallest, which is read.",
    ),
]


def placed(
    verb: Callable[..., _Answer], cluster: str | None, skip_bad: bool = False, *, place: int = 1
) -> Callable[..., _Answer]:
    """The verb, a function of detections (its argument at that place) and others, where it is to
    run."""
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
    """Prints what `evaluate` would take."""
    if cluster is None:
        raise InputError("--plan needs --cluster")
    from lvdet.cluster import Shards, connected
    from lvdet.cluster.run_plan import plan_run

    shards = Shards.of(detections)
    with connected(cluster):
        plan = plan_run(ground_truth, shards, nodes=nodes, **options)
    print("\n".join(plan.lines()))
