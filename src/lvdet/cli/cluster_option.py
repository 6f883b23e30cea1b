"""Where a verb runs: in this process, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
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


def placed(
    verb: Callable[..., _Answer], cluster: str | None, skip_bad: bool
) -> Callable[..., _Answer]:
    """The verb, a function of annotations, detections and options, where it is to run."""
    if cluster is not None:
        return partial(_run, verb, cluster, skip_bad)
    if skip_bad:
        raise InputError("--skip-bad-shards needs --cluster")
    return verb


def _run(
    verb: Callable[..., _Answer],
    cluster: str,
    skip_bad: bool,
    ground_truth: Any,
    detections: str | list[str],
    **options: Any,
) -> _Answer:
    from lvdet.cluster.connection import connected

    with connected(cluster):
        from lvdet.cluster.run_on import run_on
        from lvdet.cluster.shards import Shards

        if isinstance(detections, list):
            read: Any = [Shards.of(one, skip_bad=skip_bad) for one in detections]
        else:
            read = Shards.of(detections, skip_bad=skip_bad)
        return run_on(verb, os.getcwd(), ground_truth, read, **options)
