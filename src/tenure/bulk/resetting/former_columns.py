"""Which columns of a table's former version its present columns get their values from: pure.

    then                     now                        value
    a int  (id 1)            a int  (id 1)              a
    b int  (id 2)            c int  (id 2), renamed     b
    d text (id 3), dropped   d text (id 5), added       d: users know columns by their names
    e text (id 4), dropped   -                          -
    -                        f int  (id 6), added       what rows got that were there when f was added, or
                                                        else its default
    g text (id 7)            g int  (id 8)              refused

A column whose type was changed in place has the same id: its values are those of the new type, too. One that
was replaced for its type has another id, and the former values may not be of the new type. It takes the name
of the one that it replaces in one version, so the versions in between tell which one that was, also if one of
the two was renamed.

Walk: `resetting.former_rows` and `resetting.job` call `former_columns`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tenure.base.errors import DatatypeMismatch
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.definitions import Column, Table, visible


def former_columns(versions: Sequence[Table], at: Timestamp) -> dict[int, int]:
    """By id, for present columns that had values then; generated columns are left out.

    `versions` are the table's own, from the one of that time to the present one.
    """
    then, now = versions[0], versions[-1]
    former = _by_name_again(then, now, _followed(versions))
    found: dict[int, int] = {}
    for column in visible(now.columns):
        source = None if column.generated is not None else former.get(column.id)
        if source is None:
            continue
        if source.id != column.id and source.type != column.type:
            raise DatatypeMismatch(
                f'table "{now.name}" cannot be reset: '
                f'column "{column.name}" had another type at {to_text(at)}',
                hint="INSERT INTO ... SELECT ... AS OF SYSTEM TIME can convert the values.",
            )
        found[column.id] = source.id
    return found


def _followed(versions: Sequence[Table]) -> dict[int, Column]:
    """The columns of then by the ids that they have now, from one version to the next."""
    former = {each.id: each for each in visible(versions[0].columns)}
    for before, after in pairwise(versions):
        shown = {each.id for each in visible(after.columns)}
        gone = {each.name: each.id for each in visible(before.columns) if each.id not in shown}
        stems = {each.id: gone.get(each.name, each.id) for each in visible(after.columns)}
        former = {id: former[stem] for id, stem in stems.items() if stem in former}
    return former


def _by_name_again(then: Table, now: Table, followed: Mapping[int, Column]) -> dict[int, Column]:
    """With the columns that were dropped, and are there again by the same name."""
    taken = {each.id for each in followed.values()}
    dropped = {each.name: each for each in visible(then.columns) if each.id not in taken}
    again = {each.id: dropped[each.name] for each in visible(now.columns) if each.name in dropped}
    return {**again, **followed}
