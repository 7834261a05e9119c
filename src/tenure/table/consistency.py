"""The oracle: compares every index of a table with the entries that a naive scan of its rows yields.

    state         must contain
    public        exactly the entries of the rows
    write_only    the same once it has been filled; before, a part of them
    delete_only   a part of them
    no such index nothing, unless it was left as it was: then the garbage collector removes it

Walk: tests call it after every commit, and the check of a whole cluster does.
"""

from collections.abc import Collection, Iterator

from tenure.catalog.descriptors.definitions import ElementState
from tenure.expr.functions.function import Context
from tenure.storage.engine import HEAD_BYTES
from tenure.table.compiled_index import CompiledIndex
from tenure.table.packing import pack
from tenure.table.read import Source, rows
from tenure.table.rows import IndexEntry, Layout, Row, fits


def check_indexes(
    source: Source,
    layout: Layout,
    context: Context,
    *,
    filled: Collection[int] = (),
    left: Collection[int] = (),
) -> list[str]:
    """The differences, in words.

    `filled` are the write_only indexes whose backfill is over; `left` those that were dropped with all their
    entries, because they have files in the lake or their table was truncated.
    """
    stored = _by_index(source, layout)
    found = list(rows(source, layout))
    wrong = [
        f"{len(entries)} keys of index {id}, which does not exist"
        for id, entries in stored.items()
        if id not in layout.indexes and id not in left
    ]
    for index in layout.indexes.values():
        expected = _expected(layout, index, found, context)
        must_be_whole = index.is_public or (
            index.index.state is ElementState.WRITE_ONLY and index.id in filled
        )
        wrong += _differences(layout, index, expected, stored.get(index.id, {}), must_be_whole)
    return wrong


def _by_index(source: Source, layout: Layout) -> dict[int, dict[bytes, bytes]]:
    """The entries of each index, including those that the version does not know."""
    last = max([layout.table.next_index, *layout.indexes])
    spans = {index: layout.keyspace.index_span(layout.table.id, index) for index in range(1, last + 1)}
    stored = {index: dict(source.scan(span)) for index, span in spans.items()}
    return {index: rows for index, rows in stored.items() if rows}


def _expected(
    layout: Layout, index: CompiledIndex, found: list[Row], context: Context
) -> dict[bytes, list[tuple[IndexEntry, Row]]]:
    """By key: rows that are equal in an index whose uniqueness is not proved share one."""
    expected: dict[bytes, list[tuple[IndexEntry, Row]]] = {}
    for row in found:
        entry = layout.entry(index, row, context)
        if entry is not None and fits(entry):
            expected.setdefault(entry.key, []).append((entry, row))
    return expected


def _differences(
    layout: Layout,
    index: CompiledIndex,
    expected: dict[bytes, list[tuple[IndexEntry, Row]]],
    stored: dict[bytes, bytes],
    must_be_whole: bool,
) -> Iterator[str]:
    name = f'index "{index.name}" ({index.index.state.value})'
    for key, value in stored.items():
        claims = expected.get(key, [])
        if not claims:
            yield f"{name}: a stray entry {key[HEAD_BYTES:].hex()}"
        elif not any(_is_same(layout, index, value, entry, row) for entry, row in claims):
            yield f"{name}: the entry {key[HEAD_BYTES:].hex()} is not what its row says"
    if not must_be_whole:
        return
    for key, claims in expected.items():
        if key not in stored:
            yield f"{name}: no entry {key[HEAD_BYTES:].hex()}"
        if len(claims) > 1:
            yield f"{name}: {len(claims)} rows claim {key[HEAD_BYTES:].hex()}"


def _is_same(layout: Layout, index: CompiledIndex, stored: bytes, entry: IndexEntry, row: Row) -> bool:
    """A primary index is compared by its readable columns: values on their way out do not count."""
    if not index.is_primary:
        return stored == entry.value
    other = layout.row(index, entry.key, stored)
    return other.key == row.key and _packed(layout, other) == _packed(layout, row)


def _packed(layout: Layout, row: Row) -> bytes:
    """As bytes, because NaN is not equal to itself."""
    return pack([kept.type.pack(row.values[id]) for id, kept in layout.columns.items() if kept.is_written])
