"""Expressions bound by themselves: DEFAULT, CHECK, predicates; and parameters."""

import random

import pytest

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Call, Cast, ColumnRef, Const, ContextValue
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.binder import bind_query, bind_scalar
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.text.parse import Tree, kind, one, tokens, unwrap
from tests.unit.sql.bind import statements
from tests.unit.sql.schema import KnownNames

INT4, TEXT = type_of(TypeRef("int4")), type_of(TypeRef("text"))
SETS = "set-returning functions are not allowed in"
COLUMNS = (OutputColumn("a", INT4), OutputColumn("b", TEXT))


def tree_of(expression: str) -> Tree:
    found = one(f"SELECT {expression}")
    assert found is not None
    return unwrap(unwrap(found.tree.target_list[0]).val)


def scalar(expression: str, what: str = "CHECK", parameters: Parameters | None = None) -> Typed:
    return bind_scalar(tree_of(expression), COLUMNS, KnownNames(), parameters, what)


def sqlstate_of(expression: str, what: str) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        scalar(expression, what)
    return caught.value.sqlstate, str(caught.value)


def test_columns_are_positions_among_those_given() -> None:
    bound = scalar("a > 5")
    assert isinstance(bound.node, Call)
    assert bound.node.arguments[0] == ColumnRef(0)
    assert bound.type.family == "bool"


def test_an_untyped_literal_stays_open_for_the_caller_to_decide() -> None:
    assert scalar("'5'", "DEFAULT").type.family == "unknown"


@pytest.mark.parametrize(
    ("expression", "what", "answer"),
    [
        ("(SELECT 1)", "CHECK", ("0A000", "cannot use subquery in check constraint")),
        ("EXISTS (SELECT 1)", "DEFAULT", ("0A000", "cannot use subquery in DEFAULT expression")),
        ("1 IN (SELECT 1)", "INDEX PREDICATE", ("0A000", "cannot use subquery in index predicate")),
        ("sum(a)", "CHECK", ("42803", "aggregate functions are not allowed in check constraints")),
        ("rank() OVER ()", "CHECK", ("42P20", "window functions are not allowed in check constraints")),
        ("unnest('{}'::int[])", "CHECK", ("0A000", f"{SETS} check constraints")),
        ("a", "DEFAULT", ("0A000", "cannot use column reference in DEFAULT expression")),
        ("c", "CHECK", ("42703", 'column "c" does not exist')),
        ("t.a", "CHECK", ("42P01", 'missing FROM-clause entry for table "t"')),
    ],
)  # fmt: skip
def test_what_may_not_stand_there_is_refused(expression: str, what: str, answer: tuple[str, str]) -> None:
    assert sqlstate_of(expression, what) == answer


def test_a_parameter_takes_its_type_from_its_surroundings_once() -> None:
    parameters = Parameters()
    scalar("a = $1 AND $1 > 0", "SELECT", parameters)
    assert parameters.types() == (INT4,)


def test_a_declared_parameter_is_cast_like_any_value() -> None:
    parameters = Parameters([INT4])
    bound = scalar("$1::text", "SELECT", parameters)
    assert bound.node == Cast(ContextValue(0, INT4.ref), TEXT.ref, "explicit")


def test_a_parameter_cannot_have_two_types() -> None:
    with pytest.raises(UserError) as caught:
        scalar("b = $1 AND a = $1", "SELECT", Parameters())
    assert caught.value.sqlstate == "42883"


def test_an_undecided_parameter_is_an_error_in_the_end() -> None:
    parameters = Parameters()
    scalar("$1 IS NULL", "SELECT", parameters)
    with pytest.raises(UserError) as caught:
        parameters.types()
    assert (caught.value.sqlstate, str(caught.value)) == (
        "42P18",
        "could not determine data type of parameter $1",
    )


def test_a_literal_that_cannot_be_read_stands_where_it_is_written() -> None:
    with pytest.raises(UserError) as caught:
        scalar("a = 'x'")
    assert (caught.value.sqlstate, caught.value.position) == ("22P02", 12)


def test_a_literal_is_read_as_the_other_side() -> None:
    bound = scalar("a = '7'")
    assert isinstance(bound.node, Call)
    assert bound.node.arguments[1] == Const(INT4.ref, 7)


def test_too_deep_an_expression_is_refused() -> None:
    # Deeper than the parser would let through: trees may also come from elsewhere.
    tree = tree_of("1 + 1")
    for _ in range(60):
        tree = _nested(tree)
    with pytest.raises(UserError) as caught:
        bind_scalar(_very_deep(tree), (), KnownNames())
    assert caught.value.sqlstate == "54001"


def _nested(tree: Tree) -> Tree:
    outer = type(tree)()
    outer.CopyFrom(tree)
    outer.lexpr.a_expr.CopyFrom(tree)
    return outer


def _very_deep(tree: Tree) -> Tree:
    for _ in range(1000):
        outer = type(tree)()
        outer.kind = tree.kind
        outer.name.extend(tree.name)
        outer.rexpr.CopyFrom(tree.rexpr)
        outer.lexpr.a_expr.MergeFrom(tree)
        tree = outer
    return tree


@pytest.mark.invariant("bind-no-crash")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_parses_is_bound_or_refused(seed: int) -> None:
    themes = [name for name in vars(statements) if name.isupper()]
    lines = [line for name in themes for line in getattr(statements, name).strip().splitlines()]
    words = [[token.text for token in tokens(line)] for line in lines if "\\" not in line]
    pool = [word for line in words for word in line]
    chance = random.Random(seed)
    bound = 0
    for _ in range(2500):
        line = list(chance.choice(words))
        for _ in range(chance.randint(1, 3)):
            _disturb(line, chance, pool, words)
        bound += _is_bound(" ".join(line))
    assert bound > 10


def _disturb(line: list[str], chance: random.Random, pool: list[str], words: list[list[str]]) -> None:
    at = chance.randrange(len(line)) if line else 0
    what = chance.random()
    if what < 0.4:
        line[at : at + 1] = [chance.choice(pool)]
    elif what < 0.6:
        line.insert(at, chance.choice(pool))
    elif what < 0.7:
        del line[at : at + 1]
    else:
        other = chance.choice(words)
        start = chance.randrange(len(other))
        line[at : at + chance.randint(0, 3)] = other[start : start + chance.randint(1, 6)]


def _is_bound(text: str) -> bool:
    try:
        found = one(text)
        if found is None or kind(found.tree) != "SelectStmt":
            return False
        bind_query(found.tree, KnownNames(), Parameters(), text=text)
    except UserError:
        return False
    return True
