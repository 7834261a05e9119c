"""Feeds that a test steps by hand, and tables rebuilt from what they emit."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

from tenure.base.timestamp import Timestamp, parse, to_text
from tenure.bulk import flush
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.descriptors.definitions import DescriptorState, Table
from tenure.changefeed.feed import Feed
from tenure.changefeed.messages import Message
from tenure.changefeed.options import FeedOptions, read_options
from tenure.changefeed.records import FeedPosition, FeedScope, FeedTable
from tenure.changefeed.schema_feed import version_in_force
from tenure.changefeed.scope import tables_under
from tenure.changefeed.sinks.sink import Sink
from tenure.changefeed.table_events import shown_columns
from tenure.changefeed.table_stream import FeedSources, first_position
from tenure.changefeed.tail import Tail
from tenure.kv.records import replace
from tenure.node import Node
from tests.unit.sql.sessions import Said, Talk

_numbers = count(1)

PATIENCE_STEPS = 100


class ListSink:
    """A sink in memory, which keeps what was committed when a feed is given up."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.committed: list[FeedPosition] = []

    def resume(self, position: FeedPosition) -> FeedPosition:
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        self.messages += messages
        return sum(len(each.value or "") for each in messages)

    def commit(self, position: FeedPosition) -> FeedPosition:
        position = replace(position, batch=position.batch + 1)
        self.committed.append(position)
        return position

    def close(self) -> None:
        pass


class Rebuilt:
    """A table as the messages of a feed describe it: the newest of each key counts."""

    def __init__(self) -> None:
        self._changes: list[tuple[Timestamp, str, Any]] = []
        self.resolved_at = 0

    def take(self, value: dict[str, Any]) -> None:
        if "ddl" in value:
            return
        key, at = json.dumps(value["key"]), parse(value["updated"])
        self._changes.append((at, key, value["after"]))

    def resolve(self, at: Timestamp) -> None:
        assert at >= self.resolved_at, "resolved goes back"
        self.resolved_at = at

    def at(self, at: Timestamp) -> dict[str, tuple[Timestamp, Any]]:
        """The rows by key, each with the time of its message."""
        rows: dict[str, tuple[Timestamp, Any]] = {}
        # Stable: of one timestamp, what came last counts.
        for then, key, row in sorted((each for each in self._changes if each[0] <= at), key=itemgetter(0)):
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = then, row
        return rows


class Feeding:
    """A session in a schema of its own, and feeds of its tables."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.schema = f"f{next(_numbers)}"
        self.talk = Talk(node)
        self.tail = Tail(node.store)
        self.done(f"CREATE SCHEMA {self.schema}")
        self.done(f"SET search_path = {self.schema}")

    def session(self) -> Talk:
        talk = Talk(self.node)
        talk.say(f"SET search_path = {self.schema}")
        return talk

    def done(self, text: str) -> Said:
        said = self.talk.say(text)
        assert not said.sqlstate, (text, said)
        return said

    def rows(self, text: str) -> list[tuple[str | None, ...]]:
        return list(self.done(text).rows)

    def now(self) -> Timestamp:
        return self.node.store.snapshot().at

    def table(self, name: str) -> Table:
        (((id,),)) = self.rows(f"SELECT '{self.schema}.{name}'::regclass::oid")
        found = self.node.catalog.get(self.node.store.snapshot(), int(id or 0))
        assert isinstance(found, Table)
        return found

    def sources(self) -> FeedSources:
        lake = self.node.lake
        files = None if lake is None else lake.bases.checked
        return FeedSources(self.node.store, self.node.catalog, files, self.tail)

    def options(self, **given: str | None) -> FeedOptions:
        values = {"updated": None, "key_in_value": None, **given}
        return read_options(values, parse)

    @contextmanager
    def feed(self, *names: str, **given: str | None) -> Iterator["SteppedFeed"]:
        stepped = SteppedFeed(self, names or ("t",), self.options(**given))
        try:
            yield stepped
        finally:
            stepped.feed.close()

    def file(self, name: str, text: str) -> None:
        """Writes a file that statements can name."""
        directory = self.node.locations.files_directory
        assert directory is not None
        (Path(directory) / name).write_text(text)

    def flush(self, name: str = "t") -> None:
        """Moves the rows of a table to the lake, all of them, and removes them from the store."""
        table, lake, store = self.table(name), self.node.lake, self.node.store
        assert lake is not None
        job = store.transact(lambda txn: flush.start(txn, lake, table.id, table.primary, rows=1, name=name))
        assert job is not None
        self.done(f"SHOW JOB WHEN COMPLETE {job.id}")
        self.done("SET CLUSTER SETTING lake.clean_after = '0s'")
        mark = store.keyspace.cleaned_key(store.keyspace.head(table.id, table.primary))
        for _ in range(PATIENCE_STEPS):
            if store.snapshot().get(mark) is not None:
                break
            Upkeep(lake, self.node.locations).step()
            store.env.sleep(0.01)  # until the node has heard of the new base
        self.done("RESET CLUSTER SETTING lake.clean_after")

    def is_offline(self, name: str, at: Timestamp) -> bool:
        """Whether a table was being imported into at a time."""
        then = self.node.catalog.get(self.node.store.snapshot(at), self.table(name).id)
        return then is not None and then.state is DescriptorState.OFFLINE

    def stored(self, name: str, at: Timestamp) -> tuple[list[list[str]], tuple[str, ...]]:
        """A table's rows as SQL shows them at a time, sorted, and its columns."""
        said = self.done(f"SELECT * FROM {name} AS OF SYSTEM TIME '{to_text(at)}'")
        return sorted([_text(value) for value in row] for row in said.rows), said.columns

    def compare(self, name: str, rebuilt: Rebuilt, at: Timestamp) -> None:
        """A rebuilt table is that of SQL."""
        theirs, columns = self.stored(name, at)
        id, ours = self.table(name).id, []
        ids = self._column_ids(id, at)
        for then, row in rebuilt.at(at).values():
            # A column that was renamed since has another name in the message; one that came without a
            # value is not in older messages.
            values = {id: row[name] for name, id in self._column_ids(id, then).items()}
            ours.append([_text(values.get(ids[each])) for each in columns])
        assert sorted(ours) == theirs, (name, to_text(at))

    def _column_ids(self, table: int, at: Timestamp) -> dict[str, int]:
        version = version_in_force(self.node.store, self.node.catalog, table, at)
        return {each.name: each.id for each in shown_columns(version.table)}


class SteppedFeed:
    def __init__(
        self,
        feeding: Feeding,
        names: Sequence[str],
        options: FeedOptions,
        position: FeedPosition | None = None,
        scope: FeedScope | None = None,
    ) -> None:
        self.feeding = feeding
        self.options = options
        self.scope = scope
        self.tables = tuple(FeedTable(feeding.table(each).id, each) for each in names)
        if position is None:
            now_at = feeding.now()
            position = FeedPosition(tuple(first_position(each.id, options, now_at) for each in self.tables))
        self.sink = ListSink()
        self._taken = 0
        """How many of the messages were returned."""
        self.rebuilt = {name: Rebuilt() for name in names}
        self.feed = self._feed(position)

    @classmethod
    def of_schema(cls, feeding: Feeding) -> "SteppedFeed":
        """A feed of the session's whole schema."""
        catalog, now = feeding.node.catalog, feeding.node.store.snapshot()
        entry = catalog.schema_entry(now, feeding.table("t").database, feeding.schema)
        assert entry is not None
        scope, options = FeedScope(entry.id, feeding.schema), feeding.options()
        names = [each.name for each in tables_under(catalog, now, scope)]
        tables = tuple(first_position(feeding.table(each).id, options, now.at) for each in names)
        return cls(feeding, names, options, FeedPosition(tables, scope_at=now.at), scope)

    def _feed(self, position: FeedPosition, sink: Sink | None = None) -> Feed:
        self.position = position
        return Feed(
            *(self.feeding.sources(), self.tables, self.options, position, sink or self.sink),
            scope=self.scope,
        )

    def restart(self, sink: Sink | None = None) -> None:
        """Another run goes on from the position of this one; with another sink from the one that is saved."""
        position = self.feed.position if sink is None else self.position
        self.feed.close()
        self.feed = self._feed(position, sink)

    def catch_up(self, *, restarts: bool = False) -> list[dict[str, Any]]:
        """Steps until all that is committed by now was emitted; returns the values of the messages."""
        until_at = self.feeding.now()
        taken = self._taken
        while self.feed.position.resolved_at < until_at and not self.feed.is_done:
            self.feed.step()
            if restarts:
                self.restart()
        for message in self.sink.messages[taken:]:
            self.rebuilt.setdefault(message.topic, Rebuilt()).take(json.loads(message.value or "null"))
        self._taken = len(self.sink.messages)
        return [json.loads(each.value or "null") for each in self.sink.messages[taken:]]

    def compare(self) -> None:
        """The rebuilt tables are those of SQL, at the resolved timestamp."""
        at = self.feed.position.resolved_at
        for name, rebuilt in self.rebuilt.items():
            rebuilt.resolve(at)
            self.feeding.compare(name, rebuilt, at)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def after(values: Sequence[dict[str, Any]]) -> list[Any]:
    return [each["after"] for each in values]


def files_of(directory: Path) -> Iterator[dict[str, Any]]:
    """The manifests of a file sink, in order."""
    for path in sorted(directory.glob("*.json")):
        yield json.loads(path.read_text())
