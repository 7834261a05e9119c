"""Locations as jobs keep them."""

from collections.abc import Iterator
from functools import partial

import pytest

from tenure.base.errors import CorruptData
from tenure.bulk.importing.records import ImportPayload, TableInput
from tenure.catalog.accounts.sealing import PREFIX, sealed, unsealed
from tenure.kv.records import pack
from tenure.storage.location_text import parse
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.stepping import SteppedEnv

SECRET = "s3://bucket/a.csv?AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY=canary"
JOB = 7


@pytest.fixture
def nodes() -> Iterator[list[SchemaNode]]:
    """Of two clusters."""
    env = SteppedEnv()
    engines = [SqliteEngine(MEMORY, env) for _ in range(2)]
    yield [Cluster(engine, env).add() for engine in engines]
    for engine in engines:
        engine.close()


@pytest.fixture
def node(nodes: list[SchemaNode]) -> SchemaNode:
    return nodes[0]


def _seal(node: SchemaNode, location: str) -> str:
    return node.transact(lambda txn: sealed(txn, node.store.keyspace, JOB, location))


def _open(node: SchemaNode, kept: str, *, job: int = JOB) -> str:
    return unsealed(node.store.snapshot(), node.store.keyspace, job, kept)


@pytest.mark.invariant("S24-jobs")
def test_what_was_sealed_says_nothing_until_it_is_opened(node: SchemaNode) -> None:
    kept = _seal(node, SECRET)
    assert kept.startswith(PREFIX) and "canary" not in kept
    assert _open(node, kept) == SECRET


@pytest.mark.parametrize(
    "location", ["", "data/*.csv", "file:///srv/a%20b.csv", "s3://bucket/a?AUTH=implicit"]
)
def test_a_location_comes_back_as_it_was(node: SchemaNode, location: str) -> None:
    assert _open(node, _seal(node, location)) == location


def test_a_location_without_keys_stays_readable(node: SchemaNode) -> None:
    assert _seal(node, "data/a.csv") == "data/a.csv"


def test_the_same_location_is_sealed_otherwise_each_time(node: SchemaNode) -> None:
    assert _seal(node, SECRET) != _seal(node, SECRET)


@pytest.mark.parametrize("place", [len(PREFIX), len(PREFIX) + 20, -8])
def test_what_was_changed_is_not_opened(node: SchemaNode, place: int) -> None:
    kept = _seal(node, SECRET)
    changed = kept[:place] + ("A" if kept[place] != "A" else "B") + kept[place:][1:]
    with pytest.raises(CorruptData, match="or was changed"):
        _open(node, changed)


@pytest.mark.parametrize("text", ["", "AAAA", "A", "not base64!", "é"])
def test_what_was_never_sealed_is_not_opened(node: SchemaNode, text: str) -> None:
    _seal(node, SECRET)
    with pytest.raises(CorruptData, match="or was changed"):
        _open(node, PREFIX + text)


def test_what_was_sealed_for_one_job_is_not_opened_in_another(node: SchemaNode) -> None:
    kept = _seal(node, SECRET)
    with pytest.raises(CorruptData, match="for another job"):
        _open(node, kept, job=JOB + 1)


def test_nothing_is_opened_without_the_clusters_secret(nodes: list[SchemaNode]) -> None:
    with pytest.raises(CorruptData):
        _open(nodes[1], _seal(nodes[0], SECRET))


def test_a_sealed_location_is_none_that_a_statement_could_name(node: SchemaNode) -> None:
    with pytest.raises(Exception, match="not supported"):
        parse(_seal(node, SECRET))


@pytest.mark.invariant("S24-jobs")
def test_all_locations_of_an_import_are_sealed(node: SchemaNode) -> None:
    payload = ImportPayload((TableInput(104, (1,), (SECRET, "a.csv"), "csv"),), rejects=SECRET)
    keyspace = node.store.keyspace
    kept = node.transact(lambda txn: payload.with_locations(partial(sealed, txn, keyspace, JOB)))
    assert b"canary" not in pack(kept) and kept.tables[0].locations[1] == "a.csv"
    assert kept.with_locations(partial(unsealed, node.store.snapshot(), keyspace, JOB)) == payload
