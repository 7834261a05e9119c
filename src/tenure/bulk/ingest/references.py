"""Foreign keys of an import: checks that every referenced key exists.

    runs of the foreign key, each key once ──► a range per task ──► those not in the target's index,
                                                                    nor among this import's rows ──► error

The target is read as of a time at which the table is offline already. From then on nobody deletes a row that
the table's rows may refer to (see `catalog.changes.offline_tables`), so the result stays true until the
commit. The target's index is protected at that time: a check may take longer than its ttl.

Walk: `importing.first_pass` calls `references_of`, `importing.second_pass` `tasks_of`, whose tasks run
`check_references` as a kernel.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.errors import CorruptData, ForeignKeyViolation
from tenure.base.timestamp import Timestamp
from tenure.bulk.ingest.origins import origin_of, read_refused, where, without
from tenure.bulk.ingest.run_chunks import SortedReference, layout_of
from tenure.catalog.descriptors.definitions import ElementState, ForeignKey, Index, Table
from tenure.kv.encoding import decode
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.pipeline.merge_inputs import Origin
from tenure.pipeline.remote_handles import OpenHandles, StoreHandle, TableVersion, opened
from tenure.pipeline.runs import SortedRun, cuts, read_runs, rows_per_range, within
from tenure.pipeline.tasks import Attempt
from tenure.table.arrays import Bools, Keys
from tenure.table.columns import key_text
from tenure.table.foreign_keys import enforced
from tenure.table.key_arrays import KeyColumn, key_array
from tenure.table.key_order import bounds_within, plain
from tenure.table.lake.format import KEY, REST, name_of
from tenure.table.lake.manifests import File, Manifest
from tenure.table.rows import Layout

RANGE_KEYS, RANGE_BYTES = 1 << 19, 64 << 20
PAGE_KEYS = 10_000


class ReferenceTask(NamedTuple):
    place: StoreHandle
    version: TableVersion
    reference: SortedReference
    manifest: Manifest | None
    """Of the target's index; None: `own` is all that the target has."""
    at: Timestamp
    lo: bytes
    hi: bytes | None
    runs: tuple[SortedRun, ...]
    own: tuple[SortedRun, ...]
    """The import's own runs for the target's index."""
    names: str
    """The file with the names of the input's files, for an error."""
    refused: str
    """The file with rows to skip; empty: there are none."""
    bad_rows_max: int
    protection: bytes
    """The key of the record that keeps the target as of that time: see `kv.protected_reads`."""


class MissingKey(NamedTuple):
    """A referenced key that does not exist."""

    key: bytes
    said: str


class FindTask(NamedTuple):
    place: StoreHandle
    reference: SortedReference
    run: SortedRun
    """Of the referring table's rows."""
    missing: tuple[MissingKey, ...]
    refused: str
    bad_rows_max: int


def references_of(layout: Layout, tables: Mapping[int, Table]) -> tuple[SortedReference, ...]:
    """The foreign keys of a table that are to be checked; `tables` are their targets."""
    return tuple(_reference(layout, each, tables[each.target]) for each in enforced(layout))


def _reference(layout: Layout, constraint: ForeignKey, target: Table) -> SortedReference:
    columns = dict(zip(constraint.target_columns, constraint.columns, strict=True))
    for index in target.indexes:
        if _serves(index, target, set(columns)):
            parts = tuple(
                KeyColumn(columns[part.column], layout.columns[columns[part.column]].type, part.is_descending)
                for part in index.parts
            )
            return SortedReference(constraint, parts, target, index.id)
    raise CorruptData(f'foreign key "{constraint.name}" refers to columns that no unique index has')


def _serves(index: Index, target: Table, columns: set[int]) -> bool:
    is_unique = index.is_unique or index.primary == index.id
    is_whole = index.state is ElementState.PUBLIC and index.predicate is None
    return is_unique and is_whole and {part.column for part in index.parts} == columns


def tasks_of(
    place: StoreHandle,
    version: TableVersion,
    reference: SortedReference,
    manifest: Manifest | None,
    at: Timestamp,
    runs: Sequence[SortedRun],
    own: Sequence[SortedRun],
    names: str,
    refused: str,
    bad_rows_max: int,
    protection: bytes,
) -> list[ReferenceTask]:
    if not runs:
        return []
    between = cuts(runs, rows_per_range(runs, rows_max=RANGE_KEYS, bytes_max=RANGE_BYTES))
    bounds: list[bytes | None] = [b"", *between, None]
    tasks = []
    for lo, hi in pairwise(bounds):
        assert lo is not None
        met, brought = within(runs, lo, hi), within(own, lo, hi)
        tasks.append(
            ReferenceTask(
                *(place, version, reference, manifest, at, lo, hi, met, brought),
                *(names, refused, bad_rows_max, protection),
            )
        )
    return tasks


def check_references(task: ReferenceTask, attempt: Attempt) -> tuple[MissingKey, ...]:
    """The kernel: missing keys. Raises ForeignKeyViolation for the first if none is tolerated."""
    place = opened(task.place)
    referring = read_runs(place.lake, task.runs, task.lo, task.hi)
    if referring is None:
        return ()
    referring = referring.set_column(0, KEY, plain(referring.column(KEY)))
    is_there = pc.is_in(referring.column(KEY), value_set=_keys_there(place, task, referring))
    missing = referring.filter(pc.invert(is_there))
    if not len(missing):
        return ()
    layout = layout_of(place, task.version)
    if not task.bad_rows_max:
        raise _broken(layout, task, missing, where(place.lake, task.names, missing) if task.names else "")
    # Rows that refer to them may have been refused already: with so many keys, the others are too many.
    keys = pc.unique(missing.column(KEY)).to_pylist()[: 2 * task.bad_rows_max + 2]
    return tuple(
        MissingKey(key, f"{_message(layout, task)}: {_not_present(layout, task, key)}") for key in keys
    )


def find_referring(task: FindTask, attempt: Attempt) -> list[tuple[Origin, str]]:
    """The kernel: rows of a run that refer to a missing key; only as many as show that they are too many."""
    place = opened(task.place)
    rows = without(read_runs(place.lake, [task.run], b"", None), read_refused(place.lake, task.refused))
    parts = task.reference.parts
    columns = {part.column: rows.column(name_of(part.column)) for part in parts}
    keys = key_array(parts, columns, rows.column(REST))
    said = {each.key: each.said for each in task.missing}
    is_met = np.asarray(pc.is_in(keys, value_set=pa.array(list(said), pa.binary())))
    places = np.flatnonzero(is_met)[: task.bad_rows_max + 1].tolist()
    return [(origin_of(rows, at), said[keys[at].as_py()]) for at in places]


def _keys_there(place: OpenHandles, task: ReferenceTask, referring: Keys) -> Keys:
    """Keys of the target's index, at least those that are referred to."""
    there = [] if task.manifest is None else _in_target(place, task, task.manifest, referring)
    own = read_runs(place.lake, task.own, task.lo, task.hi)
    refused = read_refused(place.lake, task.refused)
    brought = [] if own is None else plain(without(own, refused).column(KEY)).chunks
    return pa.concat_arrays([pa.array([], pa.binary()), *there, *brought])


def _in_target(place: OpenHandles, task: ReferenceTask, manifest: Manifest, referring: Keys) -> list[Keys]:
    sought = pc.unique(referring.column(KEY))
    sought = sought.take(pc.array_sort_indices(sought))
    based = [_in_file(place, file, sought) for file in manifest.live if _meets(file, task)]
    written, removed = _in_store(place, task, manifest)
    return [
        *(each.filter(pc.invert(pc.is_in(each, value_set=removed))) for each in based if len(each)),
        written,
    ]


def _meets(file: File, task: ReferenceTask) -> bool:
    return file.last >= task.lo and (task.hi is None or file.first < task.hi)


def _in_file(place: OpenHandles, file: File, sought: Keys) -> Keys:
    """The keys of a file, from the groups that may have one of those searched for."""
    footer = place.checked.footer(file)
    ends = [*footer.firsts[1:], file.last + b"\0"]
    groups = [
        number
        for number, (first, end) in enumerate(zip(footer.firsts, ends, strict=True))
        if bounds_within(sought, first, end)[1]
    ]
    if not groups:
        return pa.array([], pa.binary())
    return place.checked.read_groups(file, groups, [KEY]).column(KEY).combine_chunks()


def _in_store(place: OpenHandles, task: ReferenceTask, manifest: Manifest) -> tuple[Keys, Bools]:
    """Keys that the delta has added, and those that it has removed."""
    keyspace = place.store.keyspace
    head = keyspace.head(manifest.table, manifest.index)
    hi = keyspace.head_span(head).hi if task.hi is None else head + task.hi
    newest: dict[bytes, bool] = {}
    protected = ProtectedRead(task.at, task.protection, lambda head: True)
    snapshot = place.store.snapshot(task.at, protected)
    span = Span(head + task.lo, hi)
    for page in snapshot.stored(span, PAGE_KEYS, since_at=manifest.flushed_at):
        newest.update((revision.key[len(head) :], revision.value is not None) for revision in page)
    written = [key for key, is_there in newest.items() if is_there]
    removed = [key for key, is_there in newest.items() if not is_there]
    return pa.array(written, pa.binary()), pa.array(removed, pa.binary())


def _broken(layout: Layout, task: ReferenceTask, missing: Keys, place: str) -> ForeignKeyViolation:
    key = missing.column(KEY)[0].as_py()
    return ForeignKeyViolation(
        _message(layout, task),
        detail=_not_present(layout, task, key) + (f" It is in {place}." if place else ""),
        table=layout.table,
        constraint=task.reference.constraint.name,
    )


def _message(layout: Layout, task: ReferenceTask) -> str:
    name = task.reference.constraint.name
    return f'insert or update on table "{layout.table.name}" violates foreign key constraint "{name}"'


def _not_present(layout: Layout, task: ReferenceTask, key: bytes) -> str:
    constraint, parts = task.reference.constraint, task.reference.parts
    values = {
        part.column: layout.columns[part.column].from_key(element)
        for part, element in zip(parts, decode(key), strict=False)
    }
    shown = key_text(layout.columns, constraint.columns, values)
    return f'Key {shown} is not present in table "{task.reference.target.name}".'
