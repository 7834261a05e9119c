from collections.abc import Iterator

import pytest

from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.stepping import SteppedEnv


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    env = SteppedEnv()
    engine = SqliteEngine(MEMORY, env)
    yield Cluster(engine, env)
    engine.close()


@pytest.fixture
def node(cluster: Cluster) -> SchemaNode:
    return cluster.add()


@pytest.fixture
def other(cluster: Cluster, node: SchemaNode) -> SchemaNode:
    return cluster.add()
