"""What is cheap by proof: a list of functions, and a bound on what they are given."""

import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import product
from types import FrameType
from uuid import UUID

import pytest

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Context, Function
from tenure.expr.tree.cheap_expressions import CHEAP, NOT_CHEAP, NUMERIC_STEPS, READING_STEPS, cost
from tenure.expr.tree.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Const,
    ContextValue,
    InList,
    Nested,
    Node,
    Quantified,
)
from tenure.expr.types.datatype import Datum
from tenure.expr.types.interval import Interval
from tenure.expr.types.type_names import type_of

TEXT, INT, NUMERIC = TypeRef("text"), TypeRef("int4"), TypeRef("numeric")

BY_NAME = {
    *("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "mod", "&", "|", "#", "~", "<<", ">>"),
    *("abs", "@", "round", "trunc", "ceil", "ceiling", "floor", "sign", "->", "->>", "||", "^@"),
    *(
        "length",
        "char_length",
        "character_length",
        "octet_length",
        "lower",
        "upper",
        "btrim",
        "ltrim",
        "rtrim",
    ),
    *("left", "right", "starts_with", "substr", "substring", "extract", "date_part", "date_trunc"),
    *("now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp"),
    *("current_date", "localtimestamp", "localtime", "isfinite", "to_timestamp"),
    *("gen_random_uuid", "uuidv4", "uuid_generate_v4", "uuidv7", "unique_rowid", "random"),
    *("tenure_nextval", "tenure_currval", "tenure_lastval", "current_user", "current_role", "user"),
    *("session_user", "current_catalog", "current_database", "version", "pg_backend_pid"),
}
"""The list once more, by hand: whoever adds a name to it has to say so here, and to bound its work."""


def test_the_list_is_short_and_written_down() -> None:
    assert {each.name for each in FUNCTIONS if each.id in CHEAP} == BY_NAME


@pytest.mark.invariant("inline-cheap")
@pytest.mark.parametrize("id", [each.id for each in FUNCTIONS if each.id not in CHEAP])
def test_a_function_that_is_not_on_the_list_is_not_cheap(id: str) -> None:
    call = Call(id, ())
    for tree in (
        call,
        Cast(call, TEXT, "explicit"),
        Case(((ColumnRef(1), call),)),
        Call("lower(text)", (call,)),
    ):
        assert cost([tree]) >= NOT_CHEAP


@pytest.mark.parametrize(
    "id",
    [
        *("/(numeric,numeric)", "%(numeric,numeric)", "repeat(text,int4)", "~~(text,text)", "~(text,text)"),
        *(
            "regexp_replace(text,text,text,text)",
            "to_char(timestamp,text)",
            "lpad(text,int4)",
            "pg_sleep(float8)",
        ),
        *("=(jsonb,jsonb)", "=(anyarray,anyarray)", "replace(text,text,text)", "power(numeric,numeric)"),
    ],
)
def test_what_takes_long_at_its_limits_is_not_on_the_list(id: str) -> None:
    assert id not in CHEAP and any(each.id == id for each in FUNCTIONS)


def test_names_of_objects_and_subqueries_are_not_cheap() -> None:
    assert cost([Cast(ContextValue(0, TEXT), TypeRef("regclass"), "explicit")]) >= NOT_CHEAP
    assert cost([Nested(0, (), INT)]) >= NOT_CHEAP
    assert cost([InList("=(jsonb,jsonb)", ColumnRef(1), (ColumnRef(2),))]) >= NOT_CHEAP
    assert cost([Quantified("~~(text,text)", ColumnRef(1), ColumnRef(2))]) >= NOT_CHEAP


def test_what_is_read_from_a_long_text_costs_the_square_of_its_length() -> None:
    """A chain of || makes a text as long as all its inputs together."""
    single = Cast(ContextValue(0, TEXT), INT, "explicit")
    assert cost([single]) == READING_STEPS
    tenfold: Node = ContextValue(0, TEXT)
    for _ in range(9):
        tenfold = Call("||(text,text)", (tenfold, ContextValue(0, TEXT)))
    assert cost([Cast(tenfold, INT, "explicit")]) > 100 * READING_STEPS


def test_a_number_written_as_text_counts_as_long() -> None:
    """1e131071 has eight bytes, and 131,072 digits."""
    digits = Cast(ContextValue(0, NUMERIC), TEXT, "explicit")
    assert cost([Cast(digits, INT, "explicit")]) > 200 * READING_STEPS
    of_int = Cast(ContextValue(0, INT), TEXT, "explicit")
    assert cost([Cast(of_int, INT, "explicit")]) == READING_STEPS + 1


def test_numbers_do_not_add_up() -> None:
    """However many inputs a number is made of, it has no more digits than a numeric can have."""
    plus = Call("+(numeric,numeric)", (ContextValue(0, NUMERIC), ContextValue(1, NUMERIC)))
    assert cost([plus]) == NUMERIC_STEPS
    assert cost([Call("+(numeric,numeric)", (plus, plus))]) == 3 * NUMERIC_STEPS


def test_constants_count_by_their_size() -> None:
    assert cost([Const(TEXT, "short")]) == 0
    assert cost([Const(TEXT, "x" * 1_000_000)]) > 5_000
    assert cost([Const(TypeRef("text", (), True), ["x" * 1_000_000])]) > 5_000


# ── the list at its limits ─────────────────────────────────────────────────────────────────────

BYTES = 8 * 1024
"""Of one input, at most: `sql.session.inline.INPUT_BYTES_MAX`."""
NINES = Decimal("9" * 131_072)
LARGEST: dict[str, tuple[Datum, ...]] = {
    "text": ("ß" * (BYTES // 2), "9" * BYTES, " " * BYTES),
    "name": ("x" * 63,),
    "char": ("x" * BYTES, " " * BYTES),
    '"char"': ("x",),
    "bytea": (b"\xff" * BYTES,),
    "bool": (True,),
    "oid": (2**32 - 1,),
    "int2": (2**15 - 1,),
    "int4": (2**31 - 1, -(2**31)),
    "int8": (2**63 - 1,),
    "float4": (3.4e38,),
    "float8": (1.7e308,),
    "numeric": (NINES, Decimal("1e131071"), NINES.scaleb(-16_383)),
    "uuid": (UUID(int=2**128 - 1),),
    "date": (date.max,),
    "time": (time.max,),
    "timestamp": (datetime.max,),
    "timestamptz": (datetime.max.replace(tzinfo=UTC),),
    "interval": (Interval(months=10**6, days=10**6, micros=10**15),),
    "jsonb": (type_of(TypeRef("jsonb")).parse("[" + "1," * (BYTES // 2 - 2) + "1]"),),
}
EVENTS_PER_STEP = 400
"""Calls of functions, Python's and C's, in one step: each is about 0.1 microseconds."""


@pytest.mark.parametrize(
    "function", [each for each in FUNCTIONS if each.id in CHEAP and each.arguments], ids=lambda each: each.id
)
def test_functions_of_the_list_do_bounded_work_at_their_limits(function: Function) -> None:
    """Work is counted, not timed. What they return is no longer than what they were given."""
    if set(function.arguments) == {"anyenum"} or function.name.startswith("tenure_"):
        assert (
            CHEAP[function.id] == 1
        )  # members are compared by some bytes; the session answers for sequences
        return
    for arguments in product(*(LARGEST[each] for each in function.arguments)):
        run = function.run
        if function.wants_types:
            run = run(*(type_of(TypeRef(each)) for each in function.arguments))
        context = (CONTEXT,) if function.wants_context else ()
        result, events = _counted(partial(run, *context, *arguments))
        assert events <= EVENTS_PER_STEP * CHEAP[function.id]
        if isinstance(result, str | bytes):
            assert len(result) <= sum(map(_length, arguments))
        if isinstance(result, Decimal) and result.is_finite():
            assert len(result.as_tuple().digits) <= 131_072 + 16_383


CONTEXT = Context(0, 0, uuid=lambda: UUID(int=0), rowid=lambda: 1)


def _counted(call: Callable[[], Datum]) -> tuple[Datum, int]:
    events = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal events
        events += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        return call(), events
    except UserError:
        return None, events
    finally:
        sys.setprofile(None)


def _length(value: Datum) -> int:
    return len(value) if isinstance(value, str | bytes) else 3 * BYTES
