"""One side of a comparison: a connection, asked by libpq itself, so that nothing is read or changed between.

An `Answer` is what came: the tag, columns with names and types, values as the wire has them; or a SQLSTATE.

Walk: `run` asks both sides each `Statement`; `comparison` judges.
"""

from collections import Counter
from collections.abc import Iterable
from select import select
from typing import NamedTuple

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGresult

from tests.differential.values import ENUM

Row = tuple[bytes | None, ...]
ROWS_SHOWN = 6
ARRAYS = [
    "1000",
    "1005",
    "1007",
    "1009",
    "1015",
    "1016",
    "1021",
    "1022",
    "1182",
    "1185",
    "1231",
    "2951",
    "3807",
]
"""The numbers of types that are arrays."""


class Statement(NamedTuple):
    text: str
    parameters: tuple[str | None, ...] = ()
    kind: str = "query"
    is_ordered: bool = False
    """The order of the rows is determined."""
    has_one_error: bool = True
    """Whether an error is determined, too: where several could come first, any of them may."""
    has_close_floats: bool = False
    """Sums of floats depend on the order in which they are added."""
    is_binary: bool = False
    data: bytes | None = None
    """The only parameter, in binary."""
    copied: str = ""
    """What COPY ... FROM STDIN is given."""

    @property
    def shown(self) -> str:
        given = f"   -- given {list(self.parameters)}" if self.parameters else ""
        given += f"   -- given {self.data!r} in binary" if self.data is not None else ""
        given += f"   -- copied {self.copied!r}" if self.copied else ""
        return f"{self.text};{given}"


class Answer(NamedTuple):
    sqlstate: str = ""
    message: str = ""
    tag: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    """Name and type of each."""
    rows: tuple[Row, ...] = ()

    @property
    def shown(self) -> str:
        return self.shown_without(())

    def shown_without(self, known: Iterable[Row]) -> str:
        """The answer as text, but for the rows that the other side has, too."""
        if self.sqlstate:
            return f"{self.sqlstate} {self.message}"
        names = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        rows = [_row_text(each) for each in (Counter(self.rows) - Counter(known)).elements()]
        return "\n    ".join(
            [f"{self.tag} ({names})", *rows[:ROWS_SHOWN], *(["..."] if len(rows) > ROWS_SHOWN else [])]
        )


def _row_text(row: Row) -> str:
    return " | ".join("NULL" if each is None else each.decode("utf8", "backslashreplace") for each in row)


class Side:
    def __init__(self, dsn: str) -> None:
        # libpq's own way to connect would hold the interpreter, which the node has to answer with.
        self._session = psycopg.connect(dsn, autocommit=True)
        self._connection = self._session.pgconn
        self.user_types: dict[str, str] = {}

    def close(self) -> None:
        self._session.close()

    def must(self, text: str) -> Answer:
        answer = self.ask(Statement(text))
        assert not answer.sqlstate, f"{text}: {answer.shown}"
        return answer

    def learn_types(self) -> None:
        """Learns the numbers of the types that users made; they are told by their names instead."""
        for name in (ENUM, f"{ENUM}[]"):
            ((_, number),) = self.must(f"SELECT NULL::{name}").columns
            self.user_types[number] = name

    def ask(self, statement: Statement, *, is_raw: bool = False) -> Answer:
        """`is_raw`: values as they came, also where parts of them are nobody's promise."""
        connection, text = self._connection, statement.text.encode()
        if statement.data is not None:
            formats = [pq.Format.BINARY]
            result = connection.exec_params(text, [statement.data], param_formats=formats)
        elif statement.parameters or statement.is_binary:
            given = [None if each is None else each.encode() for each in statement.parameters]
            result = connection.exec_params(text, given, result_format=int(statement.is_binary))
        else:
            result = connection.exec_(text)
        if result.status == pq.ExecStatus.COPY_OUT:
            return self._copied_out()
        if result.status == pq.ExecStatus.COPY_IN:
            return self._copied_in(statement.copied.encode())
        return self._answer(result, is_raw=is_raw)

    def _copied_out(self) -> Answer:
        lines: list[Row] = []
        while (got := self._connection.get_copy_data(1))[0] >= 0:
            if got[0]:
                lines.append((bytes(got[1]),))
            else:
                self._wait()
        return self._end()._replace(rows=tuple(lines))

    def _copied_in(self, data: bytes) -> Answer:
        self._connection.put_copy_data(data)
        self._connection.put_copy_end()
        return self._end()

    def _end(self) -> Answer:
        """What comes after COPY's data."""
        answer = Answer()
        while True:
            while self._connection.is_busy():
                self._wait()
            result = self._connection.get_result()
            if result is None:
                return answer
            answer = self._answer(result)

    def _wait(self) -> None:
        """libpq itself would hold the interpreter while it waits."""
        select([self._connection.socket], [], [])
        self._connection.consume_input()

    def _answer(self, result: PGresult, *, is_raw: bool = False) -> Answer:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
            message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
            return Answer(state or "lost", message.decode("utf8", "replace"))
        columns = tuple(
            ((result.fname(at) or b"").decode(), self._type(result.ftype(at))) for at in range(result.nfields)
        )
        rows = tuple(
            tuple(
                result.get_value(row, at) if is_raw else self._value(result, row, at, columns[at][1])
                for at in range(result.nfields)
            )
            for row in range(result.ntuples)
        )
        return Answer(tag=(result.command_status or b"").decode(), columns=columns, rows=rows)

    @staticmethod
    def _value(result: PGresult, row: int, at: int, kind: str) -> bytes | None:
        value = result.get_value(row, at)
        if value is None or result.fformat(at) != pq.Format.BINARY:
            return value
        if kind == f"{ENUM}[]":
            # An array in binary says the number of its element's type, which is not compared.
            return value[:4] + value[12:]
        # And whether there may be NULLs in it: of a slice, PostgreSQL does not look again.
        return value[:4] + value[8:] if kind in ARRAYS else value

    def _type(self, oid: int) -> str:
        return self.user_types.get(str(oid), str(oid))
