"""The definition of a function or operator, for overload resolution and the compiler.

Its id, such as "lower(text)" or "+(int4,int4)", is what stored expressions hold: a function may
be added, and its faults fixed, but the meaning of an id never changes.

Walk: the modules of each family list their functions; `expr.function_table` gathers them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum
from typing import Protocol
from uuid import UUID

from tenure.base.errors import NotSupported
from tenure.base.random_numbers import RandomNumbers
from tenure.expr.types.datatype import Datum

_HALF_MASK = 2**32 - 1
_FRACTION_BITS = 52
"""The last bits of a uuid are all random; a float8 holds as many."""


class Volatility(Enum):
    IMMUTABLE = "immutable"
    """Depends on its arguments alone: allowed in a CHECK or an index predicate."""
    STABLE = "stable"
    """Fixed within a statement, as now() is."""
    VOLATILE = "volatile"


class SequenceValues(Protocol):
    """The values of sequences, by descriptor id, as a session knows them."""

    def next(self, id: int) -> int: ...

    def current(self, id: int) -> int:
        """The last value that this session drew from this sequence."""
        ...

    def last(self) -> int:
        """The last value that this session drew from any sequence."""
        ...

    def set(self, id: int, value: int, is_called: bool) -> int: ...


@dataclass(slots=True)
class Context:
    """The surroundings that expressions can read besides the row; times are microseconds since 1970, UTC.

    It is never changed. It is not declared frozen, because each statement makes one, and making a frozen one
    costs three times as much.
    """

    now_micros: int
    """When the transaction began."""
    statement_micros: int
    uuid: Callable[[], UUID]
    rowid: Callable[[], int]
    clock_micros: Callable[[], int] | None = None
    """Reads the clock, for clock_timestamp(); without it, the statement's time is used."""
    rowids: Callable[[int], Sequence[int]] | None = None
    """So many values of `rowid` at once, for rows that are written together."""
    context_values: Sequence[Datum] = ()
    """The values of `ContextValue` nodes, by number."""
    nested: Sequence[Callable[..., Datum]] = ()
    """The callables that answer `Nested` nodes, by number: called with this Context and the arguments."""
    zone: tzinfo = UTC
    """The session's TimeZone, in which timestamptz is read, written and taken apart."""
    sequences: SequenceValues | None = None
    session: Mapping[str, Datum] = field(default_factory=dict)
    """Facts for current_user and others, by the names in `expr.functions.session_functions.FACTS`."""
    setting: Callable[[str], str | None] | None = None
    """The text of a session's setting, for current_setting(); None if there is none of the name."""
    set_setting: Callable[[str, str | None, bool], str] | None = None
    """For set_config(name, value, is_local); returns the new text."""
    sleep: Callable[[float], None] | None = None
    """For pg_sleep(): waits, or raises if the statement is canceled."""
    find_object: Callable[[str, Datum], Datum] | None = None
    """The Reg of an object by its kind ("regclass") and its name or oid; raises if there is none."""

    ask: Callable[[str, tuple[Datum, ...]], Datum] | None = None
    """Answers a function of `expr.functions.callback_functions` by its name."""
    numbers: RandomNumbers | None = None
    """The session's random numbers; without them, they come from the source of the uuids."""

    def of_query(self, context_values: list[Datum], nested: list[Callable[..., Datum]]) -> "Context":
        """The context of one query's run. Takes a third of the time of `dataclasses.replace`."""
        return Context(
            *(self.now_micros, self.statement_micros, self.uuid, self.rowid, self.clock_micros, self.rowids),
            *(context_values, nested, self.zone, self.sequences, self.session, self.setting),
            *(self.set_setting, self.sleep, self.find_object, self.ask, self.numbers),
        )

    def object(self, kind: str, sought: Datum) -> Datum:
        if self.find_object is None:
            raise NotSupported(f"a value of type {kind} cannot be looked up here")
        return self.find_object(kind, sought)

    def random(self) -> float:
        """From 0 up to 1."""
        return (self.random_bits() >> 64 - _FRACTION_BITS) / (1 << _FRACTION_BITS)

    def random_bits(self) -> int:
        """64 bits at random."""
        if self.numbers is not None:
            return self.numbers.bits()
        return (self.uuid().int & _HALF_MASK) << 32 | self.uuid().int & _HALF_MASK


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    arguments: tuple[str, ...]
    """Families of types, or PostgreSQL's anyelement, anyarray, anycompatible and other pseudo-types."""
    result: str
    run: Callable[..., Datum]
    volatility: Volatility = Volatility.IMMUTABLE
    is_strict: bool = True
    """NULL if any argument is; `run` never sees one."""
    is_variadic: bool = False
    """The last argument may come once or more."""
    wants_types: bool = False
    """`run(*types)` gives the function proper, for the types of the arguments."""
    wants_context: bool = False
    """The Context comes before the arguments."""
    names: tuple[str, ...] = ()
    """The names of the arguments, if a call may use them: make_interval(days => 3)."""
    default: str | None = None
    """The values of arguments that such a call leaves out."""

    @property
    def id(self) -> str:
        dots = "..." if self.is_variadic else ""
        return f"{self.name}({','.join(self.arguments)}{dots})"


def function(name: str, signature: str, run: Callable[..., Datum]) -> Function:
    """A plain function: function("lower", "text -> text", str.lower)."""
    arguments, _, result = signature.partition("->")
    return Function(name, tuple(arguments.replace(",", " ").split()), result.strip(), run)
