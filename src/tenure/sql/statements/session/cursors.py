"""DECLARE, FETCH, MOVE and CLOSE: cursors, which are portals with names.

A cursor reads the transaction it was declared in, as it was then. WITH HOLD it outlives it: its rows are
fetched when it is declared. Going back needs SCROLL: what has passed is then kept. FOR UPDATE leaves out
rows that its own transaction has changed since, as PostgreSQL does.

Walk: `statements.statement_table` -> `plan_*` -> `sql.execution.portals`, `sql.execution.portal_runs`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tenure.base.errors import (
    ActivePortal,
    InvalidCursor,
    NoTransaction,
    NotSupported,
    WrongState,
)
from tenure.base.memory import Holding
from tenure.expr.types.datatype import Datum, Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.portal_runs import PortalRuns
from tenure.sql.execution.portals import Portal, Portals, Prepared
from tenure.sql.execution.preparing import Preparing
from tenure.sql.execution.statement import ByName, Control, Result
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.statements.dml.queries import Select
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree

SCROLL, NO_SCROLL, INSENSITIVE, HOLD = 0x0002, 0x0004, 0x0008, 0x0020
"""PostgreSQL's bits in DeclareCursorStmt.options."""

ALL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Declare:
    portals: Portals
    preparing: Preparing
    name: str
    prepared: Prepared
    is_scrollable: bool
    is_held: bool
    parameters: tuple[Type, ...]
    columns: tuple[ResultColumn, ...] | None = None
    is_short: bool = False

    def run(self, execution: Execution) -> Result:
        session, block = execution.session, execution.block
        if not session.is_in_block and not self.is_held:
            raise NoTransaction("DECLARE CURSOR can only be used in transaction blocks")
        statement = self.preparing.statement_for(self.prepared, block)
        values = self.prepared.values(execution.values)
        account = session.memory.open_statement()
        result = statement.run(Execution(session, block, values, stays=not self.is_held, account=account))
        portal = Portal(self.prepared, values, self.prepared.columns, is_short=False)
        portal.rows, portal.tag, portal.counts = result.rows, "SELECT", True
        portal.role = session.user
        portal.is_cursor, portal.is_held, portal.is_scrollable = True, self.is_held, self.is_scrollable
        portal.fetched, portal.account = [], account
        portal.kept = Holding(account, f'the rows of cursor "{self.name}"')
        self.portals.add(self.name, portal)
        if self.is_held:
            # All rows are read now: their source ends with the transaction.
            portal.rows = _kept(portal)
        return Result("DECLARE CURSOR")


def _kept(portal: Portal) -> Iterator[Sequence[Datum]]:
    """All rows, charged to the cursor; those of one that only goes forward go as they are taken."""
    kept: deque[Sequence[Datum]] = deque()
    assert portal.kept is not None and portal.account is not None
    for row in portal.rows or ():
        portal.kept.add(row)
        kept.append(row)
        portal.account.settle()
    return _forward_rows(kept)


def _forward_rows(kept: deque[Sequence[Datum]]) -> Iterator[Sequence[Datum]]:
    while kept:
        yield kept.popleft()


@dataclass(frozen=True, slots=True)
class Fetch(ByName):
    portals: Portals
    runs: PortalRuns
    name: str
    direction: str
    count: int
    is_move: bool
    columns: tuple[ResultColumn, ...] | None
    parameters: tuple[Type, ...] = ()
    is_short: bool = False

    def columns_now(self) -> tuple[ResultColumn, ...] | None:
        portal = None if self.is_move else self.portals.portals.get(self.name)
        return None if portal is None else portal.columns

    def run(self, execution: Execution) -> Result:
        portal = self.portals.cursor_named(self.name)
        self.runs.open(self.name, portal, execution.block)
        rows = _fetched(portal, self.direction, self.count, is_move=self.is_move)
        if self.is_move:
            return Result(f"MOVE {sum(1 for _ in rows)}")
        return Result("FETCH", iter(list(_charged_rows(execution, rows))), counts=True)


def _charged_rows(execution: Execution, rows: Iterator[Sequence[Datum]]) -> Iterator[Sequence[Datum]]:
    """Charged to the statement that fetches them."""
    holding = Holding(execution.account, "the rows it fetches")
    for row in rows:
        holding.add(row)
        yield row


def _fetched(portal: Portal, direction: str, count: int, *, is_move: bool) -> Iterator[Sequence[Datum]]:
    if direction == "FORWARD" and count < 0:
        direction, count = "BACKWARD", -count
    elif direction == "BACKWARD" and count < 0:
        direction, count = "FORWARD", -count
    if not portal.is_scrollable:
        yield from _forward_only(portal, direction, count, is_move=is_move)
        return
    yield from _scrolled(portal, direction, count)


def _forward_only(portal: Portal, direction: str, count: int, *, is_move: bool) -> Iterator[Sequence[Datum]]:
    """Movements that only go forward: by some rows, or to a later row."""
    is_on_row = portal.position > 0 and not portal.is_at_end
    match direction:
        case "FORWARD" if count > 0:
            yield from _advanced(portal, count)
        case "RELATIVE" if count > 0:
            yield from _only(portal, count)
        case "ABSOLUTE" if count > portal.position + portal.is_at_end:
            yield from _only(portal, count - portal.position)
        case "ABSOLUTE" if count == 0 == portal.position and not portal.is_at_end:
            return
        case "BACKWARD" if is_move and count >= ALL and portal.position == 0 and not portal.is_at_end:
            return
        case "FORWARD" | "BACKWARD" | "RELATIVE" if count == 0 and (is_move or not is_on_row):
            yield from [()] if is_on_row else []
        case _:
            raise WrongState(
                "cursor can only scan forward", hint="Declare it with SCROLL option to enable backward scan."
            )


def _only(portal: Portal, count: int) -> Iterator[Sequence[Datum]]:
    """The last of so many rows."""
    if sum(1 for _ in _advanced(portal, count - 1)) == count - 1:
        yield from _advanced(portal, 1)


def _advanced(portal: Portal, count: int) -> Iterator[Sequence[Datum]]:
    passed = 0
    for row in islice(portal.rows or (), None if count >= ALL else count):
        passed += 1
        portal.position += 1
        yield row
    portal.is_at_end = portal.is_at_end or passed < count


def _scrolled(portal: Portal, direction: str, count: int) -> Iterator[Sequence[Datum]]:
    """The position is 0 before the first row, n on row n, one more after the last."""
    if direction == "FORWARD" and count:
        target = portal.position + min(count, ALL)
        _read_up_to(portal, target)
        rows = portal.fetched[portal.position : target]
        portal.position = min(target, len(portal.fetched) + 1)
        yield from rows
        return
    if direction == "BACKWARD":
        first = max(0, portal.position - 1 - min(count, ALL))
        rows = portal.fetched[first : max(0, portal.position - 1)]
        portal.position = max(0, portal.position - count) if count < ALL else 0
        yield from reversed(rows)
        return
    if direction == "ABSOLUTE" and count < 0:
        _read_up_to(portal, ALL)
        target = max(0, len(portal.fetched) + 1 + count)
    else:
        target = max(0, count if direction == "ABSOLUTE" else portal.position + count)
    _read_up_to(portal, target)
    portal.position = min(target, len(portal.fetched) + 1)
    if 1 <= portal.position <= len(portal.fetched):
        yield portal.fetched[portal.position - 1]


def _read_up_to(portal: Portal, position: int) -> None:
    missing = position - len(portal.fetched)
    if missing <= 0 or portal.rows is None:
        return
    if portal.kept is None:
        portal.fetched.extend(islice(portal.rows, None if position >= ALL else missing))
        return
    for row in islice(portal.rows, None if position >= ALL else missing):
        portal.kept.add(row)
        portal.fetched.append(row)


@dataclass(frozen=True, slots=True)
class Close(Control):
    portals: Portals
    name: str
    """"" is ALL."""

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_usable_block()
        if self.name:
            if self.portals.cursor_named(self.name) is self.portals.active:
                raise ActivePortal(f'cannot drop active portal "{self.name}"')
            self.portals.remove(self.name)
            return Answer((), "CLOSE CURSOR")
        self.portals.close_all(self.portals.active)
        return Answer((), "CLOSE CURSOR ALL")


def plan_declare(portals: Portals, preparing: Preparing, planner: Planner, tree: Tree) -> Declare:
    prepared = preparing.make(planner.text_after_for(tree), planner.types)
    if prepared.columns is None:
        raise NotSupported("DECLARE CURSOR needs a query that returns rows")
    if isinstance(prepared.statement, Select) and prepared.statement.locks:
        _check_may_lock(tree.options)
    return Declare(
        portals,
        preparing,
        tree.portalname,
        prepared,
        is_scrollable=bool(tree.options & SCROLL),
        is_held=bool(tree.options & HOLD),
        parameters=prepared.parameters,
    )


def _check_may_lock(options: int) -> None:
    if options & HOLD:
        raise NotSupported(
            "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported",
            detail="Holdable cursors must be READ ONLY.",
        )
    if options & SCROLL:
        raise NotSupported(
            "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported",
            detail="Scrollable cursors must be READ ONLY.",
        )
    if options & INSENSITIVE:
        raise InvalidCursor(
            "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid",
            detail="Insensitive cursors must be READ ONLY.",
        )


def plan_fetch(portals: Portals, runs: PortalRuns, planner: Planner, tree: Tree) -> Fetch:
    portal = portals.portals.get(tree.portalname)
    direction = parse.option(tree, "direction").removeprefix("FETCH_")
    columns = None if tree.ismove or portal is None else portal.columns
    count = min(tree.how_many, ALL)
    return Fetch(portals, runs, tree.portalname, direction, count, tree.ismove, columns)


def plan_close(portals: Portals, planner: Planner, tree: Tree) -> Close:
    return Close(portals, tree.portalname)
