"""Values of sequences: what nextval(), currval(), setval() and lastval() are once they are bound.

A sequence is named by its descriptor's id, a constant of type int8, so that a stored default means
the same sequence after a rename. The binder makes these calls of PostgreSQL's, whose
argument is a name; `expressions.sequences` finds the sequences that a tree calls.

Walk: `expr.function_table` lists these; the Context's sequences give the values. `sql.tables` shows calls by
`with_written_name`.
"""

from collections.abc import Callable, Iterator
from typing import cast

from tenure.expr.functions.function import Context, Function, SequenceValues, Volatility
from tenure.expr.types.datatype import Datum

NEXT, CURRENT, SET, LAST = "tenure_nextval", "tenure_currval", "tenure_setval", "tenure_lastval"
WRITTEN = {NEXT: "nextval", CURRENT: "currval", SET: "setval"}
"""As users call them."""


def with_written_name(text: str, id: int, name: str) -> str:
    """The text of an expression with calls for a sequence as users write them: `name` is a literal."""
    for function, word in WRITTEN.items():
        text = text.replace(f"{function}('{id}'::bigint", f"{word}({name}::regclass")
    return text


def functions() -> Iterator[Function]:
    for name, arguments, run in (
        (NEXT, ("int8",), lambda values, id: values.next(id)),
        (CURRENT, ("int8",), lambda values, id: values.current(id)),
        (SET, ("int8", "int8"), lambda values, id, value: values.set(id, value, True)),
        (SET, ("int8", "int8", "bool"), lambda values, id, value, called: values.set(id, value, called)),
        (LAST, (), lambda values: values.last()),
    ):
        asking = _asking(cast("Callable[..., Datum]", run))
        yield Function(name, arguments, "int8", asking, Volatility.VOLATILE, wants_context=True)


def _asking(run: Callable[..., Datum]) -> Callable[..., Datum]:
    def ask(context: Context, *arguments: Datum) -> Datum:
        return None if None in arguments else run(_values(context), *arguments)

    return ask


def _values(context: Context) -> SequenceValues:
    assert context.sequences is not None, "nobody gives values of sequences here"
    return context.sequences
