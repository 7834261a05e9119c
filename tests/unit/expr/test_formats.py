"""to_char and its inverses write and read as PostgreSQL's do."""

from collections.abc import Sequence
from itertools import product

import pytest

from tests.unit.expr.oracle import Failure, Operand, Oracle, our_call, sql_call

_NUMBERS = "0|1|-1|12|-12.5|0.1|-0.01|1234.567|-123456.789|99.995|485|0.5|100"
_NUMBER_PATTERNS = (
    "9999.99|FM9999.99|9,999.9|0.00|9.99|000|S000|000S|999|L9,999.00|9PR|999PR|9MI|MI999|999MI|RN|FMRN|9th"
    '|999TH|FM9.99|FM999D99|FM0.0|9.99EEEE|99V99|9G999G999|FM0,000|"a"99" b"|SG999|PL999|$999.99|x9 y'
    "|FM999,999.00|099.9|FM990.099|99.9S|S99.9|FMS99.9|9S9|9.9.9|S9S|PR9|9PL|FM9PR||000,000.000|0999|FM0999.9"
)
_TIMES = "2024-02-29 13:05:09.123456|1999-12-31 23:59:59|2021-01-03 00:00:00|0987-06-15 12:00:00.5"
_TIME_PATTERNS = (
    "YYYY-MM-DD HH24:MI:SS|YYYY-MM-DD HH12:MI:SS AM|HH:MI:SS.MS a.m.|US|FF3|FF6|FF1|SSSS|Month DD, YYYY"
    "|FMMonth FMDD, YYYY|MON Mon mon|DAY Day day|DY Dy dy|FMDay|D ID DDD IDDD|W WW IW|IYYY IYY IY I"
    '|YYYY YYY YY Y|Y,YYY|CC|J|Q|RM|rm|FMRM|DDth DDTH FMDDth|"at" HH24"h"|TZ tz OF TZH:TZM|BC AD b.c.|month'
    '|MONTH|HH24MISS|yyyy/mm/dd|FMMI FMSS||YYYYMMDD|Dth|\\"quoted\\"|FXYYYY|p.m. PM|hh24:mi'
)
_INTERVALS = (
    "1 day 02:03:04.5|-1 day|25:00:00|1 year 2 mons|-00:00:01.5|-1 year -2 mons 3 days|-1 year|-13:00"
)
_INTERVAL_PATTERNS = (
    "HH24:MI:SS|HH12:MI AM|DD HH24|YYYY MM|MS US|SSSS|DDD|Day|FMHH24:FMMI|J Q CC|IYYY IYY IY I|IDDD|Y,YYY"
    "|W WW|YYY YY Y|RM rm FMRM|Month|D|TZ|BC"
)
_READ = (
    "2024-02-29=YYYY-MM-DD|29 Feb 2024=DD Mon YYYY|February 29, 2024=Month DD, YYYY|20240229=YYYYMMDD"
    "|2024/2/9=YYYY/MM/DD|24-02-29=YY-MM-DD|70-01-01=YY-MM-DD|2024-02-30=YYYY-MM-DD|2024-13-01=YYYY-MM-DD"
    "|x=YYYY|2024-060=YYYY-DDD|2024-02-29 13:05:09=YYYY-MM-DD HH24:MI:SS"
    '|2024-02-29 01:05 PM=YYYY-MM-DD HH12:MI PM|2024-02-29T13:05=YYYY-MM-DD"T"HH24:MI'
    "|2024-02-29 13:05:09.123=YYYY-MM-DD HH24:MI:SS.MS|2024-02-29 25:00=YYYY-MM-DD HH24:MI"
    "|12/31/1999=MM/DD/YYYY|31.12.99=DD.MM.YY|2024 02 29=YYYY-MM-DD|  2024-02-29=YYYY-MM-DD|2460370=J"
    "|2024-2-9 1:2:3=YYYY-MM-DD HH24:MI:SS|Thursday 29 FEB 2024=Day DD MON YYYY|2024=YYYY|2024-05=YYYY-MM"
    "|2024-02-29 05:00 +03=YYYY-MM-DD HH24:MI TZH|2024-02-29 13:00=YYYY-MM-DD HH12:MI|1 2024=MM YYYY"
)
_TO_NUMBER = (
    "12,454.8-=99G999D9S|-1,234.56=9,999.99|123=999|$1,234=L9,999|12.34=99.99|=999|abc=999|<12>=99PR"
    "|1234=99|0.5=9.9|  42=9999|-7=S9"
)

_DATES = (
    "2024-02-29|29 Feb 2024|20240229|x||2024-02-29 01:02:03|24/2/9|  2024 02 29|99|-5|1 2 3|12:34 pm|44 BC|0"
    "|03:04:05.678901 +02|2024-366|2023-366|XII 2024|Tue 29 Feb 2024|2,024-05-06|2024-02-30"
)
_DATE_PATTERNS = (
    "YYYY-MM-DD|DD Mon YYYY|YYYYMMDD|YYYY-MM-DD HH24:MI:SS|YYYY-DDD|Month YYYY|RM YYYY|YY/MM/DD|MM DD"
    "|HH12:MI AM|HH24:MI:SS.US TZH|Dy DD Mon YYYY|Y,YYY-MM-DD|J|Y|CC YY|YYYY-WW|FMDD FMMM YYYY|DDth"
    "|YYYY BC|SSSS|MS|D Q YYYY"
)
_NUMBER_TEXTS = (
    "12|-12|12-|12 -|<12>|1,234.5|1234.56|$12|x12| |.5|5.|+5|12th|1 2|1  2|--1|1e5|NaN|-99999999.99"
)
_NUMBER_READING = (
    "99|99S|S99|99MI|PL99|SG99|99PR|9,999.9|9999.9|FM9G999|999V99|$99|9.9|.9|99th"
    '|"x"99|x|L9|2000-01-01 0|FM9990.00'
)

Call = tuple[str, Operand, Operand]


def test_numbers_are_written_by_patterns_as_in_postgres(oracle: Oracle) -> None:
    calls = [
        *_written("numeric", _NUMBERS, _NUMBER_PATTERNS),
        *_written("float8", _NUMBERS, _NUMBER_PATTERNS),
        *_written("int4", "0|12|-485", _NUMBER_PATTERNS),
    ]
    _compare(oracle, calls)


def test_times_are_written_by_patterns_as_in_postgres(oracle: Oracle) -> None:
    calls = [
        *_written("timestamp", _TIMES, _TIME_PATTERNS),
        *_written("timestamptz", _TIMES, _TIME_PATTERNS),
        *_written("interval", _INTERVALS, _INTERVAL_PATTERNS),
    ]
    _compare(oracle, calls)


def test_times_are_read_by_patterns_as_in_postgres(oracle: Oracle) -> None:
    _compare(oracle, [*_read("to_date", _READ), *_read("to_timestamp", _READ)])


@pytest.mark.parametrize("name", ["to_date", "to_timestamp"])
def test_times_that_do_not_follow_their_patterns_are_read_as_in_postgres(oracle: Oracle, name: str) -> None:
    _compare(oracle, _crossed(name, _DATES, _DATE_PATTERNS))


def test_numbers_are_read_by_patterns_as_in_postgres(oracle: Oracle) -> None:
    _compare(oracle, _read("to_number", _TO_NUMBER))
    _compare(oracle, _crossed("to_number", _NUMBER_TEXTS, _NUMBER_READING))


def _written(kind: str, values: str, patterns: str) -> list[Call]:
    pairs = product(values.split("|"), patterns.split("|"))
    return [("to_char", Operand(value, kind), Operand(to, "text")) for value, to in pairs]


def _crossed(name: str, texts: str, patterns: str) -> list[Call]:
    pairs = product(texts.split("|"), patterns.split("|"))
    return [(name, Operand(text, "text"), Operand(by, "text")) for text, by in pairs]


def _read(name: str, pairs: str) -> list[Call]:
    split = [each.partition("=") for each in pairs.split("|")]
    return [(name, Operand(text, "text"), Operand(by, "text")) for text, _, by in split]


def _compare(oracle: Oracle, calls: Sequence[Call]) -> None:
    theirs = oracle.ask([sql_call(name, given) for name, *given in calls])
    mine = [our_call(name, given) for name, *given in calls]
    differing = [
        (name, value.sql, by.text, their, my)
        for (name, value, by), their, my in zip(calls, theirs, mine, strict=True)
        if their != my and my != Failure("0A000")
    ]
    assert differing == []
