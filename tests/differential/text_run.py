"""Texts and casts asked of both sides, in every way that a text becomes a value; errors say the same, too.

    literal     SELECT 'text'::type            constant    SELECT CAST('text' AS text)::type
    column      of a subquery, cast            parameter   $1::type, and $1::text::type; values in binary
    binary      what PostgreSQL has for the text in binary, given as a parameter; half of them broken
    inserted    into a column of the type       copied      by COPY, as text or CSV; then it is read
    zone        AT TIME ZONE 'text'             format      to_char, to_date, to_timestamp, to_number
    cast        SELECT 'text'::type::another

Walk: `test_texts` and `__main__` call `run` with the two sides.
"""

from dataclasses import dataclass, field
from random import Random

from tests.differential.comparison import Verdict, verdict
from tests.differential.run import EXECUTORS, STATEMENTS_PER_SETTING, Report
from tests.differential.sides import Answer, Side, Statement
from tests.differential.texts import MODIFIED, Texts
from tests.differential.values import ENUM, ENUM_LABELS, NASTY, quoted

WAYS = {
    **{"literal": 5, "constant": 2, "column": 4, "parameter": 3, "text parameter": 3, "binary parameter": 2},
    **{"inserted": 2, "copied": 1, "cast": 5, "zone": 1, "format": 5},
}
TABLE = "reading"
INTERNAL = "XX000"
"""PostgreSQL's for what it thought would never happen; ours is the client's fault."""
NOON = "2024-07-01 12:00:00+00"
PLACES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Europe/Moscow", "Australia/Lord_Howe"),
    *("Europe/London", "Asia/Kathmandu", "America/St_Johns", "UTC", "Pacific/Apia", "Africa/Monrovia"),
)
KINDS = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "char", "bytea"),
    *("uuid", "date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb", ENUM),
)


@dataclass
class TextDifference:
    statement: Statement
    ours: Answer
    theirs: Answer
    settings: tuple[str, str]

    @property
    def script(self) -> str:
        zone, executor = self.settings
        return (
            f"SET timezone = '{zone}'; SET tenure.executor = '{executor}';\n{self.statement.shown}\n"
            f"-- here:\n    {self.ours.shown}\n-- PostgreSQL:\n    {self.theirs.shown}"
        )


@dataclass
class TextReport(Report):
    unlike: list[TextDifference] = field(default_factory=list)


class TextRun:
    def __init__(self, ours: Side, theirs: Side, seed: int) -> None:
        self._ours, self._theirs = ours, theirs
        self._random = Random(seed)
        self._texts = Texts(self._random)
        self._settings = PLACES[0], EXECUTORS[0]
        self.report = TextReport()

    def run(self, count: int) -> TextReport:
        self._create()
        while self.report.count < count:
            if self.report.count % STATEMENTS_PER_SETTING == 0:
                self._choose_settings()
            (way,) = self._random.choices([*WAYS], [*WAYS.values()])
            if way == "zone" and self._settings[0] != "UTC":
                # Abbreviations of the session's own zone: docs/reference/differences.md.
                continue
            if way in ("copied", "inserted"):
                self._write(way)
            else:
                self._compare(self._statement(way))
        return self.report

    def _create(self) -> None:
        labels = ", ".join(map(quoted, ENUM_LABELS))
        columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(self._columns()))
        for side in (self._ours, self._theirs):
            side.must("SET client_min_messages = warning")
            side.must(f"CREATE TYPE {ENUM} AS ENUM ({labels})")
            side.must(f"CREATE TABLE {TABLE} (id int PRIMARY KEY DEFAULT 1, {columns})")
            side.learn_types()

    @staticmethod
    def _columns() -> list[str]:
        modified = [each for kinds in MODIFIED.values() for each in kinds]
        return [*KINDS, *modified, *(f"{kind}[]" for kind in KINDS)]

    def _choose_settings(self) -> None:
        turn = self.report.count // STATEMENTS_PER_SETTING
        zone, executor = self._settings = PLACES[turn // 3 % len(PLACES)], EXECUTORS[turn % 3]
        self._ours.must(f"SET tenure.executor = '{executor}'")
        for side in (self._ours, self._theirs):
            side.must(f"SET timezone = '{zone}'")

    def _statement(self, way: str) -> Statement:
        kind, text = self._texts.one()
        is_binary = self._random.random() < 0.3
        match way:
            case "literal":
                return Statement(f"SELECT {quoted(text)}::{kind}", is_binary=is_binary)
            case "constant":
                return Statement(f"SELECT CAST({quoted(text)} AS text)::{kind}")
            case "column":
                return Statement(f"SELECT t::{kind} FROM (VALUES ({quoted(text)}), (NULL)) v(t)")
            case "parameter":
                return Statement(f"SELECT $1::{kind}", (text,), is_binary=is_binary)
            case "text parameter":
                return Statement(f"SELECT $1::text::{kind}", (text,))
            case "binary parameter":
                return self._binary(kind, text, is_broken=is_binary)
            case "zone":
                zone = self._texts.zone()
                return Statement(f"SELECT {quoted(NOON)}::timestamptz AT TIME ZONE {quoted(zone)}")
            case "format":
                return Statement(self._texts.call())
            case _:
                return self._cast()

    def _binary(self, kind: str, text: str, *, is_broken: bool) -> Statement:
        found = self._theirs.ask(Statement(f"SELECT {quoted(text)}::{kind}", is_binary=True), is_raw=True)
        data = found.rows[0][0] if found.rows else b""
        if is_broken and data:
            at = self._random.randrange(len(data))
            piece = self._random.choice([b"", b"\0", b"\xff", data[at : at + 2]])
            data = data[:at] + piece + data[at + self._random.randrange(3) :]
        return Statement(f"SELECT $1::{kind}", data=data)

    def _column(self, kind: str) -> str:
        return f"c{self._columns().index(kind)}"

    def _cast(self) -> Statement:
        random = self._random
        kind, other = random.choice(KINDS), random.choice(KINDS)
        text = (
            random.choice(NASTY[kind]) if kind in NASTY and random.random() < 0.5 else self._texts.text(kind)
        )
        if other in MODIFIED and random.random() < 0.5:
            other = random.choice(MODIFIED[other])
        if random.random() < 0.1:
            kind, other, text = (
                f"{kind}[]",
                f"{other}[]",
                '{"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"}',
            )
        return Statement(f"SELECT {quoted(text)}::{kind}::{other}")

    def _write(self, way: str) -> None:
        kind, text = self._texts.one()
        column = self._column(kind)
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
        for side in (self._ours, self._theirs):
            side.must("BEGIN")
        written = Statement(f"COPY {TABLE} ({column}) FROM STDIN", copied=escaped + "\n")
        if self._random.random() < 0.4 and text:
            cell = '"' + text.replace('"', '""') + '"'
            written = Statement(f"COPY {TABLE} ({column}) FROM STDIN (FORMAT csv)", copied=cell + "\n")
        if way == "inserted":
            written = Statement(f"INSERT INTO {TABLE} ({column}) VALUES ({quoted(text)})")
        if self._compare(written) is Verdict.SAME:
            self._compare(Statement(f"SELECT {column} FROM {TABLE}"), before=written)
        for side in (self._ours, self._theirs):
            side.must("ROLLBACK")

    def _compare(self, statement: Statement, before: Statement | None = None) -> Verdict:
        ours, theirs = self._ours.ask(statement), self._theirs.ask(statement)
        report = self.report
        found = verdict(statement, ours, theirs)
        if theirs.sqlstate == INTERNAL and ours.message == theirs.message:
            found = Verdict.SAME
        elif found is Verdict.SAME and ours.message != theirs.message:
            found = Verdict.DIFFERENT
        report.count += 1
        report.verdicts[found] += 1
        report.errors += bool(theirs.sqlstate)
        if found is Verdict.REFUSED:
            report.refusals[ours.message] += 1
            report.refused.setdefault(ours.message, statement.shown)
        if found is Verdict.DIFFERENT:
            report.unlike.append(TextDifference(before or statement, ours, theirs, self._settings))
        return found
