"""The addresses at which processes listen."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LISTEN = "0A"


def processes_with(variable: str, value: str) -> list[int]:
    """The processes that were started with a variable."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if f"{variable}={value}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def addresses_of(processes: Iterable[int]) -> set[str]:
    """Where they listen."""
    sockets = {
        found[1]
        for process in processes
        for entry in _entries(Path(f"/proc/{process}/fd"))
        if (found := re.fullmatch(r"socket:\[(\d+)\]", entry))
    }
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and fields[9] in sockets:
                addresses.add(_address(fields[1].partition(":")[0]))
    return addresses


def _entries(folder: Path) -> list[str]:
    """What the links of a folder point to; they come and go."""
    found = []
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                found.append(os.readlink(folder / name))
    return found


def _address(text: str) -> str:
    """An address as the kernel shows it: words of four bytes, each little-endian."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
