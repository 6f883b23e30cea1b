"""What is asked of Ray: to run functions, and to hold what they return.

Ray schedules, repeats what was lost with a worker or a node, and moves what does not fit in memory
to disk. It is imported on first use, because `connected` sets what it reads then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from lvdet.errors import LvdetError

_Answer = TypeVar("_Answer")
#: A promise of what a task returns, or of what `put` was given.
Reference = Any
#: How often a task may be lost with its worker or node.
_RETRIES = 20


def start(function: Callable[..., Any], *arguments: Any, returns: int = 1) -> Any:
    """Runs a function of a module somewhere; one reference, or as many as `returns`. Arguments that
    are references are replaced by their values."""
    return _remote(function).options(num_returns=returns).remote(*arguments)


def start_here(function: Callable[..., Any], *arguments: Any) -> Reference:
    """The same on this process's node, if it takes tasks: what the function starts is then lost
    only if this process is lost too."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    place = NodeAffinitySchedulingStrategy(_node(), soft=True)
    return _remote(function).options(scheduling_strategy=place).remote(*arguments)


def start_actor(kind: Callable[..., Any]) -> Any:
    """An object of its own process, which takes no CPU; a new one where it is lost."""
    import ray

    return ray.remote(num_cpus=0, max_restarts=-1)(kind).remote()


def put(value: Any) -> Reference:
    """A reference to a value."""
    import ray

    return ray.put(value)


def fetch(references: Any) -> Any:
    """The value, or the list of values; raises what the task raised, or why the cluster cannot
    continue."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(references)
    except RayTaskError as error:
        if isinstance(error.cause, LvdetError):
            raise error.cause from None
        raise
    except RayError as error:
        first = str(error).strip().partition("\n")[0]
        raise LvdetError(f"the cluster failed: {first}") from None


def wait(
    references: Sequence[Reference], seconds: float | None = None
) -> tuple[Reference | None, list[Reference]]:
    """One that is finished, None if none is after so many seconds, and the others."""
    import ray

    done, left = ray.wait(list(references), num_returns=1, timeout=seconds)
    return (done[0] if done else None), left


def cancel(reference: Reference) -> None:
    """Ends a task and those that it started."""
    import ray

    ray.cancel(reference, recursive=True)


def cpus() -> int:
    """Those of the cluster as it is now."""
    import ray

    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def cpus_here() -> int:
    """Those of this process's node."""
    import ray

    here = _node()
    found = [node["Resources"].get("CPU", 1) for node in ray.nodes() if node["NodeID"] == here]
    return max(int(found[0]) if found else 1, 1)


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


@cache
def _remote(function: Callable[..., Any]) -> Any:
    import ray

    return ray.remote(max_retries=_RETRIES)(function)
