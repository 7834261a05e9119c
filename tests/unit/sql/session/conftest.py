from collections.abc import Iterator

import pytest

from tenure.node import Node
from tests.unit.sql.talking import Speaker


@pytest.fixture(scope="module")
def tables(node: Node) -> None:
    speaker = Speaker(node)
    speaker.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)")
    speaker.run("CREATE TABLE numbered (id SERIAL PRIMARY KEY, a INT)")
    speaker.close()


@pytest.fixture
def one(node: Node, tables: None) -> Iterator[Speaker]:
    """A client, and five rows in `t`."""
    speaker = Speaker(node)
    speaker.run("DELETE FROM t")
    speaker.run("INSERT INTO t SELECT g, 0, 'b' FROM generate_series(1, 5) g")
    yield speaker
    speaker.close()


@pytest.fixture
def other(node: Node) -> Iterator[Speaker]:
    """Another client."""
    speaker = Speaker(node)
    yield speaker
    speaker.close()
