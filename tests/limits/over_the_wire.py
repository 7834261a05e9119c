"""The corpus as a client sees it: statements under a time-out, and another client beside.

    SELECT octet_length(($1 ~~ $2)::text)     each ends within `ENDS_SECONDS_MAX`, in an answer or an error
    SELECT 1                                  another client's: never later than `BEAT_SECONDS_MAX`

Walk: `tests.limits.__main__` calls `run`; `tests.limits.test_over_the_wire` a sample.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any, NamedTuple

import psycopg

from tenure.expr.function_table import FUNCTIONS
from tests.limits.calls import Subject, kind_of, surface
from tests.limits.values import pool
from tests.unit.sql.served import Served

TIMEOUT = "500ms"
ENDS_SECONDS_MAX = 1.5
BEAT_SECONDS_MAX = 0.25
PAUSE_SECONDS = 0.01

FAMILIES = frozenset(
    (
        "text",
        "numeric",
        "int2",
        "int4",
        "int8",
        "float8",
        "bool",
        "jsonb",
        "json",
        "text[]",
        "int4[]",
        "bytea",
    )
)


class Late(NamedTuple):
    statement: str
    names: tuple[str, ...]
    seconds: float


class Outcome(NamedTuple):
    calls: int
    late: list[Late]
    longest_beat_seconds: float


def subjects() -> list[Subject]:
    """Functions whose arguments a client can send as text."""
    ids = {each.id for each in FUNCTIONS}
    return [
        each
        for each in surface()
        if each.id.split(" ")[0] in ids and set(each.families) <= FAMILIES and each.families
    ]


def run(served: Served, chosen: list[Subject], *, size: int, calls: int, seed: int) -> Outcome:
    late: list[Late] = []
    count = 0
    with served.connect() as client, beating(served) as beats:
        client.execute(f"SET statement_timeout = '{TIMEOUT}'")
        for subject in chosen:
            rng = Random(f"{seed}{subject.id}")
            for _ in range(calls):
                names = tuple(rng.choice(list(pool(each, size))) for each in subject.families)
                count += 1
                seconds = _timed(client, subject, names, size)
                if seconds > ENDS_SECONDS_MAX:
                    late.append(Late(subject.id, names, seconds))
    return Outcome(count, late, max(beats, default=0.0))


def _timed(client: "psycopg.Connection[Any]", subject: Subject, names: tuple[str, ...], size: int) -> float:
    values = [
        _text(family, pool(family, size)[name]) for family, name in zip(subject.families, names, strict=True)
    ]
    statement = f"SELECT octet_length(({_call(subject)})::text)"
    started = monotonic()
    try:
        client.execute(statement.encode(), values).fetchall()
    except psycopg.OperationalError as error:
        if client.closed:
            raise AssertionError(f"{statement} with {names} ended the connection") from error
    except psycopg.Error:
        pass
    return monotonic() - started


def _text(family: str, value: Any) -> str:
    return kind_of(family).render(value)


def _call(subject: Subject) -> str:
    name = subject.id.partition("(")[0]
    casts = [f"%s::text::{family}" for family in subject.families]
    if name[0].isalpha() or name[0] == "_":
        return f'"{name}"({", ".join(casts)})'
    sign = name.replace("%", "%%")
    return f"{sign} {casts[0]}" if len(casts) == 1 else f"{casts[0]} {sign} {casts[1]}"


@contextmanager
def beating(served: Served) -> Iterator[list[float]]:
    """How long each of a client's short statements took, one after the other."""
    beats: list[float] = []
    stop = Event()

    def beat() -> None:
        with served.connect() as client:
            while not stop.wait(PAUSE_SECONDS):
                started = monotonic()
                client.execute("SELECT 1").fetchall()
                beats.append(monotonic() - started)

    thread = Thread(target=beat)
    thread.start()
    try:
        yield beats
    finally:
        stop.set()
        thread.join()
