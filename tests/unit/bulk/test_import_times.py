"""Reads at the very times of commits: imports, writes and flushes, by DuckDB and row by row.

An import's rows have no time of their own in their files: they are visible from its commit on. A flush that
comes later takes them into new files, and rows that end then into past ones. So each time that something
began or ended is asked for, and the ticks just before and after it.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from tenure.base.timestamp import Timestamp
from tenure.bulk import flush
from tenure.bulk.lakes import Lake
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.keys import Span
from tenure.sql.duck.offload import Duck
from tenure.storage.engine import HEAD_BYTES
from tenure.table.lake import visible_files
from tenure.table.lake.manifests import File, Manifest
from tenure.table.lake.publishing import clean_some
from tenure.table.rows import Layouts
from tests.unit.bulk.imports import Importing
from tests.unit.sql.duck.asked_tables import AskedTable

ID, A = 1, 2
STEPS = 12
PATIENCE_STEPS = 600

Rows = dict[int, str]


@dataclass
class OfNode:
    """A node's lake as `AskedTable` wants it."""

    store: Any
    files: Any
    table: Table
    _layouts: Layouts


class History:
    """A table that is written, imported into, flushed and cleaned; and what it was from each commit on."""

    def __init__(self, t: Importing, duck: Duck, seed: int) -> None:
        self.t, self.rng, self.store = t, random.Random(seed), t.node.store
        assert t.node.lake is not None
        self.lake: Lake = t.node.lake
        ((id,),) = t.rows(f"SELECT '{t.name}.t'::regclass::oid::text")
        assert id is not None
        self.span: Span = self.store.keyspace.index_span(int(id), 1)
        table = self.lake.catalog.get(self.store.snapshot(), int(id))
        assert isinstance(table, Table)
        self.table = table
        of_node = OfNode(self.store, self.lake.files, table, Layouts(self.store.keyspace))
        self.asked = AskedTable(cast(Any, of_node), duck)
        self.now: Rows = {}
        self.seen: list[tuple[Timestamp, Rows, str]] = []
        self.next_id = 1

    def write(self) -> None:
        """Inserts, changes or deletes a row."""
        before_at = self.store.snapshot().at
        id = self.rng.choice([*self.now, self.next_id])
        if id not in self.now:
            self.t.done(f"INSERT INTO t VALUES ({id}, 'written {id}')")
            self.now[id], self.next_id = f"written {id}", self.next_id + 1
        elif self.rng.random() < 0.4:
            self.t.done(f"DELETE FROM t WHERE id = {id}")
            del self.now[id]
        else:
            value = f"changed {self.rng.random()}"
            self.t.done(f"UPDATE t SET a = '{value}' WHERE id = {id}")
            self.now[id] = value
        self._note(self.store.history(self.span, since_at=before_at).revisions[-1].at, "write")

    def take_in(self) -> None:
        """An import of rows that are new."""
        ids = range(self.next_id, self.next_id + 3)
        self.next_id += 3
        said = self.t.csv("".join(f"{id},imported {id}\n" for id in ids))
        assert not said.sqlstate, said
        self.now |= {id: f"imported {id}" for id in ids}
        manifest = self._manifest()
        assert manifest is not None
        self._note(manifest.flushed_at, "import")

    def flush(self) -> None:
        start = flush.start
        job = self.store.transact(
            lambda txn: start(txn, self.lake, self.table.id, 1, rows=1, name=self.table.name)
        )
        assert job is not None
        self._until(lambda: not self.t.node.jobs.is_open(self.store.snapshot(), job.id))
        self._until(self._is_base_known)

    def _is_base_known(self) -> bool:
        """Whether the node has heard of the newest manifest, so that reads begin with it."""
        base = self.lake.bases.of(self.span.lo[:HEAD_BYTES])
        return base is not None and base.manifest == self._manifest()

    def _manifest(self) -> Manifest | None:
        return self.lake.manifests.get(self.store.snapshot(), self.table.id, 1)

    def _until(self, holds: Callable[[], bool]) -> None:
        for _ in range(PATIENCE_STEPS):
            if holds():
                return
            self.store.env.sleep(0.05)
        raise AssertionError("it did not come to be")

    def clean(self) -> None:
        manifest = self._manifest()
        if manifest is not None:
            txn = self.store.begin()
            clean_some(txn, self.store.keyspace, manifest, manifest.flushed_at, limit=1 << 30)
            txn.commit()

    def _note(self, at: Timestamp, what: str) -> None:
        self.seen.append((at, dict(self.now), what))

    def check(self) -> int:
        """Asks at every edge; returns how often DuckDB answered."""
        answered, former = 0, cast(Rows, {})
        for at, now, what in self.seen:
            for tick, expected in ((at - 1, former), (at, now), (at + 1, now)):
                source = self.store.snapshot(tick)
                rows = sorted(repr(row) for row in expected.items())
                assert self.asked.by_rows(source, ID, A) == rows, (what, tick - at)
                found = self.asked.by_duck(source, ID, A)
                assert found is None or found == rows, (what, tick - at)
                answered += found is not None
            former = now
        return answered


@pytest.fixture
def t(importing: Importing) -> Importing:
    importing.done("CREATE TABLE t (id int8 PRIMARY KEY, a text)")
    return importing


@pytest.fixture
def duck(t: Importing) -> Iterator[Duck]:
    assert t.node.lake is not None
    duck = Duck(t.node.store, lake=t.node.lake.files)
    yield duck
    duck.close()


@pytest.mark.invariant("columnar-exact")
@pytest.mark.parametrize("seed", range(2))
def test_what_is_read_at_the_very_time_of_a_commit_is_what_it_made(
    t: Importing, duck: Duck, seed: int
) -> None:
    history = History(t, duck, seed)
    # In this order at least once: rows imported, flushed as they are, changed, and flushed again.
    for step in (history.write, history.take_in, history.flush, history.write, history.flush):
        step()
    ways = (history.write, history.write, history.write, history.take_in, history.flush, history.clean)
    for _ in range(STEPS):
        history.rng.choice(ways)()
    history.flush()
    answered = history.check()
    history.clean()
    assert history.check() >= answered > 0


def _published_later(
    manifest: Manifest, file: File, at: Timestamp, *, is_live: bool
) -> visible_files.Times | None:
    """Rows without a time of their own are there after the import's commit, and not yet at it."""
    return None if at >= manifest.flushed_at else visible_files.Times(at, file.published_at < at, not is_live)


def _files_later(manifest: Manifest, at: Timestamp) -> list[File]:
    """A file is looked at only after its first time."""
    past = [file for file in manifest.past if file.first_at < at < file.until]
    return [file for file in manifest.live if file.first_at < at] + past


@pytest.mark.parametrize(
    ("name", "wrong"), [("_times", _published_later), ("visible_files", _files_later)], ids=["rows", "files"]
)
def test_a_bound_that_is_off_by_one_tick_is_noticed(
    t: Importing, duck: Duck, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any
) -> None:
    history = History(t, duck, 0)
    history.take_in()
    history.flush()  # with nothing new: the import's file stays, and the base goes further than it
    assert history.check() > 0
    monkeypatch.setattr(visible_files, name, wrong)
    with pytest.raises(AssertionError, match="'import', 0"):
        history.check()
