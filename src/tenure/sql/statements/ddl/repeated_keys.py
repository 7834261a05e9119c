"""UNIQUE constraints of a new table that say the same as its primary key, or as each other, are one.

    CREATE TABLE t (id int PRIMARY KEY, CONSTRAINT k UNIQUE (id))       has the primary key "k" alone

The first one stays; it takes the name of a later one if it has none itself.

Walk: `statements.ddl.tables.create_table` -> `merged`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.catalog.changes.table_parts import NamedKeyColumn
from tenure.sql.text.parse import Tree, names, option


class Declared(NamedTuple):
    """A constraint as the statement has it."""

    tree: Tree
    beside: tuple[str, ...] = ()
    """The column that it stands beside."""

    @property
    def unique_key(self) -> tuple[object, ...] | None:
        """The columns and options of a UNIQUE constraint; None for others."""
        if option(self.tree, "contype") != "CONSTR_UNIQUE":
            return None
        columns = self.beside or tuple(names(self.tree.keys))
        return (columns, *(getattr(self.tree, each) for each in _ALSO), tuple(names(self.tree.including)))


_ALSO = ("deferrable", "initdeferred", "nulls_not_distinct")
"""The options by which unique constraints over the same columns differ."""


def merged(
    key: Sequence[NamedKeyColumn], key_name: str, declared: Sequence[Declared]
) -> tuple[str, list[Declared]]:
    """The primary key's name, and the constraints without those that repeat it or each other."""
    primary = (tuple(each.column for each in key), *(False for _ in _ALSO), ())
    stated = [each.tree.conname for each in declared if key and each.unique_key == primary]
    name = key_name or next(filter(None, stated), "")
    return name, list(_distinct(each for each in declared if not key or each.unique_key != primary))


def _distinct(declared: Iterator[Declared]) -> Iterator[Declared]:
    first: dict[tuple[object, ...], Declared] = {}
    others: list[Declared | tuple[object, ...]] = []
    for each in declared:
        key = each.unique_key
        if key is None:
            others.append(each)
        elif key not in first:
            first[key] = each
            others.append(key)
        elif not first[key].tree.conname:
            first[key] = each
    for one in others:
        yield one if isinstance(one, Declared) else first[one]
