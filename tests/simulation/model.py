"""The model: a plain dictionary of histories, with which the store's final state is compared.

`compare` looks at every row of `live` and `past`: each must be a version that landed, with the
value and the end that the history gives it; and each version that is missing must lie below a
mark. `sequential` runs random transactions one after the other against the same dictionary.

Walk: `cluster.run` -> `compare`; `__main__` -> `sequential`.
"""

import random
from collections.abc import Iterator

from tenure.base.env import ManualEnv
from tenure.base.timestamp import Timestamp, add_seconds, from_bytes
from tenure.kv.keys import CLEANED_MARKS, THRESHOLDS, Keyspace, Span
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.simulation.predicates import Violation
from tests.simulation.trace import Trace, Version, head

LIVE_UNTIL = -1
"""Stands for the end of a revision that has none."""

_ROWS = "SELECT key, at, -1, value FROM live UNION ALL SELECT key, at, until, value FROM past"


def compare(trace: Trace, engine: SqliteEngine) -> Iterator[Violation]:
    """I5, I30: the store holds what landed, all of it, but for what marks allow to be gone."""
    rows = engine._writer.execute(_ROWS, ())
    stored = {(key, at): (until, value) for key, at, until, value in rows}
    marks = _marks(trace)
    versions = 0
    for key, history in trace.versions.items():
        untils = [version.at for version in history[1:]] + [LIVE_UNTIL]
        versions += len(history)
        for version, until in zip(history, untils, strict=True):
            found = stored.pop((key, version.at), None)
            if found is None:
                if not _may_be_gone(version, until, *marks.get(head(key), (0, 0))):
                    yield _wrong("I5", key, version, "is not in the store")
            elif found[1] != version.value:
                yield _wrong("I5", key, version, f"is {found[1]!r} in the store")
            elif found[0] != until and version.at > marks.get(head(key), (0, 0))[1]:
                yield _wrong("I5", key, version, f"ends at {found[0]} in the store, not at {until}")
    for key, at in stored:
        yield Violation("I5", f"the store has {key.hex()} at {at}, which never landed", trace.step)
    removed = sum(landing.removed + landing.txn.unstored() for landing in trace.landings)
    if len(rows) != versions - removed:
        yield Violation("I5", f"{versions} versions, {removed} removed, but {len(rows)} rows", trace.step)


def _marks(trace: Trace) -> dict[bytes, tuple[Timestamp, Timestamp]]:
    """Threshold and cleaned mark by head, as they are at the end."""
    found: dict[bytes, tuple[Timestamp, Timestamp]] = {}
    for key, versions in trace.versions.items():
        table = int.from_bytes(key[4:8], "big")
        at = from_bytes(versions[-1].value or b"") if table in (THRESHOLDS, CLEANED_MARKS) else 0
        threshold_at, cleaned_at = found.get(key[10:], (0, 0))
        if table == THRESHOLDS:
            found[key[10:]] = at, cleaned_at
        elif table == CLEANED_MARKS:
            found[key[10:]] = threshold_at, at
    return found


def _may_be_gone(version: Version, until: Timestamp, threshold_at: Timestamp, cleaned_at: Timestamp) -> bool:
    is_superseded = until != LIVE_UNTIL and until <= threshold_at
    is_tombstone = version.value is None and version.at <= threshold_at
    return is_superseded or is_tombstone or version.at <= cleaned_at


def _wrong(predicate: str, key: bytes, version: Version, what: str) -> Violation:
    message = f"{key.hex()} at {version.at} {what} (t{version.writer.id}: {version.value!r})"
    return Violation(predicate, message, version.step, (version.writer.id,))


# ── one after the other ──────────────────────────────────────────────────────────────────────────


class Sequential:
    """A store and its model, driven by the same random transactions."""

    def __init__(self, seed: int, keys: int = 40) -> None:
        self.random = random.Random(seed)
        self.env = ManualEnv(seed=seed)
        self.engine = SqliteEngine(MEMORY, self.env)
        self.store = Store(self.engine, self.env)
        keyspace = Keyspace(1)
        self.keys = [keyspace.key(100 + n % 2, (n,)) for n in range(keys)]
        self.keys.sort()
        self.all = Span(self.keys[0], self.keys[-1] + b"\0")
        self.history: dict[bytes, list[tuple[Timestamp, bytes | None]]] = {key: [] for key in self.keys}

    def run(self, transactions: int) -> None:
        for number in range(transactions):
            if self.random.random() < 0.3:
                self.env.advance(self.random.random() * 0.01)
            if self.random.random() < 0.05:
                self._compare_past()
            self._transact(number)

    def _transact(self, number: int) -> None:
        draw = self.random.random
        txn = self.store.begin()
        writes: dict[bytes, bytes | None] = {}
        for step in range(1 + int(draw() * 3)):
            key = self.keys[int(draw() * len(self.keys))]
            if draw() < 0.4:
                expected = writes[key] if key in writes else self.value_at(key)
                assert txn.get(key) == expected, f"transaction {number} read a wrong value"
            elif draw() < 0.8:
                writes[key] = b"%d:%d" % (number, step)
                txn.put(key, b"%d:%d" % (number, step))
            else:
                writes[key] = None
                txn.delete(key)
        if draw() < 0.03:
            self._compare_scan(txn, writes)
        if draw() < 0.1:
            txn.rollback()
            return
        at = txn.commit()
        for key, value in writes.items():
            self.history[key].append((at, value))

    def value_at(self, key: bytes, at: Timestamp | None = None) -> bytes | None:
        for version_at, value in reversed(self.history[key]):
            if at is None or version_at <= at:
                return value
        return None

    def _compare_scan(self, txn: Transaction, writes: dict[bytes, bytes | None]) -> None:
        state = {key: self.value_at(key) for key in self.keys} | writes
        limit = 1 + int(self.random.random() * 10) if self.random.random() < 0.5 else None
        reverse = self.random.random() < 0.5
        rows = [(key, value) for key, value in sorted(state.items(), reverse=reverse) if value is not None]
        assert list(txn.scan(self.all, limit=limit, reverse=reverse)) == rows[:limit]

    def _compare_past(self) -> None:
        at = add_seconds(self.engine.clock_at(), -0.2 * self.random.random())
        snapshot = self.store.snapshot(at)
        for _ in range(3):
            key = self.keys[int(self.random.random() * len(self.keys))]
            assert snapshot.get(key) == self.value_at(key, at), "a snapshot gave a wrong value"


def sequential(seed: int, transactions: int, *, per_store: int = 5_000) -> int:
    """Runs transactions against the model; a wrong answer is an AssertionError."""
    done = 0
    while done < transactions:
        once = Sequential(seed + done)
        once.run(min(per_store, transactions - done))
        done += per_store
    return transactions
