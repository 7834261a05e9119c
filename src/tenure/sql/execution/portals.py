"""Prepared statements and portals of one session, by name.

SQL's PREPARE and the wire's Parse share the statements; DECLARE CURSOR and Bind share the portals.
The names "" are overwritten at will; all others must be free.

    prepared   text and types given; its plan is looked up, or made again, for each transaction
    portal     a prepared statement with its values; once run, the rows still to come

A portal lives as long as its transaction, unless it is a cursor WITH HOLD, whose rows were all fetched when
it was opened. It reads what was there when it was opened (`sql.execution.execution`), not what its
transaction has written, or taken back, since.

Walk: `sql.clients.session` makes one; `statements.session.cursors` and `statements.session.prepared` use it
too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import GeneratorType

from tenure.base.errors import (
    DuplicateCursor,
    DuplicatePrepared,
    TooManyNames,
    UndefinedCursor,
    UndefinedPrepared,
)
from tenure.base.memory import Account, Holding
from tenure.expr.types.datatype import Datum, Type
from tenure.sql.execution.plan_cache import TEXT_MAX, CachedPlan
from tenure.sql.execution.point_lookup import PointLookup
from tenure.sql.execution.statement import Statement
from tenure.sql.session.answers import ResultColumn, RowStream
from tenure.sql.session.session_state import NamedStatement, OpenCursor

PREPARED_MAX = 10_000
"""Prepared statements of one session: drivers keep some hundreds. A client with more leaks them."""

PREPARED_BYTES = 2_000
"""The bytes of a prepared statement with a shared plan, besides its text."""

PLAN_BYTES_PER_CHARACTER = 150
"""Bytes of memory for a byte of a long text, which is a list of constants: 115 to 190 were measured."""

PORTALS_MAX = 1_000
"""Portals of one session: each may hold a query that is half read."""


@dataclass(slots=True)
class Prepared:
    text: str
    types: tuple[Type | None, ...]
    plan: CachedPlan | None
    """Its newest plan; None of a statement that needs none (an empty one)."""
    parameters: tuple[Type, ...]
    columns: tuple[ResultColumn, ...] | None
    is_short: bool = False
    lookup: PointLookup | None = None
    constants: tuple[Datum, ...] | None = None
    """The constants lifted out of the text, as values of the plan's parameters; the client sees no
    parameters."""
    from_sql: bool = False
    has_enums: bool = False
    """Among its parameters: see `sql.execution.preparing`."""
    is_by_name: bool = False
    """It names another prepared statement (`ByName`)."""

    @property
    def statement(self) -> Statement | None:
        return None if self.plan is None else self.plan.statement

    def reads(self, tables: set[int]) -> bool:
        """Whether it may read rows of one of these tables."""
        return self.plan is not None and self.plan.reads(tables)

    @property
    def fixed_types(self) -> tuple[Type | None, ...]:
        """The types of the parameters, to plan it again: clients send values of the types reported to
        them."""
        if self.constants is not None:
            return self.types
        return tuple(None if each.ref.enum else each for each in self.parameters)

    def values(self, parameters: Sequence[Datum]) -> Sequence[Datum]:
        """The values of the plan's parameters: those that are given, or those lifted out of the text."""
        return parameters if self.constants is None else self.constants


class Portal:
    """Every statement makes one. Attributes that are seldom set are class attributes, to make that cheap."""

    rows: Iterator[Sequence[Datum]] | None = None
    """Still to come, once it runs."""
    stream: RowStream | None = None
    """Where rows come from by and by, in place of `rows`."""
    stays: bool = True
    """Other statements may come between its rows; not so if all of them are asked for at once."""
    tag: str = ""
    counts: bool = False
    is_done: bool = False
    is_failed: bool = False
    """An error has ended it: it cannot run again, even if the transaction goes back to a savepoint."""
    is_at_rest: bool = True
    """No Execute is under way: the next one is a statement of its own, with its own time limit."""
    is_cursor: bool = False
    role: str = ""
    """As whom it began; set where other statements may come between its rows."""
    is_held: bool = False
    """WITH HOLD: outlives its transaction, if that commits."""
    is_committed: bool = False
    """Its transaction has committed."""
    is_scrollable: bool = False
    fetched: list[Sequence[Datum]]
    """The rows that a scrollable cursor has passed, to go back to."""
    position: int = 0
    is_at_end: bool = False
    """Whether a cursor that only goes forward has reached its end."""
    result_bytes: int = 0
    """The approximate size of the rows it has given so far."""
    account: Account | None = None
    """The account of its memory; None if it runs on the door's loop, where it needs little."""
    kept: Holding | None = None
    """The account of `fetched`, and of the rows of a cursor WITH HOLD."""

    def end(self) -> None:
        """Closes it: releases its row source and the rows it kept."""
        rows, self.rows, self.fetched = self.rows, None, []
        if isinstance(rows, GeneratorType):
            rows.close()
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        if self.account is not None:
            self.account.close()

    def __init__(
        self,
        prepared: Prepared,
        values: Sequence[Datum],
        columns: tuple[ResultColumn, ...] | None,
        is_short: bool,
    ) -> None:
        self.prepared = prepared
        self.values = values
        self.columns = columns
        self.is_short = is_short

    def start_over(self) -> None:
        """Resets it, to run its statement again: its rows were not sent."""
        self.rows, self.is_done, self.is_at_rest = None, False, True
        self.position, self.is_at_end = 0, False


class Portals:
    def __init__(self, account: Account) -> None:
        self._account = account
        """The session's account, which prepared statements are charged to."""
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.active: Portal | None = None
        """The one that is being executed: it cannot close itself."""

    def add_prepared(self, name: str, prepared: Prepared) -> None:
        if name and name in self.prepared:
            raise DuplicatePrepared(f'prepared statement "{name}" already exists')
        if len(self.prepared) >= PREPARED_MAX and name not in self.prepared:
            raise TooManyNames(
                f"a session may have {PREPARED_MAX} prepared statements", hint="DEALLOCATE those not needed."
            )
        former = self.prepared.get(name)
        count = _bytes_of(name, prepared)
        if count:
            self._account.charge(count, "prepared statements")
        self.prepared[name] = prepared
        self._forget(name, former)

    def prepared_statements(self) -> Iterator[NamedStatement]:
        """Those with a name, for pg_prepared_statements."""
        for name, each in list(self.prepared.items()):
            if name:
                columns = None if each.columns is None else tuple(column.type for column in each.columns)
                yield NamedStatement(name, each.text.strip(), each.parameters, columns, each.from_sql)

    def cursors(self) -> Iterator[OpenCursor]:
        """Those of DECLARE and of the protocol, for pg_cursors."""
        for name, each in list(self.portals.items()):
            if name and each is not self.active:
                yield OpenCursor(name, each.prepared.text.strip(), each.is_held, each.is_scrollable)

    def remove_prepared(self, name: str) -> None:
        self._forget(name, self.prepared.pop(name, None))

    def _forget(self, name: str, prepared: Prepared | None) -> None:
        if prepared is not None and (count := _bytes_of(name, prepared)):
            self._account.release(count)

    def prepared_named(self, name: str) -> Prepared:
        try:
            return self.prepared[name]
        except KeyError:
            what = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise UndefinedPrepared(f"{what} does not exist") from None

    def add(self, name: str, portal: Portal) -> None:
        if name and name in self.portals:
            raise DuplicateCursor(f'cursor "{name}" already exists')
        if len(self.portals) >= PORTALS_MAX and name not in self.portals:
            raise TooManyNames(
                f"a session may have {PORTALS_MAX} cursors and portals", hint="CLOSE those not needed."
            )
        self.remove(name)
        self.portals[name] = portal

    def remove(self, name: str) -> None:
        """Closes it, if there is one."""
        former = self.portals.pop(name, None)
        if former is not None:
            former.end()

    def named(self, name: str) -> Portal:
        try:
            return self.portals[name]
        except KeyError:
            raise UndefinedCursor(f'portal "{name}" does not exist') from None

    def cursor_named(self, name: str) -> Portal:
        try:
            return self.portals[name]
        except KeyError:
            raise UndefinedCursor(f'cursor "{name}" does not exist') from None

    def end_transaction(self, again: Portal | None = None, *, is_committed: bool) -> None:
        """The transaction is over: closes its portals, except one that is to be run again."""
        portals = self.portals
        if not portals:
            return
        if again is None and len(portals) == 1 and "" in portals:  # DECLARE makes none without a name
            self.portals = {}
            only = portals[""]
            if only.rows is not None or only.account is not None:
                only.end()
            return
        for each in portals.values():
            each.is_committed = each.is_committed or (each.is_held and is_committed)
        self._keep_those({name for name, each in self.portals.items() if each.is_committed or each is again})

    def keep(self, former: Mapping[str, object]) -> None:
        """Closes all others: they were opened after the savepoint that the transaction goes back to."""
        self._keep_those({name for name, each in self.portals.items() if former.get(name) is each})

    def close_all(self, active: Portal | None = None) -> None:
        """Closes all but the one that is being executed, if that is given."""
        self._keep_those({name for name, each in self.portals.items() if each is active})

    def _keep_those(self, names: set[str]) -> None:
        ended = [each for name, each in self.portals.items() if name not in names]
        self.portals = {name: each for name, each in self.portals.items() if name in names}
        for each in ended:
            each.end()

    def end(self) -> None:
        """The session is over."""
        self.close_all()
        self.prepared.clear()

    def forget_prepared(self) -> None:
        """All that have a name: the one without lasts until the next."""
        for name in [name for name in self.prepared if name]:
            self.remove_prepared(name)


def _bytes_of(name: str, prepared: Prepared) -> int:
    """The memory of a prepared statement. One without a name is short, or replaced by the next.

    Plans of long texts are not in the shared cache, so each statement pays for its own.
    """
    size = len(prepared.text)
    if size > TEXT_MAX:
        return size * PLAN_BYTES_PER_CHARACTER
    return PREPARED_BYTES + size if name else 0
