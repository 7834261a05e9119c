"""Random statements: planned, they answer as they do unplanned."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import Server
from tests.unit.sql.two_sides import TwoSides

CONDITIONS = {
    "a": (
        *("{t}.id = {n}", "{t}.id IN ({n}, {n}, {n})", "{t}.id > {n}", "{t}.id <= {n}", "{t}.x = {s}"),
        *("{t}.x IN ({s}, {s}, NULL)", "{t}.x > {s}", "{t}.x <= {s}", "{t}.y = {s}", "{t}.y > {s}"),
        *("{t}.y < {s}", "{t}.s = 's{n}'", "{t}.s > 's{n}'", "{t}.n = {s}.5", "{t}.n > {s}", "{t}.flag"),
        *("NOT {t}.flag", "{t}.x IS NULL", "{t}.x = {t}.y", "{t}.x > 3", "{t}.d > '2024-01-10'"),
        *("({t}.x = {s} OR {t}.y = {s})", "{t}.x = ANY ('{{1,2,NULL}}')", "{t}.y IS NOT NULL"),
        "EXISTS (SELECT 1 FROM b AS bb WHERE bb.a_id = {t}.id)",
        "NOT EXISTS (SELECT 1 FROM b AS bb WHERE bb.a_id = {t}.id AND bb.v > 'aa')",
        "{t}.id IN (SELECT a_id FROM b)",
        "({t}.id, {t}.x) IN (SELECT a_id, id % 8 FROM b)",
        "({t}.x, {t}.y) NOT IN (SELECT m, {s} FROM p WHERE m > {s})",
        "({t}.x, {t}.y) < ANY (SELECT i.y, i.x FROM a AS i WHERE i.flag = {t}.flag)",
        "{t}.x <> ALL (SELECT i.y FROM a AS i WHERE i.flag = {t}.flag)",
        "{t}.y >= ALL (SELECT i.x FROM a AS i WHERE i.y = {t}.x)",
        "{t}.id IN (SELECT a_id FROM b WHERE v = 'aa')",
        "{t}.x IN (SELECT m FROM p WHERE k = 'k1' AND m > {s})",
    ),
    "b": (
        *("{t}.id = {n}", "{t}.a_id = {n}", "{t}.a_id IN ({n}, {n})", "{t}.v = 'aa'", "{t}.c = 'x'"),
        *("{t}.v > 'aa'", "{t}.a_id > {n}", "{t}.a_id IS NULL", "{t}.id < {n}"),
    ),
    "p": (
        *("{t}.k = 'k1'", "{t}.k IN ('k1', 'k2')", "{t}.m = {s}", "{t}.k = 'k2' AND {t}.m = {s}"),
        *("{t}.m > {s}", "{t}.k > 'k1'", "{t}.k = 'k3' AND {t}.m > {s}"),
    ),
}
TIES = {
    ("a", "b"): ("{l}.id = {r}.a_id", "{l}.x = {r}.id", "{l}.y < {r}.id"),
    ("b", "a"): ("{l}.a_id = {r}.id", "{l}.id = {r}.x", "{l}.v = {r}.s"),
    ("a", "p"): ("{l}.x = {r}.m", "{l}.x = {r}.m AND {r}.k = 'k1'"),
    ("p", "a"): ("{l}.m = {r}.x", "{l}.m = {r}.id"),
    ("b", "p"): ("{l}.id = {r}.m", "{l}.v = {r}.k"),
    ("p", "b"): ("{l}.m = {r}.a_id", "{l}.k = {r}.v"),
    ("a", "a"): ("{l}.x = {r}.x AND {l}.y = {r}.y", "{l}.id = {r}.x", "{l}.n = {r}.n"),
}
ORDERS = {
    "a": ("{t}.id", "{t}.id DESC", "{t}.x, {t}.id", "{t}.x DESC, {t}.y, {t}.id DESC", "{t}.s, {t}.id"),
    "b": ("{t}.a_id, {t}.id", "{t}.id DESC", "{t}.v DESC, {t}.id DESC"),
    "p": ("{t}.k, {t}.m", "{t}.k DESC, {t}.m DESC", "{t}.m, {t}.k"),
}


@pytest.fixture(scope="module")
def two_sides(postgres: Server) -> Iterator[TwoSides]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    two_sides = TwoSides(Store(engine, env), postgres)
    yield two_sides
    two_sides.close()
    engine.close()


@pytest.mark.invariant("access-same")
@pytest.mark.parametrize("seed", range(20))
def test_a_planned_statement_answers_as_it_does_unplanned(two_sides: TwoSides, seed: int) -> None:
    random = Random(seed)
    for _ in range(12):
        text, is_ordered = statement(random)
        unplanned, planned = (two_sides.ours(text, is_planned=is_planned) for is_planned in (False, True))
        assert shown(planned, is_ordered) == shown(unplanned, is_ordered), text


def shown(answer: Any, is_ordered: bool) -> Any:
    return answer if is_ordered or isinstance(answer, str) else sorted(map(repr, answer))


def statement(random: Random) -> tuple[str, bool]:
    names = [random.choice("abp")]
    text = f"{names[0]} AS t0"
    for number in range(1, random.choice([1, 2, 2, 3])):
        left = random.randrange(len(names))
        right = random.choice([each for each in "abp" if (names[left], each) in TIES])
        tie = random.choice(TIES[names[left], right]).format(l=f"t{left}", r=f"t{number}")
        kind = random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        if kind == "FULL JOIN" and "<" in tie:
            kind = "JOIN"
        extra = (
            f" AND {condition(random, names, random.randrange(len(names)))}" if random.random() < 0.3 else ""
        )
        if kind == "FULL JOIN":
            extra = ""
        names.append(right)
        text += f" {kind} {right} AS t{number} ON {tie}{extra}"
    wanted = [condition(random, names, random.randrange(len(names))) for _ in range(random.randrange(4))]
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    columns = ", ".join(f"t{number}.{random.choice(COLUMNS[name])}" for number, name in enumerate(names))
    order, limit = "", ""
    if random.random() < 0.5:
        keys = [random.choice(ORDERS[name]).format(t=f"t{number}") for number, name in enumerate(names)]
        order = f" ORDER BY {', '.join(keys)}"
        limit = random.choice(["", f" LIMIT {random.randrange(6)}", " LIMIT 3 OFFSET 2"])
    return f"SELECT {columns} FROM {text}{where}{order}{limit}", bool(order)


COLUMNS = {"a": ("id", "x", "s", "n"), "b": ("id", "a_id", "v"), "p": ("k", "m", "t")}


def condition(random: Random, names: list[str], number: int) -> str:
    chosen = random.choice(CONDITIONS[names[number]])
    return chosen.format(t=f"t{number}", n=random.randrange(10, 62), s=random.randrange(8))
