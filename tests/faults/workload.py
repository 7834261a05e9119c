"""Random transactions against one store, each recorded as it happens.

    transfer   two accounts; the total stays
    append     a list read and written again with one more tag
    insert     an operation id, at most once; tried again with the same id if it did not succeed
    remove     the first rows of a bucket scanned, the first deleted: phantoms
    nested     a child commits a list while its parent is open
    look       a transaction that only reads: all accounts, or one bucket
    snapshot   the same as of now, or as of a time some seconds ago

Walk: `worker` runs one `Client` per thread; `checker` judges what the log says.
"""

import random
import time
from base64 import b64encode
from collections import deque
from typing import Any

from tenure.base.errors import OutcomeUnknown, TenureError
from tenure.base.timestamp import add_seconds
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tests.faults import names
from tests.faults.log import Log

PENDING_MAX = 50
"""Operations that a thread still wants to see through."""

SCAN_ROWS = 8


class Attempt:
    """A transaction whose reads and writes are recorded."""

    def __init__(
        self, store: Store, log: Log, tag: str, *, parent: "Attempt | None" = None, urgent: bool = False
    ) -> None:
        self._began = time.monotonic_ns()
        self._store = store
        self._log = log
        self._keyspace = store.keyspace
        self.tag = tag
        self.txn: Transaction = store.begin(urgent=urgent) if parent is None else parent.txn.child()
        self._parent = parent
        self._reads: list[tuple[str, str | None, int]] = []
        self._scans: list[tuple[str, int | None, bool, list[tuple[str, str]]]] = []
        self._writes: dict[str, str | None] = {}
        self._excused: list[int] = []

    def get(self, name: str) -> str | None:
        value = _text(self.txn.get(names.key_of(self._keyspace, name)))
        self._reads.append((name, value, len(self._excused)))
        return value

    def get_unrecorded(self, name: str) -> str | None:
        return _text(self.txn.get(names.key_of(self._keyspace, name)))

    def scan(self, prefix: str, *, limit: int | None = None, reverse: bool = False) -> list[tuple[str, str]]:
        span = names.span_of(self._keyspace, prefix)
        rows = [
            (names.name_of(key), value.decode())
            for key, value in self.txn.scan(span, limit=limit, reverse=reverse)
        ]
        self._scans.append((prefix, limit, reverse, rows))
        return rows

    def put(self, name: str, payload: str, *, pad: str = "") -> None:
        value = names.value_of(payload, self.tag) + pad
        self._writes[name] = value
        self.txn.put(names.key_of(self._keyspace, name), value.encode())

    def delete(self, name: str) -> None:
        self._writes[name] = None
        self.txn.delete(names.key_of(self._keyspace, name))

    def finish_reading(self) -> None:
        """Ends a transaction that only read."""
        read_at = self.txn.commit()
        self._log.write(
            "read", began=self._began, read_at=read_at, is_fresh=True, reads=self._reads, scans=self._scans
        )

    def commit(self, *, op: str | None = None) -> bool:
        """Commits and records the outcome; False if it failed or nobody knows."""
        has_read = bool(self._reads or self._scans)
        self._log.write(
            "intent",
            id=self.tag,
            began=self._began,
            op=op,
            read_at=self.txn.read_at if has_read else None,
            reads=self._reads,
            scans=self._scans,
            writes=self._writes,
            excused=self._excused,
            deadline_at=self.txn.deadline_at,
            parent=None if self._parent is None else self._parent.tag,
        )
        try:
            at = self.txn.commit()
        except OutcomeUnknown as error:
            self._log.write("unknown", id=self.tag, why=str(error))
            return False
        except TenureError as error:
            self._log.write("failed", id=self.tag, state=error.sqlstate, why=str(error), hint=error.hint)
            return False
        self._log.write("ack", id=self.tag, at=at)
        if self._parent is not None:
            self._parent._excused.append(at)
        return True


class Client:
    """One thread's stream of transactions."""

    def __init__(
        self,
        store: Store,
        log: Log,
        thread: str,
        rng: random.Random,
        *,
        pad_bytes: int,
        unfinished: list[str],
    ) -> None:
        self._store = store
        self._log = log
        self._thread = thread
        self._rng = rng
        self._pad_bytes = pad_bytes
        self._numbers = 0
        self._pending: deque[str] = deque(unfinished, maxlen=PENDING_MAX)
        self._kinds = (
            self.transfer,
            self.append,
            self.insert,
            self.remove,
            self.nested,
            self.look,
            self.snapshot,
        )
        self._weights = (28, 24, 20, 6, 8, 8, 6)

    def step(self) -> None:
        """Runs one transaction; an error of the store outside of its commit is only noted."""
        kind = self._rng.choices(self._kinds, self._weights)[0]
        try:
            kind()
        except TenureError as error:
            self._log.write("trouble", state=error.sqlstate, why=str(error))
            time.sleep(self._rng.uniform(0.005, 0.05))

    def _attempt(self) -> Attempt:
        self._numbers += 1
        attempt = Attempt(self._store, self._log, f"{self._thread}.{self._numbers}")
        attempt.put(f"m:{self._thread}", "")
        return attempt

    def _pad(self) -> str:
        """Makes values large where the scenario wants it; random, so that it is not compressed."""
        if self._pad_bytes == 0:
            return ""
        return " " + b64encode(self._rng.randbytes(self._pad_bytes * 3 // 4)).decode()

    def transfer(self) -> None:
        attempt = self._attempt()
        source, target = self._rng.sample(names.ACCOUNTS, 2)
        amount = self._rng.randint(1, 5)
        for name, change in ((source, -amount), (target, amount)):
            value = attempt.get(name)
            assert value is not None, f"account {name} is gone"
            attempt.put(name, str(int(names.payload_of(value)) + change))
        if self._rng.random() < 0.1:
            attempt.txn.deadline_at = add_seconds(attempt.txn.read_at, self._rng.uniform(0.0, 0.1))
        attempt.commit()

    def append(self) -> None:
        attempt = self._attempt()
        name = self._rng.choice(names.LISTS)
        attempt.put(name, names.appended(attempt.get(name), attempt.tag), pad=self._pad())
        attempt.commit()

    def insert(self) -> None:
        """Sees an operation through: an old one whose outcome was not success, or a new one."""
        attempt = self._attempt()
        op = self._pending.popleft() if self._pending else attempt.tag
        if attempt.get(f"o:{op}") is not None:
            attempt.txn.rollback()  # an attempt of which nobody knew had landed
            return
        attempt.put(f"o:{op}", "")
        attempt.put(f"{self._rng.choice(names.BUCKETS)}/{op}", "", pad=self._pad())
        if not attempt.commit(op=op):
            self._pending.append(op)

    def remove(self) -> None:
        attempt = self._attempt()
        rows = attempt.scan(
            self._rng.choice(names.BUCKETS), limit=SCAN_ROWS, reverse=self._rng.random() < 0.5
        )
        for name, _ in rows[1:2]:
            attempt.delete(name)
        attempt.commit()

    def nested(self) -> None:
        """The parent reads a list, its child appends to it, the parent reads it again."""
        parent = self._attempt()
        name, other = self._rng.sample(names.LISTS, 2)
        parent.get(name)
        parent.put(other, names.appended(parent.get(other), parent.tag))
        child = Attempt(self._store, self._log, parent.tag + "c", parent=parent)
        if child.get_unrecorded(f"m:{self._thread}") != names.value_of("", parent.tag):
            self._log.write("claim", why=f"{child.tag} does not see its parent's buffered write")
        child.put(name, names.appended(child.get(name), child.tag))
        if not child.commit():
            parent.txn.rollback()
            return
        tag = names.tag_of(parent.get(name) or "")
        if tag != child.tag:
            self._log.write("claim", why=f"{parent.tag} read {tag} instead of its child's write")
        if self._rng.random() < 0.2:
            parent.txn.rollback()  # the child stays
        else:
            parent.commit()

    def look(self) -> None:
        attempt = Attempt(self._store, self._log, f"{self._thread}.look")
        if self._rng.random() < 0.5:
            rows = attempt.scan("b:")
            attempt.get(self._rng.choice(names.LISTS))
            total = sum(int(names.payload_of(value)) for _, value in rows)
            if total != names.BALANCE * len(names.ACCOUNTS):
                self._log.write("claim", why=f"accounts sum to {total} at {attempt.txn.read_at}")
        else:
            attempt.scan(self._rng.choice(names.BUCKETS), limit=self._rng.choice((None, SCAN_ROWS)))
        attempt.finish_reading()

    def snapshot(self) -> None:
        began = time.monotonic_ns()
        at = None
        if self._rng.random() < 0.5:
            at = max(1, add_seconds(self._store.engine.clock_at(), -self._rng.uniform(0.0, 2.0)))
        snapshot = self._store.snapshot(at)
        prefix = self._rng.choice(("b:", *names.BUCKETS[:3]))
        span = names.span_of(self._store.keyspace, prefix)
        rows = [(names.name_of(key), value.decode()) for key, value in snapshot.scan(span)]
        fields: dict[str, Any] = {"reads": [], "scans": [(prefix, None, False, rows)]}
        self._log.write("read", began=began, read_at=snapshot.at, is_fresh=at is None, **fields)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
