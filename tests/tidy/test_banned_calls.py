"""Time, randomness, waiting and threads are handed in by `base.env`, never taken.

The simulator runs the same code on virtual time; one stray clock or thread would make its runs
differ from seed to seed.
"""

import ast
from collections.abc import Iterator

from tests.tidy.source import Module, imports, nodes, product_modules

BANNED_MODULES = {
    "_thread",
    "asyncio",
    "concurrent",
    "multiprocessing",
    "queue",
    "random",
    "secrets",
    "selectors",
    "socket",
    "threading",
    "time",
    "uuid",
}
BANNED_NAMES = {"os.urandom", "os.getrandom", "os.times"}
BANNED_METHODS = {"now", "utcnow", "today"}
"""Of datetime and date; `Clock.now` and its like are called on other names."""

VALUE_TYPES = {"uuid.UUID"}
"""What a banned module has that takes nothing from outside."""

ALLOWED = {
    ("base/env.py", "random"),
    ("base/env.py", "threading"),
    ("base/env.py", "time"),
    # A nonce must be unpredictable, whatever randomness the rest of the node was given.
    ("pgwire/login/scram.py", "secrets"),
    ("catalog/accounts/sealing.py", "secrets"),
    ("pipeline/encryption.py", "secrets"),
    ("front.py", "secrets"),
    # The parent of several processes only holds their port.
    ("processes.py", "socket"),
    # Webhooks are connected to at the address that was checked.
    ("changefeed/sinks/checked_connection.py", "socket"),
    # Whether a Spark master answers is asked before Spark, which says little.
    ("pipeline/masters.py", "socket"),
    # The door is where the outside comes in: sockets, and secrets that no seed may foretell.
    ("pgwire/door.py", "asyncio"),
    ("pgwire/threads/server_state.py", "asyncio"),
    ("pgwire/threads/server_state.py", "concurrent"),
    ("pgwire/threads/short_calls.py", "concurrent"),
    ("pgwire/door.py", "socket"),
    ("pgwire/connection_slots.py", "secrets"),
    ("pgwire/listeners.py", "asyncio"),
    ("pgwire/listeners.py", "socket"),
    ("pgwire/server.py", "asyncio"),
}


def test_product_code_takes_no_time_randomness_or_threads_by_itself() -> None:
    found = {
        (module.path, name): line
        for module in product_modules()
        for line, name in [*_banned_imports(module), *_banned_uses(module)]
    }
    offences = [
        f"{path}:{line} {name}" for (path, name), line in found.items() if (path, name) not in ALLOWED
    ]
    assert offences == []
    assert found.keys() >= ALLOWED, f"no longer needed: {ALLOWED - found.keys()}"


def test_nothing_is_ordered_by_its_address() -> None:
    offences = [
        f"{module.path}:{node.value.lineno}"
        for module in product_modules()
        for node in nodes(module)
        if isinstance(node, ast.keyword)
        and node.arg == "key"
        and isinstance(node.value, ast.Name)
        and node.value.id == "id"
    ]
    assert offences == []


def test_the_walk_finds_what_it_bans() -> None:
    text = (
        "import time as t, os, datetime\nfrom os import urandom\nfrom uuid import UUID, uuid4\n"
        "os.urandom(1)\ndatetime.date.today()\n"
    )
    module = Module("x.py", text, ast.parse(text))
    assert [name for _, name in _banned_imports(module)] == ["time", "os.urandom", "uuid"]
    assert [name for _, name in _banned_uses(module)] == ["os.urandom", "datetime.date.today"]


def _banned_imports(module: Module) -> Iterator[tuple[int, str]]:
    for line, name in imports(module):
        if name.split(".")[0] in BANNED_MODULES and name not in VALUE_TYPES:
            yield line, name.split(".")[0]
        elif name in BANNED_NAMES:
            yield line, name


def _banned_uses(module: Module) -> Iterator[tuple[int, str]]:
    for node in nodes(module):
        if not isinstance(node, ast.Attribute):
            continue
        name = ast.unparse(node)
        is_wall_clock = node.attr in BANNED_METHODS and name.split(".")[-2] in ("datetime", "date")
        if name in BANNED_NAMES or is_wall_clock:
            yield node.lineno, name
