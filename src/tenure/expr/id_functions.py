"""New ids: gen_random_uuid() and unique_rowid(), which the Context makes.

Walk: `expr.functions` lists these.
"""

from collections.abc import Iterator

from tenure.expr.function import Function, Volatility


def functions() -> Iterator[Function]:
    for name, result in (("gen_random_uuid", "uuid"), ("unique_rowid", "int8")):
        run = (lambda context: context.uuid()) if result == "uuid" else (lambda context: context.rowid())
        yield Function(name, (), result, run, Volatility.VOLATILE, wants_context=True)
