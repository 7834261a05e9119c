"""The table of all functions and operators, by id and by name.

Walk: `expr.tree.overload_resolution` looks for overloads by name; `expr.tree.compiled` takes a function by
its id.
"""

from collections import defaultdict

from tenure.base.errors import UndefinedFunction
from tenure.expr.formats import format_functions
from tenure.expr.functions import (
    arithmetic,
    array_functions,
    callback_functions,
    catalog_functions,
    character_sets,
    comparison,
    id_functions,
    json_building,
    json_changes,
    json_functions,
    math_functions,
    privilege_functions,
    sequence_functions,
    session_functions,
    text_coding,
    text_functions,
    text_joining,
    time_arithmetic,
    time_functions,
    time_making,
    time_parts,
    transcendental,
)
from tenure.expr.functions.function import Function
from tenure.expr.patterns import regex_functions

FUNCTIONS: tuple[Function, ...] = (
    *comparison.functions(),
    *arithmetic.functions(),
    *math_functions.functions(),
    *transcendental.functions(),
    *text_functions.functions(),
    *text_coding.functions(),
    *character_sets.functions(),
    *text_joining.functions(),
    *regex_functions.functions(),
    *time_arithmetic.functions(),
    *time_functions.functions(),
    *time_making.functions(),
    *time_parts.functions(),
    *array_functions.functions(),
    *json_functions.functions(),
    *json_building.functions(),
    *json_changes.functions(),
    *format_functions.functions(),
    *id_functions.functions(),
    *sequence_functions.functions(),
    *session_functions.functions(),
    *catalog_functions.functions(),
    *callback_functions.functions(),
    *privilege_functions.functions(),
)

_BY_ID = {each.id: each for each in FUNCTIONS}
_BY_NAME: dict[str, list[Function]] = defaultdict(list)
for each in FUNCTIONS:
    _BY_NAME[each.name].append(each)
assert len(_BY_ID) == len(FUNCTIONS), "two functions have the same id"


def function_with_id(id: str) -> Function:
    try:
        return _BY_ID[id]
    except KeyError:
        raise UndefinedFunction(f"function {id} does not exist") from None


def functions_named(name: str) -> list[Function]:
    return _BY_NAME.get(name, [])
