"""A Ray cluster: one that runs, or one of this machine's processes for as long as it is needed."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lvdet.errors import InputError, LvdetError
from lvdet.extras import extra

_LOCAL = re.compile(r"local\[([1-9][0-9]{0,3})\]")
_REMOTE = re.compile(r"(ray://)?(?P<host>[^/\s]+):(?P<port>[0-9]{1,5})")
#: Seconds that a cluster has to answer within; Ray itself tries for minutes.
_PATIENCE = 10.0
#: What Ray reads when it is imported, unless the user has set it. Without the first, processes of
#: this machine take its address in the network for their own, and listen there.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_ALWAYS = {"RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Within it, Ray is connected to the cluster at an address.

    address: "local[N]", N processes of this machine, listening on loopback only; "auto", the
        cluster that this machine belongs to; or an address such as "ray://head:10001"
    """
    local, remote = _LOCAL.fullmatch(address), _REMOTE.fullmatch(address)
    if local is None and remote is None and address != "auto":
        raise InputError(
            f"cluster is {address!r}, expected local[N], auto, or an address such as "
            "ray://head:10001"
        )
    if remote is not None:
        _require_answer(address, remote["host"], int(remote["port"]))
    wanted = {**_ALWAYS, **({} if local is None else LOOPBACK)}
    if local is not None and "ray" in sys.modules and not LOOPBACK.keys() <= os.environ.keys():
        [(name, value)] = LOOPBACK.items()
        raise LvdetError(f"Ray is imported and would listen in the network: set {name}={value}")
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    with extra("cluster", "--cluster"):
        import ray
    if ray.is_initialized():
        raise LvdetError("this process is connected to a Ray cluster already")
    ending = signal.getsignal(signal.SIGTERM)
    try:
        if local is not None:
            ray.init(
                "local",  # rather than any cluster that this machine belongs to
                num_cpus=int(local[1]),
                include_dashboard=False,
                # A verb waits in one while the others read: it is not to be started each time.
                _system_config={"num_workers_soft_limit": int(local[1]) + 1},
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        else:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise LvdetError(f"cannot connect to the cluster {address}: {first}") from None
    terminated = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal terminated
        terminated = True
        raise KeyboardInterrupt  # what Ray passes on; of SystemExit it makes another exit code

    if callable(ending):  # which Ray has replaced
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        ray.shutdown()
        if callable(ending):
            signal.signal(signal.SIGTERM, ending)
            if terminated:
                ending(signal.SIGTERM, None)


def _require_answer(address: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host.strip("[]"), port), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        what = getattr(error, "strerror", None) or error
        raise LvdetError(f"cannot connect to the cluster {address}: {what}") from None
