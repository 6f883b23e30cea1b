"""The limit on the memory that this process may address."""

from __future__ import annotations

import sys

from lvdet.bounds import ADDRESS_SPACE
from lvdet.errors import LvdetError


def require_address_space() -> None:
    """Raises if `ulimit -v`, which Windows lacks, leaves too little: OpenBLAS waits for memory
    without end."""
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE:
            raise LvdetError(
                f"the address space is limited to {limit >> 20:,} MiB (ulimit -v), but lvdet needs "
                f"{ADDRESS_SPACE >> 20:,} MiB"
            )
