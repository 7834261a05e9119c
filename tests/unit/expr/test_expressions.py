"""Trees as data: stored exactly, refused when damaged, written as SQL that PostgreSQL reads the same."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import CorruptData, NewerFormat
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr import Node, columns, compile, decode, encode, render, to_stored
from tenure.expr.tree import build as b
from tenure.expr.tree.expressions import Call, Cast, ColumnRef, Const, InList
from tests.unit.expr.oracle import CONTEXT, Oracle, Value, constant, named, shown
from tests.unit.expr.values import mood

INT, TEXT, NUMERIC = named("int4"), named("text"), named("numeric(10,2)")
PRICE, NAME, COUNT = b.column(3, NUMERIC), b.column(2, TEXT), b.column(1, INT)
TYPES = {1: INT, 2: TEXT, 3: NUMERIC}

TREES: Sequence[b.Typed] = [
    b.call(">", PRICE, b.literal("0")),
    b.conjunction(b.call("<>", b.call("lower", NAME), b.literal("")), b.is_null(COUNT, is_negated=True)),
    b.disjunction(b.negation(b.call("=", COUNT, constant(1, "int4"))), b.is_truth(b.literal(None), None)),
    b.case([(b.call("<", COUNT, constant(1, "int4")), b.literal("few"))], b.literal("many")),
    b.coalesce(PRICE, constant(0, "int4")),
    b.nullif(COUNT, constant(0, "int4")),
    b.greatest(COUNT, constant(3, "int8")),
    b.least(NAME, b.literal("m")),
    b.in_list(COUNT, constant(1, "int4"), b.literal(None)),
    b.quantified("=", COUNT, b.literal("{1,2}")),
    b.quantified(">", COUNT, b.make_array(constant(1, "int4"), COUNT), is_all=True),
    b.is_distinct(NAME, b.literal(None), is_negated=True),
    b.cast(PRICE, named("varchar(3)")),
    b.call("now"),
    b.call("-", constant(-5, "int4")),
]


def _call(arguments: list[Node]) -> Node:
    return Call("f", tuple(arguments))


@pytest.mark.invariant("tree-exact")
@pytest.mark.parametrize("tree", [each.node for each in TREES])
def test_a_stored_tree_is_the_same_tree(tree: Node) -> None:
    assert decode(encode(tree)) == tree


@pytest.mark.invariant("tree-exact")
@given(st.recursive(st.integers(1, 9).map(ColumnRef), lambda inner: st.lists(inner, max_size=3).map(_call)))
def test_any_tree_is_stored_exactly(tree: Node) -> None:
    assert decode(encode(tree)) == tree


def test_the_columns_of_a_tree_are_those_it_reads() -> None:
    tree = b.case([(b.call(">", COUNT, constant(0, "int4")), NAME)], b.cast(PRICE, TEXT)).node
    assert columns(tree) == {1, 2, 3}
    assert to_stored(tree, "CASE ...").columns == (1, 2, 3)
    assert decode(to_stored(tree, "CASE ...").tree) == tree


def test_bytes_that_are_no_tree_are_corrupt() -> None:
    for data in (b"", b"\x01", b"\x01\xc1", b"\x01\x92\xa4nope\x01", encode(ColumnRef(1))[:-1]):
        with pytest.raises(CorruptData):
            decode(data)


def test_a_tree_of_a_newer_format_is_refused() -> None:
    with pytest.raises(NewerFormat):
        decode(b"\x02" + encode(ColumnRef(1))[1:])


def test_a_tree_is_written_as_sql() -> None:
    names = {1: "count", 2: "name", 3: "price"}.__getitem__
    assert render(TREES[0].node, names) == "(price > '0'::numeric)"
    assert render(TREES[1].node, names) == "((lower(name) <> ''::text) AND (count IS NOT NULL))"
    assert render(TREES[3].node, names) == "CASE WHEN (count < 1) THEN 'few'::text ELSE 'many'::text END"
    assert render(TREES[12].node, names) == "(price)::character varying(3)"


def test_an_enum_is_written_by_its_label() -> None:
    tree = b.call("=", b.column(1, mood()), b.literal("sad")).node
    assert isinstance(tree, Call)
    assert tree.function == "=(anyenum,anyenum)"
    assert tree.arguments[1] == Const(TypeRef("mood", enum=7), b"\x40")


@pytest.mark.parametrize("tree", [each for each in TREES if "now" not in repr(each)], ids=repr)
def test_postgres_reads_what_is_written_and_answers_the_same(oracle: Oracle, tree: b.Typed) -> None:
    row = {1: 2, 2: "Abc", 3: NUMERIC.parse("1.50")}
    literals = {id: render(b.const(row[id], kind).node, str) for id, kind in TYPES.items()}
    (theirs,) = oracle.ask([render(tree.node, literals.__getitem__)])
    value = compile(tree.node, TYPES)(row, CONTEXT)
    assert theirs == Value(None if value is None else tree.type.render(value), shown(tree.type))


def test_untyped_literals_become_constants_of_the_other_sides_type() -> None:
    tree = b.call("=", b.column(1, named("date")), b.literal("2024-02-29")).node
    assert isinstance(tree, Call)
    assert tree.arguments[1] == Const(TypeRef("date"), named("date").pack(named("date").parse("2024-02-29")))


def test_constants_are_cast_once_and_for_all() -> None:
    tree = b.call(">", b.column(1, named("numeric")), constant(5, "int4")).node
    assert tree == Call(">(numeric,numeric)", (ColumnRef(1), Const(TypeRef("numeric"), 5)))


def test_columns_are_cast_where_they_stand() -> None:
    tree = b.in_list(b.column(1, named("varchar(5)")), b.literal("too long for it")).node
    assert isinstance(tree, InList)
    assert tree.operand == Cast(ColumnRef(1), TypeRef("text"), "implicit")
    assert tree.items == (Const(TypeRef("text"), "too long for it"),)
