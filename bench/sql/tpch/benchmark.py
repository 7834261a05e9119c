"""TPC-H beside PostgreSQL: are all 22 answers the same, and how long does each take?

    loaded     right after the import: everything lies in the lake
    changed    with some hundred changes on top, in the delta
    past       AS OF SYSTEM TIME before the changes: the answers are those of `loaded`
    measured   rounds in which both sides take turns, over base and delta; the least of each counts

The first time a question is asked on each side ("cold") is printed. The bar: no query is slower than
PostgreSQL's, which has its own defaults (two parallel workers, if there are cores for them).

Walk: `bench.__main__` -> `run`; `bench.sql.tpch_full` -> `measure` at scale 1.
"""

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import psycopg

from bench.bulk.places import node
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, peer
from bench.sql.tpch.loading import change, load, write_files
from bench.sql.tpch.queries import Question, questions
from bench.store.rounds import note

SCALE, QUICK_SCALE = 0.1, 0.002
ROUNDS = 3
TIMEOUT = "120s"


def run(quick: bool) -> list[Ratio]:
    return measure(QUICK_SCALE, rounds=1) if quick else measure(SCALE, rounds=ROUNDS)


def measure(scale: float, *, rounds: int) -> list[Ratio]:
    asked = questions(scale)
    with node() as ours, peer() as postgres:
        write_files(ours.files, scale)
        load(ours.sql, postgres, ours.files)
        sides = _Sides(ours.sql, postgres)
        loaded = {name: sides.both(name, question) for name, question in asked.items()}
        with ours.sql.connect() as connection:
            before = _now(connection)
        change(ours.sql, postgres)
        taken = [{name: sides.both(name, question) for name, question in asked.items()}]
        for name, question in asked.items():
            _check_past(ours.sql, before, name, question, loaded[name].rows)
        taken += [{name: sides.both(name, each) for name, each in asked.items()} for _ in range(rounds - 1)]
    for name, first in loaded.items():
        note(f"sql.tpch.{name}, cold: {first.ours * 1000:.0f} ms, PostgreSQL {first.theirs * 1000:.0f} ms")
    return [_ratio(name, scale, [each[name] for each in taken]) for name in asked]


class Answer(NamedTuple):
    rows: list[tuple[str, ...]]
    ours: float
    theirs: float


def _ratio(name: str, scale: float, answers: Sequence[Answer]) -> Ratio:
    return compare(
        f"sql.tpch.{name}, scale {scale:g}",
        ours=min(each.ours for each in answers) * 1000,
        peer=min(each.theirs for each in answers) * 1000,
        unit="ms",
        bar=Bar.AT_MOST,
        limit=1.0,
    )


class _Sides(NamedTuple):
    node: Place
    postgres: Place

    def both(self, name: str, question: Question) -> Answer:
        """Asks both, and compares."""
        mine, ours = _timed(self.node, question.sql)
        expected, theirs = _timed(self.postgres, question.sql)
        _check_same(name, question, mine, expected)
        return Answer(mine, ours, theirs)


def _timed(place: Place, sql: str) -> tuple[list[tuple[str, ...]], float]:
    with place.connect() as connection:
        connection.execute(f"SET statement_timeout = '{TIMEOUT}'")
        began = time.perf_counter()
        rows = connection.execute(sql.encode()).fetchall()
        return _plain(rows), time.perf_counter() - began


def _check_same(
    name: str, question: Question, mine: list[tuple[str, ...]], expected: list[tuple[str, ...]]
) -> None:
    if not question.is_ordered:
        mine, expected = sorted(mine), sorted(expected)
    assert mine == expected, f"{name}: {mine[:3]} ({len(mine)}), PostgreSQL {expected[:3]} ({len(expected)})"


def _check_past(place: Place, at: str, name: str, question: Question, rows: list[tuple[str, ...]]) -> None:
    with place.connect() as connection:
        connection.execute(f"BEGIN AS OF SYSTEM TIME '{at}'")
        found = _plain(connection.execute(question.sql.encode()).fetchall())
        connection.execute("COMMIT")
    _check_same(f"{name} of the past", question, found, rows)


def _now(connection: "psycopg.Connection[tuple[Any, ...]]") -> str:
    found = connection.execute("SELECT cluster_logical_timestamp()::text").fetchone()
    assert found is not None
    return str(found[0])


def _plain(rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """As text, so that 1.0 is not 1.00."""
    return [tuple(str(each) if isinstance(each, Decimal) else repr(each) for each in row) for row in rows]
