"""The session's time zone: what timestamptz is read, written and taken apart by, as in PostgreSQL."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tenure.expr import Context
from tenure.expr.tree.build import call, cast
from tenure.expr.types import zone_words
from tenure.expr.types.zones import zone_named
from tests.unit.expr.oracle import CONTEXT, Answer, Failure, Operand, Oracle, named, our_call, ours, sql_call

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "UTC+3"]
SEED = 20
LOCAL = [
    *(
        "2024-03-31 02:30:00",
        "2024-10-27 02:30:00",
        "2024-03-10 02:15",
        "2024-11-03 01:30",
        "1900-01-01 12:00",
    ),
    *("2024-02-29 23:59:59.999999", "2024-04-07 01:45:00", "2024-10-06 02:15:00", "2030-07-01 00:00"),
]
INSTANTS = [*LOCAL, "2024-03-31 01:00:00+00", "2024-11-03 05:59:59.5+00", "1950-06-01 00:00 Europe/London"]
INTERVALS = ["1 day", "24:00:00", "1 mon", "-1 mon -1 day", "1 year 3 days 01:30:00", "-12:30:00"]
UNITS = ["hour", "day", "week", "month", "year", "minute", "epoch", "timezone", "timezone_hour", "dow"]


@pytest.fixture(params=ZONES)
def zone(oracle: Oracle, request: pytest.FixtureRequest) -> Iterator[str]:
    oracle.connection.execute(f"SET TimeZone = '{request.param}'")
    yield request.param
    oracle.connection.execute("SET TimeZone = 'UTC'")


def test_text_and_casts_follow_the_zone(oracle: Oracle, zone: str) -> None:
    context = replace(CONTEXT, zone=zone_named(zone))
    asked: list[tuple[str, Callable[[], Answer]]] = []
    for text in INSTANTS:
        operand = Operand(text, "timestamptz")
        asked.append((operand.sql, lambda operand=operand: ours(lambda: operand.built, context)))  # type: ignore[misc]
        for target in ("text", "date", "time", "timestamp", "varchar(12)"):
            asked.append(_cast(operand, target, context))
    for text in LOCAL:
        asked.append(_cast(Operand(text, "timestamp"), "timestamptz", context))
        asked.append(_cast(Operand(text, "date"), "timestamptz", context))
        asked.append(_cast(Operand(f'{{"{text}",NULL}}', "timestamp[]"), "timestamptz[]", context))
        asked.append(_cast(Operand(f'{{"{text}"}}', "timestamptz[]"), "text[]", context))
        asked.append(_cast(Operand(f'{{"{text}"}}', "timestamptz[]"), "text", context))
    _compare(oracle, asked)


def _cast(operand: Operand, target: str, context: Context) -> tuple[str, Callable[[], Answer]]:
    return f"({operand.sql})::{target}", lambda: ours(lambda: cast(operand.built, named(target)), context)


def test_functions_follow_the_zone(oracle: Oracle, zone: str) -> None:
    context = replace(CONTEXT, zone=zone_named(zone))
    chance = random.Random(SEED)
    instants = [Operand(each, "timestamptz") for each in INSTANTS]
    locals_ = [Operand(each, "timestamp") for each in LOCAL]
    days = [Operand(each, "date") for each in LOCAL]
    calls: list[tuple[str, tuple[Operand, ...]]] = []
    for at in instants:
        other, local, day = chance.choice(instants), chance.choice(locals_), chance.choice(days)
        calls += [("age", (at, other)), ("=", (at, local)), ("<", (day, at)), ("concat", (at, local))]
        calls += [(name, (at, Operand(by, "interval"))) for name in "+-" for by in INTERVALS]
        calls += [("date_trunc", (Operand(unit, "text"), at)) for unit in UNITS[:6]]
        calls += [(name, (Operand(unit, "text"), at)) for unit in UNITS for name in ("extract", "date_part")]
        calls += [("date_trunc", (Operand("day", "text"), at, Operand("Asia/Tokyo", "text")))]
        calls += [("to_json", (at,)), ("to_jsonb", (at,)), ("||", (Operand("x", "text"), at))]
        calls += [("timezone", (Operand(each, "text"), at)) for each in ("Asia/Tokyo", "+02", "UTC-5")]
    asked = [(sql_call(name, given), _call(name, given, context)) for name, given in calls]
    _compare(oracle, asked)


REFUSED = Failure("0A000")
ABBREVIATED = ["IST", "EST", "BST", "MSK", "CEST", "LMT", "WIB", "GMT", "AST"]


@pytest.mark.parametrize("place", ["Asia/Kolkata", "Europe/Dublin", "America/Halifax", "Asia/Jakarta"])
def test_abbreviations_are_those_of_the_session_or_refused(oracle: Oracle, place: str) -> None:
    oracle.connection.execute(f"SET TimeZone = '{place}'")
    context = replace(CONTEXT, zone=zone_named(place))
    asked: list[tuple[str, Callable[[], Answer]]] = []
    for word in ABBREVIATED:
        literal = Operand(f"2024-07-01 12:00 {word}", "timestamptz")
        asked.append((literal.sql, lambda literal=literal: ours(lambda: literal.built, context)))  # type: ignore[misc]
        for at in (Operand(INSTANTS[0], "timestamptz"), Operand(LOCAL[0], "timestamp")):
            given = (Operand(word, "text"), at)
            asked.append((sql_call("timezone", given), _call("timezone", given, context)))
    theirs = oracle.ask([sql for sql, _ in asked])
    oracle.connection.execute("SET TimeZone = 'UTC'")
    pairs = [(sql, answer, ask()) for (sql, ask), answer in zip(asked, theirs, strict=True)]
    refused = [each for each in pairs if each[2] == REFUSED]
    assert [each for each in pairs if each[1] != each[2] and each not in refused] == []
    assert 0 < len(refused) < len(pairs) / 2


def test_all_abbreviations_of_all_places_are_known() -> None:
    spoken = {
        (datetime(year, month, 1, tzinfo=ZoneInfo(name)).tzname() or "").lower()
        for name in available_timezones()
        for year in range(1900, 2038, 3)
        for month in (1, 7)
    }
    words = {word for word in spoken if word.isalpha()}
    known = {*zone_words.LOCAL, *zone_words.STANDARD, *zone_words.SUMMER, *zone_words.PLACES}
    assert words - known - zone_words.EVERYWHERE == set()


def _call(name: str, given: Sequence[Operand], context: Context) -> Callable[[], Answer]:
    return lambda: our_call(name, given, context)


def test_a_literal_without_a_zone_waits_for_the_session() -> None:
    tree = call("=", Operand("2024-07-01 00:00", "timestamptz").built, Operand("2024-06-30 22:00+00").built)
    berlin = replace(CONTEXT, zone=zone_named("Europe/Berlin"))
    assert [ours(lambda: tree, each) for each in (CONTEXT, berlin)] == [("f", "boolean"), ("t", "boolean")]


def _compare(oracle: Oracle, asked: Sequence[tuple[str, Callable[[], Answer]]]) -> None:
    theirs = oracle.ask([sql for sql, _ in asked])
    pairs = [(sql, answer, ask()) for (sql, ask), answer in zip(asked, theirs, strict=True)]
    assert [each for each in pairs if each[1] != each[2]] == []
