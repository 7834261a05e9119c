"""Columns that a wrong name may have meant: PostgreSQL's hint, by the same measure.

Walk: `sql.bind.values` asks when a column is missing.
"""

from typing import NamedTuple

from tenure.sql.bind.scope import Item, QueryLevel

_DISTANCE_MAX = 3
"""Letters to change; a name that differs in more is no suggestion."""


class Match(NamedTuple):
    table: str
    column: str

    def __str__(self) -> str:
        return f'the column "{self.table}.{self.column}"'


def hint(level: QueryLevel, name: str, table: str = "") -> str:
    """The hint with similar columns, of the named table or of any; "" if none is similar."""
    found: list[Match] = []
    nearest = _DISTANCE_MAX + 1
    for item in (each for owner in level.ancestors() for each in owner.all_items):
        penalty = distance(table, item.name) if table else 0
        for column in _names(item):
            changes = distance(name, column)
            if changes > len(name) // 2 or changes + penalty > nearest:
                continue
            if changes + penalty < nearest:
                nearest, found = changes + penalty, [Match(item.name, column)]
            elif found:
                # Three that are equally near say nothing: only a nearer one would.
                found = [] if len(found) == 2 else [*found, Match(item.name, column)]
    return f"Perhaps you meant to reference {' or '.join(map(str, found))}." if found else ""


def _names(item: Item) -> list[str]:
    return [each.name for each in item.columns if not each.is_hidden]


def distance(one: str, other: str) -> int:
    """Levenshtein's: letters added, left out or changed."""
    if abs(len(one) - len(other)) > _DISTANCE_MAX:
        return _DISTANCE_MAX + 1
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        above, row = row, [at]
        for place, wanted in enumerate(other):
            row.append(min(above[place] + (letter != wanted), above[place + 1] + 1, row[place] + 1))
    return row[-1]
