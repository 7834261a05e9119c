"""Spark masters by their URL: which ones a store allows, and how often they try a task.

A SQLite store is a file of this machine: executors elsewhere could not read it. So with one, Spark runs
in the worker's own process (`local[*]`), in processes that it starts (`local-cluster[2,1,1024]`), or on a
standalone cluster whose master listens on a loopback address.

A master on the network may be away, or hang. Spark itself tries for a minute and reports little, so a session
is opened only after `check_reachable`, and waits MASTER_SECONDS for the master's answer.

Walk: `cli` checks the command line; `pipeline.spark` calls the rest; `sql.statements.jobs.waiting_statements`
calls `is_about_master`.
"""

import os
import re
import socket
from ipaddress import ip_address

from tenure.base.errors import InvalidParameter, MasterUnreachable

DEFAULT = "local[*]"

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_STANDALONE = re.compile(r"spark://(\[[^\]]+\]|[^:,/]+):(\d+)")

MASTER_SECONDS = 25.0
"""The time for Spark to start and to be registered: 4 to 8 s on a machine that is not busy."""

CONNECT_SECONDS = 5.0
ABOUT_MASTER = "Spark's master "


def unreachable(master: str, why: str) -> MasterUnreachable:
    return MasterUnreachable(f'{ABOUT_MASTER}"{master}" {why}', hint="See --spark-master.")


def is_about_master(error: str) -> bool:
    """Whether the text is that of a MasterUnreachable."""
    return error.startswith(ABOUT_MASTER)


def check_reachable(master: str) -> None:
    """Raises MasterUnreachable if nothing listens at a master on the network."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), CONNECT_SECONDS).close()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise unreachable(master, f"cannot be reached: {why}") from error


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
    """The master with this number of attempts per task: in local mode that is part of its URL, and else
    one.
    """
    found = _LOCAL.fullmatch(master)
    return master if found is None else f"local[{found[1] or 1},{failures_max}]"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
