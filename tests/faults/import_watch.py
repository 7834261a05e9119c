"""Looks at a store from outside: watches over tables while all goes on, and all revisions in the end.

Walk: `import_history` makes an `Observer`; its `facts` are what `serial_checker` judges attempts by.
"""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tenure.base.env import SystemEnv
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.encoding import decode
from tenure.kv.gaps import Gap
from tenure.kv.keys import Span
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.pipeline import remote_handles, scan
from tenure.pipeline.remote_handles import StoreHandle, TableVersion, version_of
from tenure.storage.addresses import open_engine
from tenure.storage.engine import HEAD_BYTES
from tenure.table.lake.format import name_of
from tests.faults.import_load import NOTED
from tests.faults.serial_checker import Facts, Life, Revision
from tests.faults.serial_model import TABLES, Row

LOOK_SECONDS = 0.2
END_SECONDS_MAX = 30.0


class Watched(NamedTuple):
    """What one watch is over."""

    tables: tuple[str, ...]
    spans: tuple[Span, ...]
    are_rows: bool
    """Or else entries of an index."""


class Observer:
    def __init__(self, store: str, lake: Path) -> None:
        env = SystemEnv()
        self._place = StoreHandle(store, str(lake), DEFAULT_TENANT)
        self._engine = open_engine(store, env)
        self._store = Store(self._engine, env)
        self._catalog = Catalog(self._store.keyspace)
        found = self._catalog.list(self._store.snapshot())
        self._tables = {each.name: each for each in found if isinstance(each, Table)}
        self._lives: list[Life] = []
        self._end_at: int | None = None
        self._threads = [
            threading.Thread(target=self._watch, args=(each,), daemon=True) for each in self._watches()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_at = 0 if self._end_at is None else self._end_at
        for thread in self._threads:
            thread.join(END_SECONDS_MAX)
        remote_handles.close(self._place)
        self._store.close()
        self._engine.close()

    # ── watches ────────────────────────────────────────────────────────────────────────────────

    def end(self) -> list[str]:
        """Lets watches go on up to now; violations are those that do not get there."""
        self._end_at = self._store.snapshot().at
        for thread in self._threads:
            thread.join(END_SECONDS_MAX)
        stuck = sum(thread.is_alive() for thread in self._threads)
        return [f"watch: {stuck} have not come to the end"] if stuck else []

    def _watches(self) -> Iterator[Watched]:
        """One over each table, one over both, and one over indexes."""
        for tables in (*((table,) for table in TABLES), TABLES):
            yield Watched(tables, tuple(self._span(table) for table in tables), are_rows=True)
        for table in TABLES:
            others = [
                each.id for each in self._tables[table].indexes if each.id != self._tables[table].primary
            ]
            yield Watched((table,), tuple(self._span(table, index) for index in others), are_rows=False)

    def _span(self, table: str, index: int | None = None) -> Span:
        found = self._tables[table]
        return self._store.keyspace.index_span(found.id, found.primary if index is None else index)

    def _watch(self, watched: Watched) -> None:
        while self._end_at is None or not self._lives or self._lives[-1].has_moved:
            life = self._life(watched)
            self._lives.append(life)
            if not life.has_moved:
                return

    def _life(self, watched: Watched) -> Life:
        """A watch until it is told to scan again, or all is over."""
        since_at = self._store.snapshot().at
        told: list[tuple[str, int, int, bool]] = []
        has_moved = False
        with closing(self._store.watch(watched.spans, since_at=since_at)) as watch:
            while self._end_at is None or watch.resolved_at < self._end_at:
                batch = watch.next(LOOK_SECONDS)
                if isinstance(batch, Gap):
                    has_moved = True
                    break
                if watched.are_rows:
                    told += [(*self._named(key), at, value is not None) for key, at, value in batch.revisions]
        shown = tuple(told) if watched.are_rows else None
        return Life(watched.tables, since_at, watch.resolved_at, shown, has_moved)

    def _named(self, key: bytes) -> tuple[str, int]:
        table = next(name for name in TABLES if key[:HEAD_BYTES] == self._span(name).lo[:HEAD_BYTES])
        (id,) = decode(key[HEAD_BYTES:])
        assert isinstance(id, int)
        return table, id

    # ── all that is there ──────────────────────────────────────────────────────────────────────

    def facts(self) -> Facts:
        revisions = [
            Revision(table, values["id"], at, None if is_deleted else Row(**values))
            for table in TABLES
            for values, at, is_deleted in self._scanned(table)
        ]
        landed = {values["n"]: at for values, at, _ in self._scanned(NOTED)}
        return Facts(landed, revisions, list(self._lives))

    def _scanned(self, table: str) -> Iterator[tuple[dict[str, Any], int, bool]]:
        """Every revision of a table, wherever it is."""
        snapshot = self._store.snapshot()
        version = version_of(self._tables[table].id, lambda id: self._catalog.get(snapshot, id))
        assert isinstance(version, TableVersion)
        names = {name_of(column.id): column.name for column in version.table.columns}
        span = self._span(table)
        for batch in scan.scanned(
            scan.tasks(self._place, version, snapshot.at, (span.lo, span.hi), revisions="all")
        ):
            for row in batch.to_pylist():
                assert row["odd"] is None
                yield {name: row[id] for id, name in names.items()}, row["at"], row["deleted"]
