"""Which expressions are provably cheap: an upper bound of their cost, for any values.

    price + $1                       200 steps: a number may have 131,072 digits
    lower(name) = $1                  62
    name LIKE $1                     NOT_CHEAP: no bound is known, or it is too large
    repeat('a', 60000)               NOT_CHEAP

A step is about 40 microseconds of work at most, over inputs of some 8 kB; the caller bounds the inputs.
`CHEAP` lists all cheap functions; no other function is cheap. A value that may be n times as long as the
inputs makes the steps over it count n times, so that a chain of `||` cannot hand a megabyte to a cast.

Invariant (inline-cheap): an expression that calls a function which is not on the list is not cheap.

Walk: `sql.session.inline` asks `cost` of all that a statement evaluates.
"""

from collections.abc import Iterable
from typing import Any

from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Function
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    MakeArray,
    Nested,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
    children,
)

NOT_CHEAP = 1_000_000
"""More steps than any caller allows."""

NUMERIC_STEPS = 200
"""Steps of arithmetic on numeric: 8 ms for 131,072 digits. Division and remainder would take seconds."""

STRUCTURE_STEPS = 250
"""To read or write a JSON value or an array of 8 kB: 10 ms."""

READING_STEPS = 90
"""To read a number, a time or another scalar from 8 kB of text: 3.5 ms."""

WRITING_STEPS = 25
"""To write a number as text, or round it: 1 ms at 131,072 digits."""

CASE_STEPS = 60
"""To change the case of 8 kB of letters that are not ASCII, one by one: 2.4 ms."""

DIGITS_INPUTS = 16
"""How many inputs long the text of a number of eight bytes (1e131071) can be."""

CONST_BYTES_PER_STEP = 128
ITEMS_PER_STEP = 8

_INTS = ("int2", "int4", "int8")
_FLOATS = ("float4", "float8")
_STRINGS = ("text", "varchar", "char", "name", '"char"')
_TIMES = ("date", "time", "timestamp", "timestamptz", "interval")
_FIXED = (*_INTS, *_FLOATS, *_TIMES, "bool", "uuid", "oid")
"""Their values have a few bytes."""
_SCALARS = (*_FIXED, *_STRINGS, "numeric", "bytea", "anyenum")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%", "mod", "&", "|", "#", "~", "<<", ">>")
_ROUNDINGS = ("abs", "@", "round", "trunc", "ceil", "ceiling", "floor", "sign")

_LISTED = frozenset(
    (
        *("length(text)", "char_length(text)", "character_length(text)", "length(bytea)"),
        *("octet_length(text)", "octet_length(char)", "octet_length(bytea)"),
        *("btrim(text)", "ltrim(text)", "rtrim(text)"),
        *("left(text,int4)", "right(text,int4)", "starts_with(text,text)", "^@(text,text)"),
        *("substr(text,int4)", "substr(text,int4,int4)", "substring(text,int4)", "substring(text,int4,int4)"),
        *("||(text,text)", "||(bytea,bytea)"),
        *("now()", "current_timestamp()", "transaction_timestamp()", "statement_timestamp()"),
        *("clock_timestamp()", "current_date()", "localtimestamp()", "localtime()"),
        *("isfinite(date)", "isfinite(timestamp)", "isfinite(timestamptz)", "to_timestamp(float8)"),
        *("gen_random_uuid()", "uuidv4()", "uuid_generate_v4()", "uuidv7()", "unique_rowid()", "random()"),
        *("tenure_nextval(int8)", "tenure_currval(int8)", "tenure_lastval()"),
        *("current_user()", "current_role()", "user()", "session_user()"),
        *("current_catalog()", "current_database()", "version()", "pg_backend_pid()"),
    )
)
_WEIGHTY = {
    **{f"{name}(text)": CASE_STEPS for name in ("lower", "upper")},
    **{f"{name}(numeric)": NUMERIC_STEPS for name in (*_ROUNDINGS, "+", "-")},
    **{f"{name}(numeric,numeric)": NUMERIC_STEPS for name in ("+", "-", "*")},
    **{f"{name}(numeric,int4)": NUMERIC_STEPS for name in ("round", "trunc")},
    **{f"{name}(jsonb,{key})": STRUCTURE_STEPS for name in ("->", "->>") for key in ("text", "int4")},
    **{f"{name}(text,{kind})": 2 for name in ("extract", "date_part", "date_trunc") for kind in _TIMES},
}


def _steps(function: Function) -> int | None:
    """None for functions that are not on the list."""
    if function.id in _WEIGHTY or function.id in _LISTED:
        return _WEIGHTY.get(function.id, 1)
    kinds = set(function.arguments)
    if function.name in _COMPARISONS and kinds <= set(_SCALARS):
        return 1
    is_plain = function.name in _ARITHMETIC or function.name in _ROUNDINGS
    return 1 if is_plain and kinds <= set(_FIXED) else None


CHEAP: dict[str, int] = {each.id: steps for each in FUNCTIONS if (steps := _steps(each)) is not None}
"""The list: functions by their ids, and how many steps one call is."""

_BOUNDED = (*_FIXED, "numeric")
_OVER_BOUNDED = frozenset(each.id for each in FUNCTIONS if set(each.arguments) <= set(_BOUNDED))
"""Functions whose arguments do not grow with the inputs."""
_TO_BOUNDED = frozenset(each.id for each in FUNCTIONS if each.result in _BOUNDED)


def cost(trees: Iterable[Node]) -> int:
    """The steps of evaluating each of them once; NOT_CHEAP or more if one is not cheap."""
    return sum(_measured(each)[0] for each in trees)


def _measured(tree: Node) -> tuple[int, int]:
    """The steps, and how many times as long as the longest input the value can be."""
    match tree:
        case Const():
            return _size_of(tree.packed) // CONST_BYTES_PER_STEP, 1
        case ContextValue() | ColumnRef():
            return 0, 1
        case Nested():
            return NOT_CHEAP, 1
    measured = [_measured(each) for each in children(tree)]
    below = sum(steps for steps, _ in measured)
    lengths = [length for _, length in measured]
    total = max(1, sum(lengths))
    match tree:
        case Call():
            steps = CHEAP.get(tree.function, NOT_CHEAP) * (1 if tree.function in _OVER_BOUNDED else total)
            return below + steps, 1 if tree.function in _TO_BOUNDED else total
        case Cast():
            # Reading a number takes the square of its length.
            return below + _cast_steps(tree) * total * total, _cast_length(tree, total)
        case And() | Or() | Not() | IsNull() | IsTruth():
            return below + 1, 1
        case IsDistinct() | NullIf():
            return below + CHEAP.get(tree.equality, NOT_CHEAP) * total, total
        case Case() | Coalesce() | Extreme():
            return below + 1, max(1, *lengths)
        case InList():
            steps = CHEAP.get(tree.equality, NOT_CHEAP) * (1 + len(tree.items) // ITEMS_PER_STEP)
            return below + steps * max(1, *lengths), 1
        case Quantified():
            return below + CHEAP.get(tree.function, NOT_CHEAP) * STRUCTURE_STEPS * max(1, *lengths), 1
        case MakeArray():
            return below + 1 + len(tree.elements) // ITEMS_PER_STEP, total
    raise AssertionError(f"{tree!r} is no expression")


def _cast_steps(tree: Cast) -> int:
    """Names of objects (regclass and the other reg types) are looked up in the catalog: not cheap."""
    source, target = _kind_of(tree.operand), _kind_of(tree)
    if target == STRUCTURE:
        return STRUCTURE_STEPS
    if target not in _SCALARS:
        return NOT_CHEAP
    if source in _FIXED or (source in _STRINGS and target in _STRINGS):
        return 1
    if source == "numeric" or target in _STRINGS:
        return WRITING_STEPS if source != STRUCTURE else STRUCTURE_STEPS
    return READING_STEPS


def _cast_length(tree: Cast, total: int) -> int:
    source, target = _kind_of(tree.operand), _kind_of(tree)
    if target in _BOUNDED:
        return 1
    return (
        total if target not in _STRINGS or source in _FIXED or source in _STRINGS else DIGITS_INPUTS * total
    )


STRUCTURE = "structure"
"""Arrays and JSON."""


def _kind_of(tree: Node) -> str:
    """The family of a value, where the tree says it: of a column it does not."""
    match tree:
        case Const(type=kind) | ContextValue(type=kind) | Cast(type=kind):
            if kind.is_array or kind.name in ("json", "jsonb"):
                return STRUCTURE
            return "anyenum" if kind.enum else kind.name
        case Call() if tree.function in _RESULTS:
            return _RESULTS[tree.function]
    return ""


_RESULTS = {each.id: each.result for each in FUNCTIONS if each.result in (*_BOUNDED, *_STRINGS)}


def _size_of(packed: Any) -> int:
    if isinstance(packed, str | bytes):
        return len(packed)
    if isinstance(packed, list | tuple):
        return sum(map(_size_of, packed))
    if isinstance(packed, dict):
        return sum(map(_size_of, packed.keys())) + sum(map(_size_of, packed.values()))
    return 0
