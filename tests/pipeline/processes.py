"""What Linux tells of other processes: their command lines, and where they listen."""

import os
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from tests.pipeline.waiting import children_of

LISTENING = "0A"


def descendants_of(pid: int) -> list[int]:
    children = children_of(pid)
    return children + [other for child in children for other in descendants_of(child)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:  # it has ended
        return ""


def listens_on(pid: int) -> Iterator[IPv4Address | IPv6Address]:
    sockets = set(_sockets(pid))
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in sockets:
                yield _address(fields[1].partition(":")[0])


def _sockets(pid: int) -> Iterator[str]:
    """By the numbers of their inodes."""
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            if (target := os.readlink(entry.path)).startswith("socket:["):
                yield target[8:-1]
    except OSError:  # it has ended
        return


def _address(text: str) -> IPv4Address | IPv6Address:
    """Each group of four bytes is a number of this machine: least byte first."""
    data = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    if len(data) == 4:
        return IPv4Address(data)
    return IPv6Address(data).ipv4_mapped or IPv6Address(data)
