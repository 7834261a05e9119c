"""What a failing query needs, as a script: the tables it names, with as few rows as still make it fail.

Rows are left out by halves, in transactions that are rolled back on both sides.

Walk: `run` asks for the script of each difference.
"""

import re
from collections.abc import Callable

from tests.differential import world
from tests.differential.sides import Side, Statement
from tests.differential.values import quoted

ATTEMPTS_MAX = 60
_NAMED = re.compile(r"(?:FROM|JOIN|INTO|UPDATE|,)\s+([a-z]+)\b")


def needed(statement: Statement, ours: Side, theirs: Side, fails: Callable[[], bool]) -> list[str]:
    """The statements that come before a failing one; `fails` asks both sides again."""
    tables = [each for each in world.READ_TABLES if each in _NAMED.findall(statement.text)]
    if not tables:
        return []
    kept = {each: _keys(theirs, each) for each in tables}
    kept = _shrunk(kept, lambda trial: _fails_with(trial, ours, theirs, fails))
    script = [world.schema()[0] + ";"]
    for table in tables:
        mine = [
            each + ";" for each in world.schema() if re.match(rf"CREATE (TABLE|INDEX \w+ ON) {table} ", each)
        ]
        script += [*mine, *_rows(theirs, table, kept[table])]
    return script


Keys = dict[str, list[str]]


def _keys(side: Side, table: str) -> list[str]:
    key = f"({', '.join(world.KEYS[table])})::text"
    return [(row[0] or b"").decode() for row in side.must(f"SELECT {key} FROM {table}").rows]


def _shrunk(kept: Keys, fails: Callable[[Keys], bool]) -> Keys:
    attempts = 0
    for table in kept:
        size = (len(kept[table]) + 1) // 2
        while size and attempts < ATTEMPTS_MAX:
            for start in range(0, len(kept[table]), size):
                attempts += 1
                trial = {**kept, table: kept[table][:start] + kept[table][start + size :]}
                if fails(trial):
                    kept = trial
                    break
            else:
                size //= 2
    return kept


def _fails_with(kept: Keys, ours: Side, theirs: Side, fails: Callable[[], bool]) -> bool:
    for side in (ours, theirs):
        side.must("BEGIN")
        for table, keys in kept.items():
            side.must(f"DELETE FROM {table} WHERE {_others(table, keys)}")
    try:
        return fails()
    finally:
        for side in (ours, theirs):
            side.must("ROLLBACK")


def _others(table: str, keys: list[str]) -> str:
    listed = ", ".join(map(quoted, keys)) or "NULL"
    if not keys:
        return "true"
    first, *more = world.KEYS[table]
    text = f"{first}::text" if not more else f"'(' || {first} || ',' || {more[0]} || ')'"
    if not more:
        listed = ", ".join(map(quoted, (each.strip("()") for each in keys)))
    return f"{text} NOT IN ({listed})"


def _rows(side: Side, table: str, keys: list[str]) -> list[str]:
    condition = f"NOT ({_others(table, keys)})"
    found = side.must(f"SELECT * FROM {table} WHERE {condition}").rows
    rows = [
        "(" + ", ".join(quoted(None if each is None else each.decode()) for each in row) + ")"
        for row in found
    ]
    return [f"INSERT INTO {table} VALUES {', '.join(rows)};"] if rows else []
