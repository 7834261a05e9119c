"""SQLAlchemy and asyncpg: tables made when they are missing, and read back from the catalog."""

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
import sqlalchemy as sa

from tests.clients.catalogs.world import Side

ASPECTS = (
    *("get_columns", "get_pk_constraint", "get_foreign_keys", "get_indexes", "get_unique_constraints"),
    *("get_check_constraints", "get_table_comment", "get_table_options"),
)


@pytest.fixture(scope="module")
def engines(ours: Side, theirs: Side) -> Iterator[list[Any]]:
    engines = [sa.create_engine(side.url) for side in (ours, theirs)]
    yield engines
    for engine in engines:
        engine.dispose()


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("table", ["users", "pair", "sub", "Odd name"])
def test_reflection_of_a_table_is_postgresqls(engines: list[Any], table: str, aspect: str) -> None:
    ours, theirs = (repr(getattr(sa.inspect(engine), aspect)(table)) for engine in engines)
    assert ours == theirs


@pytest.mark.parametrize("aspect", ["get_schema_names", "get_view_names", "get_sequence_names", "get_enums"])
def test_lists_of_objects_are_postgresqls(engines: list[Any], aspect: str) -> None:
    ours, theirs = (sorted(getattr(sa.inspect(engine), aspect)(), key=repr) for engine in engines)
    assert ours == theirs


def test_tables_of_another_schema_are_reflected(engines: list[Any]) -> None:
    for engine in engines:
        metadata = sa.MetaData()
        metadata.reflect(engine, schema="app")
        assert sorted(metadata.tables) == ["app.orders", "users"]
        assert [key.target_fullname for key in metadata.tables["app.orders"].foreign_keys] == ["users.id"]


def test_create_all_makes_what_is_missing_and_nothing_twice(engines: list[Any]) -> None:
    metadata = sa.MetaData()
    sa.Table(
        "parent",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Enum("a", "b", name="kinds"), server_default="a"),
    )
    sa.Table(
        "child",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("parent_id", sa.ForeignKey("parent.id", ondelete="CASCADE"), index=True),
    )
    engine = engines[0]
    metadata.create_all(engine)
    metadata.create_all(engine)
    assert {"parent", "child"} <= set(sa.inspect(engine).get_table_names())
    metadata.drop_all(engine)
    metadata.drop_all(engine)
    assert not {"parent", "child"} & set(sa.inspect(engine).get_table_names())


def test_asyncpg_learns_of_enums_and_their_arrays(ours: Side) -> None:
    async def talk() -> None:
        connection = await asyncpg.connect(
            host=ours.host, port=ours.port, user=ours.user, database=ours.database, timeout=60
        )
        try:
            await connection.execute("CREATE TABLE moods (id int PRIMARY KEY, one mood, many mood[])")
            await connection.execute("INSERT INTO moods VALUES ($1, $2, $3)", 1, "ok", ["sad", "happy"])
            row = await connection.fetchrow("SELECT * FROM moods WHERE one = $1", "ok")
            assert tuple(row) == (1, "ok", ["sad", "happy"])
        finally:
            await connection.close()

    asyncio.run(talk())
