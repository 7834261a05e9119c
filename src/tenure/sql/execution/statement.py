"""A planned statement, which a session can run.

    text ─► parse ─► plan ─► Statement ─► run(execution) ─► Result: rows to come, or a tag

A statement that is planned holds no reference to a transaction: it may be run many times, by any session
with the same names. `uses` are the descriptors that it was planned over; it is good for a
transaction in which each of them is still the very same.

Walk: `sql.execution.planning` makes them; `sql.execution.portal_runs` runs them; `sql.execution.plan_cache`
keeps them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from tenure.expr.types.datatype import Datum, Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.point_lookup import PointLookup
from tenure.sql.session.answers import Answer, CopyIn, CopyOut, Pending, ResultColumn


@dataclass(frozen=True, slots=True)
class Result:
    tag: str
    rows: Iterator[Sequence[Datum]] | None = None
    """Still to come, where the statement returns rows."""
    counts: bool = False
    """The number of rows belongs to the tag."""
    copy: CopyIn | CopyOut | None = None


class Statement(Protocol):
    @property
    def columns(self) -> tuple[ResultColumn, ...] | None: ...

    @property
    def parameters(self) -> tuple[Type, ...]: ...

    @property
    def is_short(self) -> bool:
        """It may be tried on the door's loop: it takes little time, and waits for nothing but its commit."""
        ...

    def run(self, execution: Execution) -> Result: ...


class ByName(ABC):
    """A statement that names another one: the name may mean a different statement later."""

    @abstractmethod
    def columns_now(self) -> tuple[ResultColumn, ...] | None:
        """Called when it is bound."""


class ReadOnlyStatement(ABC):
    """A statement that, if it is short, leaves nothing in its block to undo."""

    __slots__ = ()

    @property
    @abstractmethod
    def point_lookup(self) -> PointLookup | None:
        """The point lookup, if the statement reads one row by its key."""


class MapChange(ABC):
    """A statement that may change the map of its session's database."""

    __slots__ = ()

    @property
    @abstractmethod
    def changes_map(self) -> bool: ...


class Control:
    """A statement about the session itself: it needs no transaction, and may begin or end one."""

    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = True
    is_undone: ClassVar[bool] = False
    """A rollback of its transaction undoes it."""

    def control(self, execution: Execution) -> "Answer | Pending":
        raise NotImplementedError

    def run(self, execution: Execution) -> Result:
        raise AssertionError("a control statement runs outside of transactions")
