"""The shapes of operations, each a function of the client that runs it.

Walk: `workload.Client` draws one by weight; each goes through `Client.transact` or a snapshot.
"""

from collections.abc import Callable

from tenure.base.errors import RetryError, UserError
from tenure.base.timestamp import ZERO_AT, add_seconds, from_bytes, to_bytes
from tenure.kv import thresholds
from tenure.kv.encoding import encode_timestamp
from tenure.storage.engine import Removal, Removes, Stamp
from tests.simulation import edge_shapes, view_shapes
from tests.simulation.tracing import TracingTransaction
from tests.simulation.workload import LAKE, PLAIN, STAMPED, SWEPT, Client

MANIFEST = 50
"""A system table whose one row says how far the lake goes."""


def read_modify_write(client: Client) -> None:
    keys = [client.some_key() for _ in range(1 + client.pick(3))]

    def run(txn: TracingTransaction) -> None:
        for key in keys:
            txn.get(key)
            client.pause()
        _change(client, txn, keys[0])
        if client.maybe(0.3):
            _change(client, txn, keys[-1])
            txn.get(keys[-1])

    client.transact(run, urgent=client.maybe(0.1))


def blind_write(client: Client) -> None:
    keys = [client.some_key() for _ in range(1 + client.pick(3))]

    def run(txn: TracingTransaction) -> None:
        for key in keys:
            _change(client, txn, key)

    client.transact(run)


def scan_and_insert(client: Client) -> None:
    """Phantoms: what is inserted depends on what a range did not hold."""
    span = client.some_span()
    everything = client.maybe(0.2)
    limit = 1 + client.pick(4) if client.maybe(0.3) else None
    reverse = client.maybe(0.3)

    def run(txn: TracingTransaction) -> None:
        if client.maybe(0.3):
            _change(client, txn, client.some_key(PLAIN))
        found = dict(txn.scan(client.tables.unlaked if everything else span, limit=limit, reverse=reverse))
        client.pause()
        absent = [key for key in client.tables.rows[PLAIN] if key not in found and span.lo <= key < span.hi]
        if absent and client.maybe(0.7):
            txn.put(absent[client.pick(len(absent))], txn.record.next_value())
        else:
            _change(client, txn, client.some_key(PLAIN))

    client.transact(run)


class KeyTaken(UserError):
    """What an insert is told of a key that has a row."""


def insert(client: Client) -> None:
    """Rows that must be new, of which nobody looks before the commit whether they are."""
    table = LAKE if client.maybe(0.3) else PLAIN
    keys = [client.some_key(table) for _ in range(1 + client.pick(2))]

    def run(txn: TracingTransaction) -> None:
        if client.maybe(0.3):
            txn.get(client.some_key(PLAIN))
        for key in keys:
            txn.expect_absent(key, lambda: KeyTaken("the key is taken"))
            client.pause()
            txn.put(key, txn.record.next_value())

    client.transact(run)


def refer(client: Client) -> None:
    """A row that is written because another is there, which may change until the commit, but not go."""
    keys = [client.some_key(LAKE if client.maybe(0.3) else PLAIN) for _ in range(1 + client.pick(2))]

    def run(txn: TracingTransaction) -> None:
        before = txn.proof.mark()
        is_there = [txn.get(key) is not None for key in keys]
        if all(is_there):
            txn.proof.relax(before)
        client.pause()
        if client.maybe(0.6):
            txn.refresh()
        client.pause()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def write_skew(client: Client) -> None:
    rows = client.tables.rows[PLAIN]
    side = client.pick(2)

    def run(txn: TracingTransaction) -> None:
        txn.get(rows[0])
        txn.get(rows[1])
        client.pause()
        txn.put(rows[side], txn.record.next_value())

    client.transact(run)


def read_only(client: Client) -> None:
    def run(txn: TracingTransaction) -> None:
        for _ in range(2 + client.pick(3)):
            txn.get(client.some_key())
            client.pause()
        if client.maybe(0.5):
            list(txn.scan(client.some_span()))

    client.transact(run)


def read_past(client: Client) -> None:
    at = max(ZERO_AT, add_seconds(client.host_at(), -8.0 * client.tape.draw(f"{client.name}.past")))
    _read_at(client, at)


def read_ahead(client: Client) -> None:
    """Slightly above the store clock, up to the engine's own: the clock must be pushed."""
    _read_at(client, client.host_at())


def _read_at(client: Client, at: int) -> None:
    snapshot = client.store.snapshot_at(at)
    for _ in range(2):
        snapshot.get(client.some_key())
        client.pause()
    snapshot.scan(client.some_span(SWEPT if client.maybe(0.5) else PLAIN))
    if client.maybe(0.3):
        snapshot.scan(client.tables.unlaked, reverse=client.maybe(0.5))


def differences(client: Client) -> None:
    back = 6.0 * client.tape.draw(f"{client.name}.past")
    snapshot = client.store.snapshot_at()
    client.pause()
    span = client.tables.spans[SWEPT] if client.maybe(0.5) else client.some_span()
    since_at = add_seconds(snapshot.at, -back)
    snapshot.diff(span, since_at=since_at)
    limit = 1 + client.pick(4) if client.maybe(0.5) else None
    until_at = add_seconds(snapshot.at, 2.0 * client.pick(3) - 2.0) if client.maybe(0.4) else None
    client.store.interval(span, since_at=since_at, until_at=until_at, limit=limit)


def family(client: Client) -> None:
    """A parent, children and maybe a grandchild, with strangers in between."""
    rows = client.tables.rows[PLAIN]

    def run(txn: TracingTransaction) -> None:
        mine = rows[client.pick(len(rows))]
        if client.maybe(0.7):
            txn.get(rows[client.pick(len(rows))])
        if client.maybe(0.3):
            list(txn.scan(client.some_span()))
        if client.maybe(0.5):
            txn.put(mine, txn.record.next_value())
        if client.maybe(0.1):
            _raise_twins(client, txn)
        for _ in range(1 + client.pick(2)):
            _raise_child(client, txn, depth=1)
            client.pause()
        if client.maybe(0.3):
            txn.refresh()
        txn.get(rows[client.pick(len(rows))])
        if client.maybe(0.4):
            list(txn.scan(client.some_span()))
        if client.maybe(0.15):
            raise RetryError("the parent gives up")
        if client.maybe(0.8):
            txn.put(rows[client.pick(len(rows))], txn.record.next_value())

    client.transact(run)


def _raise_child(client: Client, parent: TracingTransaction, *, depth: int) -> None:
    rows = client.tables.rows[PLAIN]
    child = parent.child(committed_only=client.maybe(0.3))
    assert isinstance(child, TracingTransaction)
    try:
        if client.maybe(0.6):
            child.get(rows[client.pick(len(rows))])
        if client.maybe(0.3):
            list(child.scan(client.some_span()))
        if depth < 2 and client.maybe(0.3):
            _raise_child(client, child, depth=depth + 1)
        if client.maybe(0.15):
            child.refresh()
        key = rows[client.pick(len(rows))]
        if not parent._layers.has_written(key) and client.maybe(0.85):
            child.put(key, child.record.next_value())
            if client.maybe(0.2):
                child.delete(key)
        client.pause()
        client.told(child.commit())
    finally:
        child.rollback()


def _raise_twins(client: Client, parent: TracingTransaction) -> None:
    """Two children at once: strangers to each other, family to the parent."""
    rows = client.tables.rows[PLAIN]
    twins = [parent.child(), parent.child()]
    for twin in twins:
        twin.get(rows[client.pick(len(rows))])
    for twin in twins:
        assert isinstance(twin, TracingTransaction)
        key = rows[client.pick(len(rows))]
        if not parent._layers.has_written(key):
            twin.put(key, twin.record.next_value())
        twin.commit()


def timed(client: Client) -> None:
    """Deadlines and "not before", close enough to now to be missed."""
    spread = 0.02 if client.maybe(0.5) else 1.0
    late = spread * client.tape.draw(f"{client.name}.past")

    def run(txn: TracingTransaction) -> None:
        txn.get(client.some_key(PLAIN))
        client.pause()
        if client.maybe(0.6):
            txn.deadline_at = add_seconds(client.host_at(), late)
        if client.maybe(0.4):
            txn.not_before_at = add_seconds(client.host_at(), late - spread / 2)
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def stamped(client: Client) -> None:
    head = client.tables.heads[STAMPED]

    def run(txn: TracingTransaction) -> None:
        if client.maybe(0.5):
            list(txn.scan(client.tables.spans[STAMPED], limit=3, reverse=True))
        key = head + encode_timestamp(0)
        txn.put(key, txn.record.next_value(), key_stamp=Stamp(len(head) + 1))
        if client.maybe(0.5):
            value = bytes(8) + txn.record.next_value()
            txn.put(client.some_key(PLAIN), value, value_stamp=Stamp(0, plus=client.pick(3)))

    client.transact(run)


def move_up(client: Client) -> None:
    """A transaction that refreshes half-way."""

    def run(txn: TracingTransaction) -> None:
        txn.get(client.some_key())
        if client.maybe(0.4):
            txn.scan_around(client.tables.spans[PLAIN], txn.refresh, reverse=client.maybe(0.3))
        client.think()
        txn.refresh()
        txn.get(client.some_key())
        client.pause()
        _change(client, txn, client.some_key())

    client.transact(run)


def sweep(client: Client) -> None:
    """Publishes a threshold; a later transaction removes what only times below it could see."""
    head, span = client.tables.heads[SWEPT], client.tables.spans[SWEPT]
    removes = Removes.GARBAGE if client.maybe(0.6) else Removes.SUPERSEDED
    limit = 100 if client.maybe(0.6) else 1 + client.pick(3)
    back = 2.0 * client.tape.draw(f"{client.name}.past") ** 3
    if client.maybe(0.5):
        publish(client, head, back)
    if client.sweep_at:
        _remove_batches(client, Removal(span.lo, span.hi, removes, client.sweep_at, limit))


def _remove_batches(client: Client, removal: Removal) -> None:
    """Removes batch by batch; other clients come between two of them, and it may stop after any."""
    begun: list[TracingTransaction] = []

    def run(txn: TracingTransaction) -> None:
        begun.append(txn)
        txn.remove(removal)

    while True:
        client.transact(run)
        if not begun[-1].removed_up_to or client.maybe(0.2):
            return
        removal = removal._replace(after=begun[-1].removed_up_to)


def bury(client: Client) -> None:
    """Deletes a row and at once sweeps its tombstone: whoever had read the row must not miss that."""
    key, head, span = client.some_key(SWEPT), client.tables.heads[SWEPT], client.tables.spans[SWEPT]
    client.transact(lambda txn: txn.delete(key))
    publish(client, head, 0.0)
    removal = Removal(span.lo, span.hi, Removes.GARBAGE, client.sweep_at, 100)
    client.transact(lambda txn: txn.remove(removal))


def hold(client: Client) -> None:
    """Reads a row, takes its time, and writes another: right only if the first is still the same."""

    def run(txn: TracingTransaction) -> None:
        txn.get(client.some_key(SWEPT))
        client.think()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def publish(client: Client, head: bytes, back_seconds: float) -> None:
    at = ZERO_AT

    def run(txn: TracingTransaction) -> None:
        nonlocal at
        at = add_seconds(txn.read_at, -back_seconds)
        thresholds.publish_threshold(txn, client.store.keyspace, head, at)

    client.transact(run)
    client.sweep_at = max(client.sweep_at, at)


def flush(client: Client) -> None:
    """Moves the lake up to now and says so in its manifest."""
    key = client.store.keyspace.key(MANIFEST, (1,))
    flushed_at = ZERO_AT

    def run(txn: TracingTransaction) -> None:
        nonlocal flushed_at
        txn.get(key)
        flushed_at = txn.read_at
        txn.put(key, to_bytes(flushed_at))

    client.transact(run)
    client.flushed_at = flushed_at
    if client.maybe(0.6):
        clean(client)


def clean(client: Client) -> None:
    head, limit = client.tables.heads[LAKE], 100 if client.maybe(0.6) else 1 + client.pick(3)
    at = _flushed_at(client)
    if at:
        client.transact(lambda txn: thresholds.clean(txn, client.store.keyspace, head, at, limit=limit))


def _flushed_at(client: Client) -> int:
    """How far the lake goes: as this client remembers it, which may be out of date."""
    if not client.flushed_at or client.maybe(0.3):
        value = client.store.snapshot_at().get(client.store.keyspace.key(MANIFEST, (1,)))
        client.flushed_at = from_bytes(value or b"")
    return client.flushed_at


def use_lake(client: Client) -> None:
    flushed_at = _flushed_at(client)
    keys = [client.some_key(LAKE) for _ in range(1 + client.pick(2))]
    whole = client.maybe(0.3)
    span = client.some_span(LAKE)
    manifest = client.store.keyspace.key(MANIFEST, (1,))
    attempts = 0

    def run(txn: TracingTransaction) -> None:
        nonlocal flushed_at, attempts
        attempts += 1
        if attempts > 1:  # maybe because the rows have moved on: the manifest knows
            flushed_at = from_bytes(txn.get(manifest) or b"")
        for key in keys:
            txn.get(key, flushed_at=flushed_at)
            client.pause()
        if whole:
            list(txn.scan(span, flushed_at=flushed_at))
            client.pause()
        txn.put(keys[0], txn.record.next_value())

    client.transact(run)


def read_lake_past(client: Client) -> None:
    flushed_at = _flushed_at(client)
    back = 4.0 * client.tape.draw(f"{client.name}.past")
    snapshot = client.store.snapshot_at(add_seconds(client.host_at(), -back))
    snapshot.get(client.some_key(LAKE), flushed_at=flushed_at)
    client.pause()
    snapshot.scan(client.some_span(LAKE), flushed_at=flushed_at)
    if flushed_at <= snapshot.at:
        snapshot.diff(client.tables.spans[LAKE], since_at=flushed_at)


def _change(client: Client, txn: TracingTransaction, key: bytes) -> None:
    if client.maybe(0.25):
        txn.delete(key)
    else:
        txn.put(key, txn.record.next_value())


SHAPES: dict[str, Callable[[Client], None]] = {
    "read-modify-write": read_modify_write,
    "blind write": blind_write,
    "scan and insert": scan_and_insert,
    "insert": insert,
    "refer": refer,
    "write skew": write_skew,
    "read only": read_only,
    "read past": read_past,
    "read ahead": read_ahead,
    "differences": differences,
    "family": family,
    "timed": timed,
    "stamped": stamped,
    "move up": move_up,
    "sweep": sweep,
    "bury": bury,
    "hold": hold,
    "flush": flush,
    "clean": clean,
    "use lake": use_lake,
    "read lake past": read_lake_past,
    **edge_shapes.SHAPES,
    **view_shapes.SHAPES,
}

PROFILES: dict[str, dict[str, float]] = {
    "all": {
        "read-modify-write": 4,
        "blind write": 3,
        "scan and insert": 4,
        "refer": 1,
        "write skew": 2,
        "read only": 2,
        "read past": 2,
        "read ahead": 2,
        "differences": 2,
        "family": 5,
        "timed": 2,
        "stamped": 1,
        "move up": 2,
        "sweep": 2.5,
        "bury": 0.5,
        "hold": 1,
        "flush": 1,
        "clean": 1,
        "use lake": 4,
        "read lake past": 1,
        **edge_shapes.WEIGHTS,
        **view_shapes.WEIGHTS,
    },
    "family": {"family": 6, "blind write": 2, "read-modify-write": 1},
    "lake": {"use lake": 6, "flush": 2, "clean": 1, "read lake past": 1},
    "sweep": {"sweep": 3, "read past": 3, "differences": 2, "read-modify-write": 4, "blind write": 2},
    "tombstones": {"bury": 3, "hold": 5, "blind write": 2},
    "insert": {"insert": 6, "blind write": 3, "read only": 1, "flush": 2, "clean": 1},
    "refer": {"refer": 6, "blind write": 4, "read-modify-write": 1, "flush": 1, "clean": 1},
    "time": {"timed": 5, "read ahead": 4, "blind write": 2, "read-modify-write": 2},
    "plain": {"read-modify-write": 4, "blind write": 2, "scan and insert": 4, "write skew": 3, "move up": 3},
    **edge_shapes.PROFILES,
    **view_shapes.PROFILES,
}
