"""What is cheap by proof: a list of functions, and a bound on what they are given."""

import pytest

from tenure.catalog.descriptors import TypeRef
from tenure.expr.cheap import CHEAP, NOT_CHEAP, NUMERIC_STEPS, READING_STEPS, cost
from tenure.expr.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Const,
    Given,
    InList,
    Nested,
    Node,
    Quantified,
)
from tenure.expr.functions import FUNCTIONS

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
    assert cost([Cast(Given(0, TEXT), TypeRef("regclass"), "explicit")]) >= NOT_CHEAP
    assert cost([Nested(0, (), INT)]) >= NOT_CHEAP
    assert cost([InList("=(jsonb,jsonb)", ColumnRef(1), (ColumnRef(2),))]) >= NOT_CHEAP
    assert cost([Quantified("~~(text,text)", ColumnRef(1), ColumnRef(2))]) >= NOT_CHEAP


def test_what_is_read_from_a_long_text_costs_the_square_of_its_length() -> None:
    """A chain of || makes a text as long as all its inputs together."""
    single = Cast(Given(0, TEXT), INT, "explicit")
    assert cost([single]) == READING_STEPS
    tenfold: Node = Given(0, TEXT)
    for _ in range(9):
        tenfold = Call("||(text,text)", (tenfold, Given(0, TEXT)))
    assert cost([Cast(tenfold, INT, "explicit")]) > 100 * READING_STEPS


def test_a_number_written_as_text_counts_as_long() -> None:
    """1e131071 has eight bytes, and 131,072 digits."""
    digits = Cast(Given(0, NUMERIC), TEXT, "explicit")
    assert cost([Cast(digits, INT, "explicit")]) > 200 * READING_STEPS
    of_int = Cast(Given(0, INT), TEXT, "explicit")
    assert cost([Cast(of_int, INT, "explicit")]) == READING_STEPS + 1


def test_numbers_do_not_add_up() -> None:
    """However many inputs a number is made of, it has no more digits than a numeric can have."""
    plus = Call("+(numeric,numeric)", (Given(0, NUMERIC), Given(1, NUMERIC)))
    assert cost([plus]) == NUMERIC_STEPS
    assert cost([Call("+(numeric,numeric)", (plus, plus))]) == 3 * NUMERIC_STEPS


def test_constants_count_by_their_size() -> None:
    assert cost([Const(TEXT, "short")]) == 0
    assert cost([Const(TEXT, "x" * 1_000_000)]) > 5_000
    assert cost([Const(TypeRef("text", (), True), ["x" * 1_000_000])]) > 5_000
