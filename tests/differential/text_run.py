"""Texts and casts asked of both sides, in every way that a text becomes a value; errors say the same, too.

    literal     SELECT 'text'::type            constant    SELECT CAST('text' AS text)::type
    column      of a subquery, cast            parameter   $1::type, and $1::text::type; values in binary
    copied      COPY of the text into a column, which is then read
    cast        SELECT 'text'::type::another

Walk: `test_texts` and `__main__` call `run` with the two sides.
"""

from dataclasses import dataclass, field
from random import Random

from tests.differential.comparison import Verdict, verdict
from tests.differential.run import EXECUTORS, STATEMENTS_PER_SETTING, ZONES, Report
from tests.differential.sides import Answer, Side, Statement
from tests.differential.texts import MODIFIED, Texts
from tests.differential.values import ENUM, ENUM_LABELS, NASTY, quoted

WAYS = {"literal": 4, "constant": 2, "column": 3, "parameter": 2, "text parameter": 2, "copied": 1, "cast": 4}
TABLE = "reading"
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
        self._settings = ZONES[0], EXECUTORS[0]
        self.report = TextReport()

    def run(self, count: int) -> TextReport:
        self._create()
        while self.report.count < count:
            if self.report.count % STATEMENTS_PER_SETTING == 0:
                self._choose_settings()
            (way,) = self._random.choices([*WAYS], [*WAYS.values()])
            if way == "copied":
                self._copy()
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
        zone, executor = self._settings = ZONES[turn // 3 % 3], EXECUTORS[turn % 3]
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
            case _:
                return self._cast()

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

    def _copy(self) -> None:
        kind, text = self._texts.one()
        column = f"c{self._columns().index(kind)}"
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
        for side in (self._ours, self._theirs):
            side.must("BEGIN")
        copied = Statement(f"COPY {TABLE} ({column}) FROM STDIN", copied=escaped + "\n")
        if self._compare(copied) is Verdict.SAME:
            self._compare(Statement(f"SELECT {column} FROM {TABLE}"), copied=copied)
        for side in (self._ours, self._theirs):
            side.must("ROLLBACK")

    def _compare(self, statement: Statement, copied: Statement | None = None) -> Verdict:
        ours, theirs = self._ours.ask(statement), self._theirs.ask(statement)
        report = self.report
        found = verdict(statement, ours, theirs)
        if found is Verdict.SAME and ours.message != theirs.message:
            found = Verdict.DIFFERENT
        report.count += 1
        report.verdicts[found] += 1
        report.errors += bool(theirs.sqlstate)
        if found is Verdict.REFUSED:
            report.refusals[ours.message] += 1
            report.refused.setdefault(ours.message, statement.shown)
        if found is Verdict.DIFFERENT:
            report.unlike.append(TextDifference(copied or statement, ours, theirs, self._settings))
        return found
