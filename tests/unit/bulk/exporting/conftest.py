"""A node with a directory of files, and tables to export."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.bulk.exporting.exported_files import ROWS
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Talk


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exporting")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with lake_node(directory) as node:
        talk = Talk(node)
        for statement in (
            "CREATE TYPE mood AS ENUM ('sad', 'ok')",
            "CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(10, 2), m mood, tags text[], "
            "at timestamptz)",
            "INSERT INTO t SELECT g, CASE g % 3 WHEN 0 THEN NULL WHEN 1 THEN 'a,\"b' ELSE '' END, g * 1.5, "
            f"'ok', ARRAY['x', NULL], '2024-01-01 00:00:00.5+00' FROM generate_series(1, {ROWS}) g",
            'CREATE TABLE "f*/x" (a int)',
            'INSERT INTO "f*/x" VALUES (1)',
            "CREATE VIEW v AS SELECT id, name FROM t WHERE id < 3",
            "CREATE SCHEMA other",
            "CREATE TABLE other.u (id int PRIMARY KEY, word text)",
            "INSERT INTO other.u VALUES (1, 'one'), (2, 'two')",
            'CREATE TABLE empty (id int PRIMARY KEY, "no,name" text)',
            "CREATE USER plain",
        ):
            said = talk.say(statement)
            assert not said.sqlstate, said
        yield node


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    yield talk
    talk.close()
