"""asyncpg: it connects, and what it has prepared outlives an online change of a table.

It keeps statements by their text. Where columns have come, it has to be told by the routine of the error that
it must prepare again; outside of a transaction it then does so by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests.clients.conftest import Cluster

ALL, ONE = "SELECT * FROM grown ORDER BY id", "SELECT * FROM grown WHERE id = $1"
BEFORE, AFTER = [(1, "a")], [(1, "a", 7)]

Visit = Callable[[Any], Awaitable[None]]


def visit(cluster: Cluster, talk: Visit) -> None:
    """With a connection to a node that is not the one that changes the table."""

    async def run() -> None:
        front = cluster.nodes[1].front
        assert front is not None
        connection = await asyncpg.connect(
            host=front.host, port=front.port, user="root", database="defaultdb", timeout=60
        )
        try:
            await talk(connection)
        finally:
            await connection.close()

    cluster.run(
        "DROP TABLE IF EXISTS grown",
        "CREATE TABLE grown (id int PRIMARY KEY, a text)",
        "INSERT INTO grown VALUES (1, 'a')",
    )
    asyncio.run(run())


def add_column(cluster: Cluster) -> None:
    cluster.run("ALTER TABLE grown ADD COLUMN b int DEFAULT 7")


def rows(records: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in records]


def test_statements_that_it_keeps_outlive_an_added_column(cluster: Cluster) -> None:
    async def talk(connection: Any) -> None:
        assert rows(await connection.fetch(ALL)) == BEFORE
        assert rows(await connection.fetch(ONE, 1)) == BEFORE
        await asyncio.to_thread(add_column, cluster)
        assert rows(await connection.fetch(ALL)) == AFTER
        assert rows(await connection.fetch(ONE, 1)) == AFTER

    visit(cluster, talk)


def test_in_a_transaction_it_is_told_once_and_may_begin_again(cluster: Cluster) -> None:
    async def talk(connection: Any) -> None:
        assert rows(await connection.fetch(ONE, 1)) == BEFORE
        await asyncio.to_thread(add_column, cluster)
        with pytest.raises(asyncpg.InvalidCachedStatementError):
            async with connection.transaction():
                await connection.fetch(ONE, 1)
        async with connection.transaction():
            assert rows(await connection.fetch(ONE, 1)) == AFTER

    visit(cluster, talk)


def test_in_a_nested_transaction_the_outer_one_goes_on(cluster: Cluster) -> None:
    async def talk(connection: Any) -> None:
        assert rows(await connection.fetch(ONE, 1)) == BEFORE
        await asyncio.to_thread(add_column, cluster)
        async with connection.transaction():
            with pytest.raises(asyncpg.InvalidCachedStatementError):
                async with connection.transaction():
                    await connection.fetch(ONE, 1)
            assert rows(await connection.fetch(ONE, 1)) == AFTER

    visit(cluster, talk)


def test_cursors_copies_and_pools_work(cluster: Cluster) -> None:
    async def talk(connection: Any) -> None:
        await connection.copy_records_to_table("grown", records=[(id, "x") for id in range(2, 50)])
        async with connection.transaction():
            seen = [each["id"] async for each in connection.cursor(ALL, prefetch=7)]
        assert seen == list(range(1, 50))
        await connection.reset()
        assert await connection.fetchval("SELECT count(*) FROM grown") == 49

    visit(cluster, talk)
