"""What a schema change costs: one stage across three nodes, and durable commits on a single node.

    one stage across 3 nodes: publish, all renew, the old version is gone    median at most 100 ms
    CREATE TABLE, CREATE SCHEMA, CREATE INDEX on an empty table              1 durable commit
    ADD COLUMN with a constant default                                       at most 3

Commits are counted at the engine until the statement answers: those of its own thread, so that a
heartbeat, or the tidying up after the statement before, is not taken for one of them.

Walk: `bench.__main__` -> `run`.
"""

import statistics
import threading
import time
from collections.abc import Callable, Sequence

from bench.leases.places import nodes, table
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.errors import RetryError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    Column,
    Database,
    DescriptorState,
    ElementState,
    Index,
    KeyPart,
    Schema,
    Table,
    TypeRef,
    replace,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.node import Node
from tenure.storage.engine import Group, Outcome

STAGES, STAGES_QUICK = 40, 3
STAGE_SECONDS = 0.1
ATTEMPTS = 20
IDLE_SECONDS = 0.5
"""Until a node has tidied up after the last statement."""


def run(quick: bool) -> list[Ratio]:
    return [_stage(STAGES_QUICK if quick else STAGES), *_commits()]


def _stage(times: int) -> Ratio:
    with nodes(3) as members:
        first = members[0]
        made = _create_table(first)
        took = [_publish(first, members, made) for _ in range(times)]
    median = statistics.median(took)
    note(f"leases.stage: 3 nodes, median {median * 1e3:.1f} ms, worst {max(took) * 1e3:.1f} ms")
    return compare("leases.stage", ours=median, peer=STAGE_SECONDS, unit="s", bar=Bar.AT_MOST, limit=1.0)


def _publish(node: Node, members: Sequence[Node], id: int) -> float:
    """Writes a version, and waits until no node uses the one before it."""
    began = time.perf_counter()
    settled = node.publisher.settle([id], LeaseWaiter(node.store.clock.now()))

    def publish(txn: object) -> None:
        stored = node.catalog.get(txn, id)  # type: ignore[arg-type]
        assert stored is not None
        node.publisher.publish(txn, [stored], settled)  # type: ignore[arg-type]

    node.store.transact(publish)
    node.publisher.settle([id], LeaseWaiter(node.store.clock.now()))
    took = time.perf_counter() - began
    versions = {_version(member, id) for member in members}
    assert len(versions) == 1, f"nodes use different versions: {versions}"
    return took


def _version(node: Node, id: int) -> int:
    use = node.leases.bind(node.store.begin())
    found = use.descriptor(id)
    use.close()
    assert found is not None
    return found.version


def _commits() -> list[Ratio]:
    with nodes(1) as (node,):
        counted = {
            "create_table": _count(node, lambda use: _declare_table(node, use, "counted")),
            "create_schema": _count(node, lambda use: _declare_schema(node, use)),
            "create_index": _count(node, lambda use: _declare_index(node, use)),
            "add_column": _count(node, lambda use: _declare_column(node, use)),
        }
    limits = {"add_column": 3.0}
    note("leases.commits on one node: " + ", ".join(f"{name} {n}" for name, n in counted.items()))
    return [
        compare(
            f"leases.commits.{name}",
            ours=commits,
            peer=limits.get(name, 1.0),
            unit="commits",
            bar=Bar.AT_MOST,
            limit=1.0,
        )
        for name, commits in counted.items()
    ]


def _count(node: Node, declare: Callable[[CatalogUse], None]) -> int:
    """The engine's commits from the statement's start to its answer."""
    time.sleep(IDLE_SECONDS)
    engine = node.store.engine
    commit = engine.commit
    commits = 0
    own = threading.get_ident()

    def counting(group: Group) -> list[Outcome]:
        nonlocal commits
        commits += threading.get_ident() == own
        return commit(group)

    engine.commit = counting  # type: ignore[method-assign]
    try:
        _statement(node, declare)
        assert commits > 0, "the change was committed by somebody else"
        return commits
    finally:
        engine.commit = commit  # type: ignore[method-assign]


def _statement(node: Node, declare: Callable[[CatalogUse], None]) -> None:
    for _ in range(ATTEMPTS):
        use = node.leases.bind(node.store.begin())
        try:
            declare(use)
            node.changer.commit(use)
            return
        except RetryError:
            time.sleep(0.01)
        finally:
            use.close()
    raise AssertionError("a schema change never got through")


def _create_table(node: Node) -> int:
    _statement(node, lambda use: _declare_table(node, use, "staged"))
    return _id_of(node, "staged")


def _id_of(node: Node, name: str) -> int:
    names = node.catalog.names_in(node.store.snapshot(), DEFAULT_DATABASE, DEFAULT_SCHEMA)
    return next(entry.id for entry in names if entry.name == name)


def _declare_table(node: Node, use: CatalogUse, name: str) -> None:
    id = node.catalog.fresh_id(use.txn)
    use.draft.create(table(id, name, DEFAULT_DATABASE, DEFAULT_SCHEMA))


def _declare_schema(node: Node, use: CatalogUse) -> None:
    id = node.catalog.fresh_id(use.txn)
    database = use.descriptor(DEFAULT_DATABASE)
    assert isinstance(database, Database)
    use.draft.create(Schema(id, 0, ZERO_AT, "app", ROOT, DescriptorState.PUBLIC, (), (), DEFAULT_DATABASE))
    use.draft.touch(database)


def _declare_index(node: Node, use: CatalogUse) -> None:
    found = _counted(node, use)
    index = Index(found.next_index, "later", (KeyPart(3),), state=ElementState.DELETE_ONLY, primary=1)
    changed = replace(found, indexes=(*found.indexes, index), next_index=found.next_index + 1)
    use.draft.declare(changed, made_from=found.version)


def _declare_column(node: Node, use: CatalogUse) -> None:
    found = _counted(node, use)
    column = Column(found.next_column, "later", TypeRef("int8"), ElementState.DELETE_ONLY)
    changed = replace(found, columns=(*found.columns, column), next_column=found.next_column + 1)
    use.draft.declare(changed, made_from=found.version)


def _counted(node: Node, use: CatalogUse) -> Table:
    found = use.descriptor(_id_of(node, "counted"))
    assert isinstance(found, Table)
    return found
