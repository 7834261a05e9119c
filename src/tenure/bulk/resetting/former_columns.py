"""Which columns of a table's former version its present columns get their values from: pure.

    then                     now                        value
    a int  (id 1)            a int  (id 1)              a
    b int  (id 2)            c int  (id 2), renamed     b
    d text (id 3), dropped   d text (id 5), added       d: users know columns by their names
    e text (id 4), dropped   -                          -
    -                        f int  (id 6), added       what rows got that were there when f was added, or
                                                        else its default
    g text (id 7), dropped   g int  (id 8)              refused

A column whose type was changed in place has the same id: its values are those of the new type, too. One that
was replaced for its type has another id, and the former values may not be of the new type.

Walk: `resetting.former_rows`, `resetting.job` and `resetting.sorting` call `former_columns`.
"""

from tenure.base.errors import DatatypeMismatch
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.definitions import Column, Table, visible


def former_columns(then: Table, now: Table, at: Timestamp) -> dict[int, int]:
    """By id, for present columns that had values then; generated columns are left out."""
    found: dict[int, int] = {}
    for column in visible(now.columns):
        former = None if column.generated is not None else _former(then, now, column)
        if former is None:
            continue
        if former.id != column.id and former.type != column.type:
            raise DatatypeMismatch(
                f'table "{now.name}" cannot be reset: '
                f'column "{column.name}" had another type at {to_text(at)}',
                hint="INSERT INTO ... SELECT ... AS OF SYSTEM TIME can convert the values.",
            )
        found[column.id] = former.id
    return found


def _former(then: Table, now: Table, column: Column) -> Column | None:
    public = {each.id: each for each in visible(then.columns)}
    if column.id in public:
        return public[column.id]
    former = then.column_named(column.name)
    is_gone = former is not None and former.id not in {each.id for each in visible(now.columns)}
    return former if is_gone else None
