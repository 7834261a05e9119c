"""What fails when constants are folded, and what is left for the rows."""

from dataclasses import replace

import pytest

from tenure.base.errors import UserError
from tenure.expr.tree import build as b
from tenure.expr.tree.expressions import ContextValue
from tenure.expr.tree.folding import VARIES, folds, has_constants
from tests.unit.expr.oracle import CONTEXT, named

INT, TEXT, BOOL, DATE = named("int4"), named("text"), named("bool"), named("date")
ID = b.column(1, INT)
ONE, ZERO, NULL = (b.const(each, INT) for each in (1, 0, None))
FAILS = b.call("/", ONE, ZERO)
UNSURE = b.call(">", ID, ZERO)
TRUE, FALSE = b.const(True, BOOL), b.const(False, BOOL)


def folded(typed: b.Typed, *given: object) -> object:
    """The value, VARIES, or the SQLSTATE; None too where there is nothing to fold."""
    try:
        values = [
            fold(replace(CONTEXT, context_values=given)) for fold in folds([typed.node], len(given), None)
        ]
    except UserError as error:
        return error.sqlstate
    return values[0] if values else None


@pytest.mark.parametrize(
    "typed",
    [
        FAILS,
        b.call("+", ID, FAILS),
        b.call("+", NULL, FAILS),
        b.case([(UNSURE, FAILS)]),
        b.case([(UNSURE, ONE), (TRUE, FAILS)]),
        b.coalesce(ID, FAILS),
        b.conjunction(UNSURE, b.call("=", FAILS, ONE)),
        b.disjunction(UNSURE, b.call("=", FAILS, ONE)),
        b.in_list(ID, ONE, FAILS),
        b.make_array(ID, FAILS),
    ],
)
def test_a_constant_that_fails_fails_without_any_row(typed: b.Typed) -> None:
    assert folded(typed) == "22012"


@pytest.mark.parametrize(
    "typed",
    [
        b.case([(FALSE, FAILS)]),
        b.case([(UNSURE, ONE), (TRUE, ONE)], FAILS),
        b.case([(b.call(">", b.call("+", ID, NULL), ZERO), FAILS)]),
        b.coalesce(ONE, FAILS),
        b.coalesce(ID, ONE, FAILS),
        b.conjunction(UNSURE, FALSE, b.call("=", FAILS, ONE)),
        b.disjunction(UNSURE, TRUE, b.call("=", FAILS, ONE)),
    ],
)
def test_what_another_constant_decides_is_not_folded(typed: b.Typed) -> None:
    assert folded(typed) != "22012"


def test_a_parameter_is_a_constant() -> None:
    given = b.Typed(ContextValue(0, INT.ref), INT)
    typed = b.call("/", ONE, given)
    assert folded(typed, 0) == "22012"
    assert folded(typed, 1) == 1
    outer = b.Typed(ContextValue(1, INT.ref), INT)
    assert not has_constants(b.call("/", ONE, outer).node, 1)


def test_what_depends_on_the_session_waits_for_a_row() -> None:
    text = b.call("||", b.const("x", TEXT), b.const("y", TEXT))
    assert folded(b.cast(text, INT)) == "22P02"
    assert folded(b.cast(text, DATE)) is VARIES
    assert folded(b.call("to_number", text, b.const("9", TEXT))) is VARIES


def test_columns_alone_give_nothing_to_fold() -> None:
    assert not has_constants(b.call("+", ID, ONE).node, 0)
    assert not has_constants(UNSURE.node, 0)
