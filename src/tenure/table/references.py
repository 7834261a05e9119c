"""Looks up referenced rows, many at a time.

    rows of a statement ── Lookup per foreign key ──► keys in the targets' unique indexes ──► read together
                                                                                               │
                              the first row that refers to nothing ◄── judged in their order ──┘

Each lookup is decided by the entry of the unique index alone: if it exists, its row does. A key that several
rows refer to is looked up once. Where the target has no usable index, rows are looked up one by one.

Walk: `table.foreign_keys` and `table.validate` make lookups by `Lookups.of` and go through `together`.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from tenure.base.errors import ForeignKeyViolation
from tenure.base.interruptible import Check, unchecked
from tenure.catalog.descriptors.definitions import ForeignKey
from tenure.kv.keys import KEY_BYTES_MAX
from tenure.kv.transaction import Transaction
from tenure.table.columns import key_text
from tenure.table.read import Source, exists, index_on
from tenure.table.rows import Layout, Row

LOOKUPS_AT_ONCE = 4_000
"""Lookups whose keys are read together: one call of the store, and little wasted if the first one fails."""


class Lookups:
    """The lookups of one foreign key, for the rows of one table."""

    def __init__(self, layout: Layout, foreign_key: ForeignKey, target: Layout) -> None:
        self.layout = layout
        self.foreign_key = foreign_key
        self.target = target
        index = index_on(target, foreign_key.target_columns)
        has_keys = index is not None and index.is_unique and len(index.parts) == len(foreign_key.columns)
        self._index = index if has_keys else None
        by_target = dict(zip(foreign_key.target_columns, foreign_key.columns, strict=True))
        self._columns = [] if index is None else [by_target[id] for id in index.columns if id in by_target]

    def of(self, row: Row) -> "Iterator[ReferenceLookup]":
        """The lookups of a row: none, if it refers to nothing."""
        values = row.values
        if any(values[id] is None for id in self.foreign_key.columns):
            return
        key = None if self._index is None else self._index.prefix([values[id] for id in self._columns])
        yield ReferenceLookup(self, row, key)


class ReferenceLookup(NamedTuple):
    of: Lookups
    row: Row
    key: bytes | None
    """The key of the required entry; None if no single key decides."""

    def error(self, source: Source) -> ForeignKeyViolation | None:
        """The error to raise if the referenced row does not exist."""
        return None if self._exists(source) else self._violation()

    def is_used(self, source: Source) -> bool:
        """Whether a row still refers to it."""
        columns = self.of.foreign_key.columns
        return exists(source, self.of.layout, columns, [self.row.values[id] for id in columns])

    def _exists(self, source: Source) -> bool:
        if self.key is not None:
            return source.get(self.key) is not None
        foreign_key = self.of.foreign_key
        values = [self.row.values[id] for id in foreign_key.columns]
        return exists(source, self.of.target, foreign_key.target_columns, values)

    def _violation(self) -> ForeignKeyViolation:
        layout, foreign_key = self.of.layout, self.of.foreign_key
        key = key_text(layout.columns, foreign_key.columns, self.row.values)
        return ForeignKeyViolation(
            f'insert or update on table "{layout.table.name}" violates '
            f'foreign key constraint "{foreign_key.name}"',
            detail=f'Key {key} is not present in table "{self.of.target.table.name}".',
            table=layout.table,
            constraint=foreign_key.name,
        )


def together(
    source: Source, lookups: Iterable[ReferenceLookup], check: Check = unchecked
) -> Iterator[ReferenceLookup]:
    """Yields lookups in their order, those of one key once, after their keys have been looked for together.

    Those whose rows are found are not yielded. `check` is called after each call of the store.
    """
    left = iter(lookups)
    while batch := list(islice(left, LOOKUPS_AT_ONCE)):
        distinct: dict[bytes | int, ReferenceLookup] = {}
        for number, lookup in enumerate(batch):
            distinct.setdefault(number if lookup.key is None else lookup.key, lookup)
        # A key that is too long for the store is left to its own lookup, so that its error comes in order.
        keys = [key for key in distinct if isinstance(key, bytes) and len(key) <= KEY_BYTES_MAX]
        if isinstance(source, Transaction):
            found = source.present(keys)
            check()
            yield from (lookup for key, lookup in distinct.items() if key not in found)
        else:
            source.read_ahead(keys)
            check()
            yield from distinct.values()
