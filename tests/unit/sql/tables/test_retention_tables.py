"""Protections as SQL shows them: the three tables of the document, and SHOW PROTECTED TIMESTAMPS."""

from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from tenure.base.timestamp import to_text
from tenure.retention.protections.protection_records import JOB, Mode, Targets, job_meta
from tests.unit.sql.served import Served, serving


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("protections")) as node:
        node.root.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        node.root.execute("CREATE INDEX by_v ON t (v)")
        yield node


def test_protections_are_shown(served: Served) -> None:
    node = served.node
    ids = dict(served.rows("SELECT name, id FROM system.namespace WHERE name IN ('t', 'defaultdb')"))
    table, database = ids["t"], ids["defaultdb"]
    zones = "tenure_internal.zone_configurations"
    ((index,),) = served.rows(f"SELECT index_id FROM {zones} WHERE name LIKE '%by_v'")
    span = node.store.keyspace.index_span(table, index)
    at = node.store.snapshot().at

    def protect(mode: Mode, kind: str, meta: bytes, targets: Targets) -> UUID:
        owner = kind, meta
        id = node.store.transact(lambda txn: node.protections.protect(txn, at, mode, *owner, targets))
        return UUID(bytes=id)

    first = protect(Mode.AT, JOB, job_meta(77), Targets((database, table)))
    second = protect(Mode.AFTER, "snapshot", b"nightly", Targets((), (span,)))
    ts = Decimal(to_text(at))
    columns = "id, ts, mode, meta_type, meta, target"
    assert served.rows(f"SELECT {columns} FROM system.protected_ts_timestamps ORDER BY mode") == [
        (first, ts, 1, "job", b"77", [database, table]),
        (second, ts, 2, "snapshot", b"nightly", None),
    ]
    assert served.rows("SELECT * FROM system.protected_ts_spans") == [(second, *span)]
    ((exists, version, rows, spans, size, objects),) = served.rows("SELECT * FROM system.protected_ts_meta")
    assert (exists, version, rows, spans, objects) == (True, 2, 2, 1, 2)
    assert size > 0
    shown = served.root.execute("SHOW PROTECTED TIMESTAMPS")
    assert [each.name for each in shown.description or ()] == [
        *("id", "owner_kind", "owner", "job_id", "mode", "protected_at", "age", "expires", "targets"),
        "pinned_bytes",
    ]
    found = {row[0]: row for row in shown.fetchall()}
    assert found[first][1:5] == ("job", "77", 77, "at")
    assert found[second][1:5] == ("snapshot", "nightly", None, "after")
    assert found[first][8] == ["DATABASE defaultdb", "TABLE defaultdb.public.t"]
    assert found[second][8] == ["INDEX defaultdb.public.t@by_v"]
    assert found[first][6].total_seconds() >= 0

    served.tag("DROP TABLE t")
    targets = {row[0]: row[8] for row in served.rows("SHOW PROTECTED TIMESTAMPS")}
    assert targets[first] == ["DATABASE defaultdb", "TABLE defaultdb.public.t (dropped)"]
    assert targets[second] == [f"span of {table}/{index}"]


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW PROTECTED TIMESTAMPS",
        "SELECT * FROM system.protected_ts_timestamps",
        "SELECT * FROM system.protected_ts_spans",
        "SELECT * FROM system.protected_ts_meta",
        "SELECT * FROM system.zones",
    ],
)
def test_they_are_for_superusers(served: Served, statement: str) -> None:
    served.root.execute("CREATE USER clerk")
    with served.connect(user="clerk") as client, pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute(statement.encode())
