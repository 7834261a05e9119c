"""Functions, operators, aggregates and window functions under the names and types that PostgreSQL gives them.

    lower(text)                  ("lower", ("text",))
    concat("any"...)             ("concat", ('"any"',))         the last argument may come more than once

Some functions are Tenure's own, and some are no functions to people: what subscripts and CURRENT_DATE are
computed by.

Walk: `sql.tables.pg_catalog.functions` makes rows of these.
"""

from collections.abc import Iterator

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.aggregates.aggregate import AggregateFunction
from tenure.expr.aggregates.aggregate_table import AGGREGATES
from tenure.expr.aggregates.window_functions import WINDOW_FUNCTIONS, WindowFunction
from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Function
from tenure.expr.functions.set_function import SetFunction
from tenure.expr.set_function_table import SET_FUNCTIONS
from tenure.expr.types.system_types import TYPE_OIDS
from tenure.expr.types.type_names import type_of

Callable = Function | SetFunction | AggregateFunction | WindowFunction
Signature = tuple[str, tuple[str, ...]]
_VARIADIC = {"any": '"any"', "anyelement": "anyarray", "anycompatible": "anycompatiblearray"}


def callables() -> Iterator[Callable]:
    yield from FUNCTIONS
    yield from SET_FUNCTIONS
    yield from AGGREGATES
    yield from WINDOW_FUNCTIONS


def is_operator(each: Callable) -> bool:
    return not (each.name[0].isalpha() or each.name[0] == "_")


def signature(each: Callable) -> Signature:
    """Types as format_type() writes them."""
    types = [shown_type(family) for family in each.arguments]
    if each.is_variadic:
        types[-1] = _VARIADIC.get(each.arguments[-1], f"{types[-1]}[]")
    return each.name, tuple(types)


def shown_type(family: str) -> str:
    name = family.removesuffix("[]")
    if name not in TYPE_OIDS:
        return '"any"' if family == "any" else family
    ref = TypeRef(name, is_array=family.endswith("[]"))
    return "character" if ref == TypeRef("char") else type_of(ref).sql_name
