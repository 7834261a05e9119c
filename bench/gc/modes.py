"""The space that `protect_at` keeps of a long history, beside that of `protect_after` at the same time.

Each row has 1,000 revisions; the protected time is in the middle. After a sweep `protect_at` keeps two
revisions of a row, the one visible at its time and the newest; `protect_after` keeps all later ones, too.
Both are read at the protected time afterwards. Printed, without a bar.

Walk: `bench.__main__` -> `run` -> `ProtectionStore.protect`; RUN GC NOW.
"""

from bench.gc.places import GcNode, gc_node, wait_for
from bench.ratio import Bar, Ratio, compare
from bench.store.rounds import note
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.retention.protections.protection_records import Mode, Targets

ROWS, REVISIONS = 200, 1_000
ROWS_QUICK, REVISIONS_QUICK = 5, 40
LOAD_TTL, SWEEP_TTL = 14_400, 1
"""The ttl while history is written and protected, and then."""


def run(quick: bool) -> list[Ratio]:
    rows, revisions = (ROWS_QUICK, REVISIONS_QUICK) if quick else (ROWS, REVISIONS)
    with gc_node() as node:
        node.set_ttl(LOAD_TTL)
        tables = {mode: _written(node, mode, rows, revisions) for mode in Mode}
        node.set_ttl(SWEEP_TTL)
        wait_for(SWEEP_TTL)
        kept = {}
        for mode, (table, id, at) in tables.items():
            node.collect(table)
            kept[mode] = _kept_bytes(node, table, mode, rows, revisions)
            _check_read(node, table, id, at, revisions // 2 - 1)
    for mode, size in kept.items():
        note(f"gc.modes: protect_{mode.name.lower()} keeps {size / rows:,.0f} bytes a row")
    name = f"gc.modes.{revisions}_revisions"
    return [compare(name, ours=kept[Mode.AT], peer=kept[Mode.AFTER], unit="bytes", bar=Bar.NONE)]


def _written(node: GcNode, mode: Mode, rows: int, revisions: int) -> tuple[Table, bytes, Timestamp]:
    """A table, and its protection at the time when half of its history was written."""
    table = node.create(f"kept_{mode.name.lower()}")
    node.write(table, range(rows), range(revisions // 2))
    at = node.now_at()
    id = node.store.transact(
        lambda txn: node.node.protections.protect(txn, at, mode, "job", b"bench", Targets((table.id,)))
    )
    node.write(table, range(rows), range(revisions // 2, revisions))
    return table, id, at


def _kept_bytes(node: GcNode, table: Table, mode: Mode, rows: int, revisions: int) -> int:
    found = list(node.revisions(table))
    expected = 2 if mode is Mode.AT else revisions - revisions // 2 + 1
    assert len(found) == rows * expected, f"{mode} keeps {len(found)} revisions of {rows} rows"
    return sum(len(each.key) + len(each.value or b"") for each in found)


def _check_read(node: GcNode, table: Table, id: bytes, at: Timestamp, version: int) -> None:
    protections = node.node.protections
    protection = protections.read(node.store.snapshot(), id)
    name = protections.protected_read(protection) if protection.mode is Mode.AT else None
    layout = node.node.layouts.of(table)
    key = layout.key({1: 0})
    value = node.store.snapshot(at, name).get(key)
    assert value is not None and layout.row(layout.primary, key, value).values[2] == version
