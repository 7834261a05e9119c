"""Savepoints and cursors: reads that outlive what was written after them, and reads that keep their time.

    savepoints   read, mark, read and write, go back, go on: all that was read stays read
    cursor       open a view, read it in parts while the transaction writes, goes back and moves its time up

Walk: `shapes.SHAPES` has them under their names; `view_mistakes` are what they are to find.
"""

from collections.abc import Callable

from tests.simulation.tracing import TracingTransaction
from tests.simulation.workload import PLAIN, SWEPT, Client


def savepoints(client: Client) -> None:
    """What a nested block of a driver does: it reads, fails, is undone, and its caller goes on."""

    def run(txn: TracingTransaction) -> None:
        if client.maybe(0.4):
            txn.get(client.some_key(PLAIN))
        place = txn.mark() if client.maybe(0.6) else None
        for _ in range(1 + client.pick(2)):
            _read(client, txn)
            client.pause()
            if client.maybe(0.5):
                txn.put(client.some_key(PLAIN), txn.record.next_value())
        if client.maybe(0.3):
            inner = txn.mark()
            txn.put(client.some_key(PLAIN), txn.record.next_value())
            txn.release(inner) if client.maybe(0.5) else txn.back_to(inner)
        txn.back_to(place)
        client.pause()
        if client.maybe(0.4):
            _read(client, txn)
        client.think()
        if client.maybe(0.7):
            txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def cursor(client: Client) -> None:
    """A cursor of a block: read in parts, with the block's own doings in between."""
    table = SWEPT if client.maybe(0.3) else PLAIN

    def run(txn: TracingTransaction) -> None:
        if client.maybe(0.5):
            _change(client, txn)
        place = txn.mark() if client.maybe(0.4) else None
        if client.maybe(0.3):
            _change(client, txn)
        view = txn.opened()
        other = None

        def between() -> None:
            nonlocal other
            for _ in range(1 + client.pick(3)):
                _go_on(client, txn)
            if place is not None and client.maybe(0.3):
                txn.back_to(place)
            if client.maybe(0.4):
                other = txn.opened()

        if client.maybe(0.5):
            between()
        if client.maybe(0.6):
            view.scan_around(client.some_span(table), between, reverse=client.maybe(0.3))
        for _ in range(1 + client.pick(2)):
            view.get(client.some_key(table))
            client.pause()
        if other is not None:
            other.get(client.some_key(table))
        if client.maybe(0.3):
            txn.refresh()
        if client.maybe(0.6):
            txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def _go_on(client: Client, txn: TracingTransaction) -> None:
    """What a block may do while one of its cursors is open."""
    if client.maybe(0.6):
        _change(client, txn)
    client.think()
    if client.maybe(0.6):
        txn.refresh()
    if client.maybe(0.4):
        txn.get(client.some_key(PLAIN))


def _read(client: Client, txn: TracingTransaction) -> None:
    if client.maybe(0.4):
        list(txn.scan(client.some_span()))
    else:
        txn.get(client.some_key(PLAIN))


def _change(client: Client, txn: TracingTransaction) -> None:
    key = client.some_key(PLAIN)
    if client.maybe(0.25):
        txn.delete(key)
    else:
        txn.put(key, txn.record.next_value())


SHAPES: dict[str, Callable[[Client], None]] = {"savepoints": savepoints, "cursor": cursor}

WEIGHTS = {"savepoints": 1.5, "cursor": 1.5}
"""In the profile of all shapes."""

PROFILES: dict[str, dict[str, float]] = {
    "savepoints": {"savepoints": 6, "blind write": 4, "read-modify-write": 1},
    "cursors": {"cursor": 6, "blind write": 4, "sweep": 0.5},
}
