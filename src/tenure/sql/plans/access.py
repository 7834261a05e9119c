"""How a scan reads its table: by which index, and which part of it.

Walk: `sql.access.indexes` makes an `Access`; the rows executor's scan reads by it.
"""

from dataclasses import dataclass

from tenure.expr.tree.expressions import Node


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """Where a span along an index begins or ends, in its order, after the columns that are fixed."""

    value: Node
    """Without columns of the scan itself."""
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class Among:
    """One of several values: IN (...), or = ANY (array). NULLs among them count for nothing."""

    items: tuple[Node, ...] = ()
    array: Node | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The part of a system table that is asked for: the rows with these values in one column."""

    column: int
    """Its position among the source's own columns."""
    value: Node | Among
    """Without columns of the table itself; a NULL means: no rows."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return _nodes_of(self.value)


def _nodes_of(part: Node | Among) -> tuple[Node, ...]:
    if not isinstance(part, Among):
        return (part,)
    return part.items if part.array is None else (part.array,)


@dataclass(frozen=True, slots=True)
class Access:
    """A way to read a table: along an index, the first columns of its key fixed, the next bounded.

    Rows come in the index's order, also where one of the columns may have several values.
    """

    index: int
    prefix: tuple[Node | Among, ...] = ()
    """Without columns of the scan itself; a NULL among them means: no rows."""
    start: SpanEnd | None = None
    end: SpanEnd | None = None
    is_point: bool = False
    """All columns of a unique index are fixed: one row at most for each choice of values."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All its expressions."""
        found = (node for part in self.prefix for node in _nodes_of(part))
        return (*found, *(bound.value for bound in (self.start, self.end) if bound is not None))
