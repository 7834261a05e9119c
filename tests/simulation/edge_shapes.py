"""Operations at the edges: spans that end exactly at keys, and times that are exactly those of commits.

A comparison that is off by one is wrong at one key or one timestamp only. Random keys and random times
hardly ever meet those, so these shapes choose nothing else.

Walk: `shapes.SHAPES` has them under their names; `lake_edges` takes its times from here.
"""

from collections.abc import Callable

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Span
from tests.simulation.tracing import TracingTransaction
from tests.simulation.workload import LAKE, PLAIN, SWEPT, Client

COMMITS_BACK = 12
"""Among so many of the last commits a time is chosen: older ones are rarely on an edge of anything."""


def read_edges(client: Client) -> None:
    """Scans spans, and reads by themselves the keys at which they begin, end, and meet."""
    spans = [edged_span(client) for _ in range(1 + client.pick(2))]
    ends = [bound for span in spans for bound in span]
    keys = [ends[client.pick(len(ends))] for _ in range(1 + client.pick(2))]
    is_point_first = client.maybe(0.3)

    def run(txn: TracingTransaction) -> None:
        if is_point_first:
            _get_all(client, txn, keys)
        for span in spans:
            list(txn.scan(span, reverse=client.maybe(0.3)))
            client.pause()
        if not is_point_first:
            _get_all(client, txn, keys)
        client.think()
        if client.maybe(0.2):
            txn.refresh()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def write_edges(client: Client) -> None:
    """Writes a key at which others' spans end: the first or the last ones of the table."""
    rows = client.tables.rows[PLAIN]
    key = rows[client.pick(len(rows))]
    client.transact(lambda txn: txn.put(key, txn.record.next_value()))


def narrow_read(client: Client) -> None:
    """Scans a span, is content with one of its rows and forgets the rest: its neighbours stay as read."""
    span, others = edged_span(client), [client.some_key(PLAIN) for _ in range(1 + client.pick(2))]

    def run(txn: TracingTransaction) -> None:
        before = txn.proof.mark()
        _get_all(client, txn, [*others, span.hi])
        rows = list(txn.scan(span))
        txn.proof.forget(before, within=span)
        if rows:
            txn.get(rows[client.pick(len(rows))][0])
        client.think()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def read_at_commit(client: Client) -> None:
    """Reads just before, at, and just after the very time of a commit."""
    at = edge_of_commit(client)
    if at is None:
        return
    snapshot = client.store.snapshot_at(at)
    snapshot.get(client.some_key())
    client.pause()
    snapshot.scan(client.tables.spans[SWEPT if client.maybe(0.5) else PLAIN], reverse=client.maybe(0.3))
    since_at = edge_of_commit(client)
    if since_at is not None and since_at <= snapshot.at:
        span = client.tables.spans[SWEPT if client.maybe(0.5) else PLAIN]
        snapshot.diff(span, since_at=since_at)
        client.store.interval(span, since_at=since_at, until_at=snapshot.at)


def read_lake_at_flush(client: Client) -> None:
    """Reads just before, at, and just after the time up to which the lake goes."""
    flushed_at = client.flushed_at
    if not flushed_at:
        return
    snapshot = client.store.snapshot_at(flushed_at + client.pick(3) - 1)
    snapshot.get(client.some_key(LAKE), flushed_at=flushed_at)
    client.pause()
    snapshot.scan(client.tables.spans[LAKE], flushed_at=flushed_at)


def edged_span(client: Client) -> Span:
    """A span whose end is a key of the table, which therefore is not in it."""
    rows = client.tables.rows[PLAIN]
    first = client.pick(len(rows) - 1)
    return Span(rows[first], rows[first + 1 + client.pick(len(rows) - first - 1)])


def edge_of_commit(client: Client) -> Timestamp | None:
    """The time of one of the last commits, or a tick before or after it; None if there was none yet."""
    landings = client.trace.landings[-COMMITS_BACK:]
    if not landings:
        return None
    return max(0, landings[client.pick(len(landings))].at + client.pick(3) - 1)


def _get_all(client: Client, txn: TracingTransaction, keys: list[bytes]) -> None:
    for key in keys:
        txn.get(key)
        client.pause()


SHAPES: dict[str, Callable[[Client], None]] = {
    "read edges": read_edges,
    "write edges": write_edges,
    "narrow read": narrow_read,
    "read at commit": read_at_commit,
    "read lake at flush": read_lake_at_flush,
}

WEIGHTS: dict[str, float] = {
    "read edges": 2,
    "narrow read": 0.5,
    "read at commit": 1,
    "read lake at flush": 0.5,
}
"""In the mix of everything."""

PROFILES: dict[str, dict[str, float]] = {
    "edges": {"read edges": 5, "write edges": 4, "narrow read": 3, "blind write": 1},
    "times": {
        "read at commit": 5,
        "read lake at flush": 2,
        "blind write": 4,
        "sweep": 2,
        "use lake": 2,
        "flush": 1,
        "clean": 1,
    },
}
