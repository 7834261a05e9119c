"""Stored expressions that ask sequences for values."""

from uuid import UUID

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.functions.function import Context, Volatility
from tenure.expr.tree.build import call, column, const
from tenure.expr.tree.compiled import compile, volatility
from tenure.expr.tree.expressions import decode, to_stored
from tenure.expr.types.type_names import type_of

INT = type_of(TypeRef("int8"))
BOOL = type_of(TypeRef("bool"))


class Values:
    def next(self, id: int) -> int:
        return id + 1

    def current(self, id: int) -> int:
        return id + 2

    def last(self) -> int:
        return 7

    def set(self, id: int, value: int, is_called: bool) -> int:
        return value if is_called else -value


CONTEXT = Context(0, 0, lambda: UUID(int=0), lambda: 0, sequences=Values())


def evaluated(name: str, *arguments: object) -> object:
    types = {bool: BOOL, int: INT}
    made = [const(each, types.get(type(each), INT)) for each in arguments]
    return compile(call(name, *made).node, {})({}, CONTEXT)


def test_they_ask_the_context() -> None:
    assert evaluated("tenure_nextval", 300) == 301
    assert evaluated("tenure_currval", 300) == 302
    assert evaluated("tenure_setval", 300, 5) == 5
    assert evaluated("tenure_setval", 300, 5, False) == -5
    assert evaluated("tenure_lastval") == 7


def test_null_is_no_sequence() -> None:
    assert evaluated("tenure_nextval", None) is None
    assert evaluated("tenure_setval", 300, None) is None


def test_a_stored_expression_says_which_sequences_it_calls() -> None:
    tree = call("+", call("tenure_nextval", const(300, INT)), call("tenure_currval", const(299, INT))).node
    stored = to_stored(tree, "nextval('s')")
    assert stored.sequences == (299, 300)
    assert decode(stored.tree) == tree
    assert to_stored(call("tenure_nextval", column(1, INT)).node, "").sequences == ()


def test_they_are_volatile() -> None:
    assert volatility(call("tenure_nextval", const(300, INT)).node) is Volatility.VOLATILE
