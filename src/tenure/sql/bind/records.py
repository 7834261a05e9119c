"""Rows as values: only their fields can be selected.

    SELECT (f(x)).n                                    a field of a call
    SELECT (s.keys).n FROM (SELECT f(x) AS keys) s     a field of a column that is such a row
    SELECT (t).a FROM t                                a field of a table's row

A column that is a row is kept as one column for each field, whose names no statement can spell; it can
not be returned. (Drivers of JDBC ask for primary keys in this way.)

Walk: `sql.bind.expressions` comes here for `(value).field`, `sql.bind.targets` for calls in select lists.
"""

from collections.abc import Iterable

from tenure.base.errors import NotSupported, UndefinedColumn, WrongObjectType
from tenure.expr.tree.build import Typed
from tenure.sql.bind.scope import QueryLevel, column, column_of
from tenure.sql.bind.set_calls import set_columns, set_name
from tenure.sql.text.parse import Tree, items, kind, names

_SEPARATOR = "\0"
"""Between the name of a column and that of its field: no identifier has it."""


def field(base: Tree, name: str, level: QueryLevel) -> Typed:
    location = getattr(base, "location", -1)
    if called := set_name(base):
        found = dict(set_columns(base, level, called))
        if len(found) > 1 and name in found:
            return found[name]
        if len(found) > 1:
            raise UndefinedColumn(
                f'could not identify column "{name}" in record data type', position=location + 1
            )
    if kind(base) == "ColumnRef" and all(kind(each) == "String" for each in items(base.fields)):
        *path, title = names(base.fields)
        part = f"{title}{_SEPARATOR}{name}"
        source = _of_item(level, path, part, location) if path else column(level, part, location)
        if source is None and not path and _is_whole_row(level, title, location):
            source = column_of(level, [title], name, location)
        if source is not None:
            return source
    operand = level.expression(base)
    raise WrongObjectType(
        f"column notation .{name} applied to type {operand.type.sql_name}, which is not a composite type",
        position=location + 1,
    )


def _is_whole_row(level: QueryLevel, name: str, location: int) -> bool:
    if column(level, name, location) is not None:
        return False
    return any(each.has_name and each.name == name for owner in level.ancestors() for each in owner.items)


def _of_item(level: QueryLevel, path: list[str], part: str, location: int) -> Typed | None:
    try:
        return column_of(level, path, part, location)
    except UndefinedColumn:
        return None


def fields_of_call(tree: Tree, name: str, level: QueryLevel) -> list[tuple[str, Typed]] | None:
    """The columns that stand for a select list's call of a function with several; None if it is none."""
    called = set_name(tree)
    if not called:
        return None
    found = set_columns(tree, level, called)
    if len(found) == 1:
        return [(name, found[0][1])]
    return [(f"{name}{_SEPARATOR}{title}", typed) for title, typed in found]


def refuse_rows(titles: Iterable[str], location: int = -1) -> None:
    """Raises NotSupported (0A000) if a row would have to be returned as a value."""
    if any(_SEPARATOR in each for each in titles):
        raise NotSupported("rows as values are not supported", position=location + 1)
