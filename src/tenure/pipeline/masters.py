"""Spark masters by their URL: which ones a store allows, and how often they try a task.

A SQLite store is a file of this machine: executors elsewhere could not read it. So with one, Spark runs
in the worker's own process (`local[*]`), in processes that it starts (`local-cluster[2,1,1024]`), or on a
standalone cluster whose master listens on a loopback address.

Walk: `cli` checks what the command line says; `pipeline.spark` asks for the rest.
"""

import re
from ipaddress import ip_address

from tenure.base.errors import InvalidParameter

DEFAULT = "local[*]"

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_STANDALONE = re.compile(r"spark://(\[[^\]]+\]|[^:,/]+):\d+")


def check_master(master: str, *, is_store_local: bool) -> None:
    """Raises InvalidParameter unless Spark may run there for this store."""
    if is_store_local and not is_on_this_machine(master):
        raise InvalidParameter(
            f'Spark master "{master}" is not on this machine, and a SQLite store is',
            hint="Use local[*], local-cluster[2,1,1024] or spark://127.0.0.1:7077, or a PostgreSQL store.",
        )


def is_on_this_machine(master: str) -> bool:
    if is_ours(master):
        return True
    found = _STANDALONE.fullmatch(master)
    return found is not None and _is_loopback(found[1].strip("[]"))


def is_local(master: str) -> bool:
    """Whether the tasks run under the driver itself."""
    return _LOCAL.fullmatch(master) is not None


def is_ours(master: str) -> bool:
    """Whether all of Spark's processes are started by the session, and end with it."""
    return is_local(master) or _LOCAL_CLUSTER.fullmatch(master) is not None


def with_failures(master: str, failures_max: int) -> str:
    """The master that tries each task so often: in local mode that is part of its URL, and else once."""
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{found[1] or 1},{failures_max}]"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
