"""What `lvdet --version` prints."""

from __future__ import annotations

import platform
from importlib.metadata import version

from lvdet import __version__, _native
from lvdet.experiments.source_commit import source_commit
from lvdet.threads import thread_count


def build_details() -> str:
    """The version, then the commit, the compiler and whatever else explains a difference between
    two machines, a line each."""
    commit = source_commit()
    details = {
        **({} if commit is None else {"commit": commit}),
        "compiler": _native.build_compiler(),
        "CPU": f"{platform.machine()}, compiled for {_native.build_instructions()}",
        "threads": str(thread_count()),
        "Python": f"{platform.python_version()}, {platform.system()}",
        "NumPy": version("numpy"),
    }
    lines = [f"  {name:<9} {value}" for name, value in details.items()]
    return "\n".join([f"lvdet {__version__}", *lines])
