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
        found: list[Node] = []
        for part in self.prefix:
            if isinstance(part, Among):
                found += part.items if part.array is None else (part.array,)
            else:
                found.append(part)
        return (*found, *(bound.value for bound in (self.start, self.end) if bound is not None))
