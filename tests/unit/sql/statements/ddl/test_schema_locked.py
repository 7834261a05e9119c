"""ALTER TABLE ... SET (schema_locked): DDL and DML go on as ever, alone and beside another node."""

from collections.abc import Iterator
from itertools import count
from operator import attrgetter

import pytest

from tenure.catalog.descriptors.definitions import Table
from tenure.node import Node
from tests.unit.schema_change.locking import broken_locks, versions
from tests.unit.sql.sessions import Said, Talk, running

_numbers = count(1)


@pytest.fixture(scope="module", params=["alone", "with another"])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory = tmp_path_factory.mktemp("locked")
    with running(directory) as node:
        if request.param == "alone":
            yield node
        else:
            with running(directory):
                yield node


@pytest.fixture
def talk(nodes: Node) -> Iterator[Talk]:
    """A session in a schema of its own, which has a locked table."""
    talk, schema = Talk(nodes), f"s{next(_numbers)}"
    for line in (
        f"CREATE SCHEMA {schema}",
        f"SET search_path = {schema}",
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE TABLE t (id int PRIMARY KEY, m mood)",
        "INSERT INTO t VALUES (1, 'sad'), (2, 'sad')",
        "ALTER TABLE t SET (schema_locked = true)",
    ):
        done(talk, line)
    until_locked(nodes)
    yield talk
    talk.close()


def done(talk: Talk, text: str) -> Said:
    said = talk.say(text)
    assert not said.sqlstate, (text, said)
    return said


def stored(node: Node, name: str = "t") -> Table:
    """The newest table of a name."""
    listed = node.catalog.list(node.store.snapshot())
    return max((each for each in listed if isinstance(each, Table) and each.name == name), key=by_id)


by_id = attrgetter("id")


def until_locked(node: Node, name: str = "t") -> Table:
    while not stored(node, name).is_locked:
        node.locks.step()
    return stored(node, name)


STATEMENTS = [
    "ALTER TABLE t ADD COLUMN c int DEFAULT 5",
    "ALTER TABLE t ALTER COLUMN m SET DEFAULT 'sad'",
    "ALTER TABLE t ADD COLUMN s serial",
    "CREATE INDEX ON t (m)",
    "CREATE UNIQUE INDEX ON t (id, m)",
    "ALTER TABLE t ALTER COLUMN id TYPE int8",
    "ALTER TYPE mood ADD VALUE 'glad'",
    "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
    "TRUNCATE t",
    "ALTER TABLE t RENAME COLUMN m TO n",
    "BEGIN; INSERT INTO t VALUES (3, 'sad'); ALTER TABLE t ADD COLUMN c int; UPDATE t SET c = 1; COMMIT",
    "BEGIN; ALTER TABLE t ADD COLUMN c int; SAVEPOINT s; DROP TABLE t; ROLLBACK TO s; COMMIT",
    "BEGIN; ALTER TABLE t SET (schema_locked = false); ALTER TABLE t SET (schema_locked = true);"
    " ALTER TABLE t ADD COLUMN c int; COMMIT",
]


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("script", STATEMENTS)
def test_ddl_on_a_locked_table_runs_unchanged_and_the_lock_comes_back(
    nodes: Node, talk: Talk, script: str, request: pytest.FixtureRequest
) -> None:
    for line in script.split(";"):
        done(talk, line.strip())
    until_locked(nodes)
    is_alone = request.node.callspec.params["nodes"] == "alone"
    assert broken_locks(versions(nodes, stored(nodes).id), alone=is_alone) == []
    done(talk, "SELECT * FROM t")


def test_a_block_that_is_rolled_back_writes_nothing(nodes: Node, talk: Talk) -> None:
    before = stored(nodes)
    assert before.is_locked
    for line in ("BEGIN", "ALTER TABLE t ADD COLUMN c int", "INSERT INTO t VALUES (9, 'sad', 1)", "ROLLBACK"):
        done(talk, line)
    assert stored(nodes) == before


def test_grants_owners_and_comments_unlock_nothing(nodes: Node, talk: Talk) -> None:
    number = stored(nodes).id
    for line in (
        f"CREATE ROLE r{number}",
        f"GRANT SELECT ON t TO r{number}",
        f"ALTER TABLE t OWNER TO r{number}",
        "COMMENT ON TABLE t IS 'mine'",
        "COMMENT ON COLUMN t.m IS 'mood'",
        "CREATE VIEW v AS SELECT id FROM t",
        "CREATE TABLE r (id int REFERENCES t)",
        "CREATE TABLE o (m mood)",
    ):
        done(talk, line)
        assert stored(nodes).is_locked, line


def test_the_lock_is_taken_away_by_hand(nodes: Node, talk: Talk) -> None:
    for line in ("ALTER TABLE t SET (schema_locked = off)", "ALTER TABLE t RESET (schema_locked)"):
        done(talk, line)
        nodes.locks.step()
        assert not stored(nodes).is_locked


def test_what_a_dropped_table_comes_back_with(nodes: Node, talk: Talk) -> None:
    done(talk, "DROP TABLE t")
    done(talk, "UNDROP TABLE t")
    until_locked(nodes)
    assert done(talk, "SELECT count(*) FROM t").rows == (("2",),)


def test_a_database_of_locked_tables_becomes_a_schema(nodes: Node, talk: Talk) -> None:
    number = stored(nodes).id
    done(talk, f"CREATE DATABASE d{number}")
    done(talk, f"CREATE TABLE d{number}.public.x (id int PRIMARY KEY)")
    done(talk, f"ALTER TABLE d{number}.public.x SET (schema_locked)")
    until_locked(nodes, "x")
    done(talk, f"ALTER DATABASE d{number} CONVERT TO SCHEMA WITH PARENT defaultdb")
    until_locked(nodes, "x")
    done(talk, f"SELECT * FROM defaultdb.d{number}.x")


def test_a_value_that_is_no_truth_is_refused(talk: Talk) -> None:
    assert talk.say("ALTER TABLE t SET (schema_locked = maybe)").sqlstate == "22023"


def test_temporary_tables_cannot_be_locked(talk: Talk) -> None:
    done(talk, "CREATE TEMP TABLE tmp (id int)")
    assert talk.say("ALTER TABLE tmp SET (schema_locked = true)").sqlstate == "0A000"


def test_the_catalog_shows_numbers_and_lock(nodes: Node, talk: Talk) -> None:
    nodes.leases.renew()
    query = "SELECT version > logical, logical = row, is_locked FROM tenure_internal.descriptor_cache"
    assert done(talk, f"{query} WHERE id = {stored(nodes).id}").rows == (("t", "t", "t"),)
