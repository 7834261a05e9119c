"""An index compiled from its descriptor: the columns of its keys, their order, and how a key is made.

Walk: `table.rows.Layout` compiles each index of a table version; readers, writers and merges use it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import ElementState, Index
from tenure.expr.types.datatype import Datum
from tenure.kv.column_encoding import encode_each
from tenure.kv.encoding import encode, prefix_end
from tenure.kv.keys import Span
from tenure.table.columns import Compile, CompiledColumn, Values


class ScanBound(NamedTuple):
    """Where a scan starts or ends, in the order of the index."""

    values: tuple[Datum, ...]
    is_inclusive: bool = True


class CompiledIndex:
    """An index as keys: its columns, their order, and its span."""

    __slots__ = (
        "_elements",
        "columns",
        "head",
        "id",
        "in_key",
        "index",
        "is_primary",
        "is_public",
        "is_unique",
        "is_written",
        "name",
        "parts",
        "predicate",
        "primary",
    )

    def __init__(
        self, index: Index, columns: Mapping[int, CompiledColumn], head: bytes, compiled: Compile
    ) -> None:
        self.index = index
        self.id = index.id
        self.name = index.name
        self.head = head
        self.primary = index.primary
        self.is_primary = index.primary == index.id
        self.is_unique = index.is_unique or self.is_primary
        self.is_public = index.state is ElementState.PUBLIC and not index.is_unread
        self.is_written = index.state is not ElementState.DELETE_ONLY
        self.parts = tuple((columns[part.column], part.is_descending) for part in index.parts)
        self.columns = tuple(part.column for part in index.parts)
        self.in_key = frozenset(kept.id for kept, _ in self.parts if kept.type.key_is_exact)
        """The columns whose exact values the key contains."""
        self.predicate = None if index.predicate is None else compiled(index.predicate)
        self._elements = tuple((kept.id, kept.key_maker(is_descending)) for kept, is_descending in self.parts)

    def suffix(self, values: Values) -> bytes:
        """The key columns of a row, as they stand in the index."""
        return encode([values[id] if make is None else make(values[id]) for id, make in self._elements])

    def keys(self, columns: Mapping[int, Sequence[Datum]]) -> list[bytes]:
        """The keys of several rows, which are given column by column."""
        parts = [
            encode_each(columns[id] if make is None else list(map(make, columns[id])))
            for id, make in self._elements
        ]
        return [b"".join((self.head, *each)) for each in zip(*parts, strict=True)]

    def prefix(self, values: Iterable[Datum]) -> bytes:
        """The start of all keys whose first columns have these values."""
        parts = zip(self._elements, values, strict=False)
        return self.head + encode([value if make is None else make(value) for (_, make), value in parts])

    def span(
        self, prefix: tuple[Datum, ...] = (), *, start: ScanBound | None = None, end: ScanBound | None = None
    ) -> Span:
        """The keys below a prefix; start and end bound the columns after it, in the index's order."""
        stem = self.prefix(prefix)
        lo, hi = stem, prefix_end(stem)
        if start is not None:
            lo = self.prefix((*prefix, *start.values))
            lo = lo if start.is_inclusive else prefix_end(lo)
        if end is not None:
            hi = self.prefix((*prefix, *end.values))
            hi = prefix_end(hi) if end.is_inclusive else hi
        return Span(lo, max(lo, hi))

    def has_null(self, values: Values) -> bool:
        return any(values[id] is None for id in self.columns)

    def collides(self, values: Values) -> bool:
        """Whether another row can claim the same key."""
        return self.is_primary or (self.is_unique and not self.has_null(values))
