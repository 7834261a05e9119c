"""A session that knows a dozen statements, enough to see all that its door can do.

    select $1 + 1, label, null       short; typed parameters and columns
    series N                         N rows in batches of BATCH, in a thread
    insert ...                       commits through a `Pending`; "retried": twice, "refused": never;
                                     "returning": with a row that is too large for the loop
    insert held                      its commit is decided once it is `released`
    wait                             waits in a thread until it is cancelled or `released`
    compute                          the same, but keeps its place
    copy t from stdin, to stdout     text
    fail                             an error with every field
    notice, set name value, begin, commit, rollback

Walk: `tests.unit.pgwire` and `tests.fuzz_wire` put it behind a real connection or server.
"""

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from tenure.base.env import SystemEnv
from tenure.base.errors import OutOfMemory, QueryCanceled, TenureError, UserError
from tenure.cluster.notifications import Arrival
from tenure.expr import type_of
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import UTF8
from tenure.expr.types.type_names import parse_type_name
from tenure.sql.session.answers import (
    Answer,
    BlockStatus,
    CopyFormat,
    Endpoints,
    Notice,
    NotShort,
    Pending,
    ResultColumn,
    Timeouts,
)

BATCH = 100
NO_TIMEOUTS = Timeouts()
SERIES_MAX = 1_000_000
HELD_SECONDS = 10


def type_named(name: str) -> Type:
    return type_of(parse_type_name(name))


INT4, TEXT, INSTANT = type_named("int4"), type_named("text"), type_named("timestamptz")
THREE_COLUMNS = (
    ResultColumn("number", INT4, 42, 1),
    ResultColumn("label", TEXT),
    ResultColumn("nothing", TEXT),
)
ONE_COLUMN = (ResultColumn("n", INT4),)


class ToyError(UserError):
    def __init__(self, sqlstate: str, message: str, **fields: object) -> None:
        super().__init__(message, hint=str(fields.pop("hint", "")), detail=str(fields.pop("detail", "")))
        self.sqlstate = sqlstate
        vars(self).update(fields)


@dataclass
class ToyStatement:
    text: str
    parameters: Sequence[Type] = ()
    columns: Sequence[ResultColumn] | None = None


@dataclass
class ToyPortal:
    text: str
    columns: Sequence[ResultColumn] | None
    is_short: bool
    values: Sequence[Datum]
    given: int = 0


class ToyCommit:
    """A commit in another thread; the first `tries - 1` times it must be tried again. 0: it is refused."""

    def __init__(
        self, log: list[str], answer: Answer, tries: int, *, held_until: threading.Event | None = None
    ) -> None:
        self._log = log
        self._answer = answer
        self._tries = tries
        self._held_until = held_until

    def submit(self, on_done: Callable[[], None]) -> None:
        if self._tries == 0:
            raise ToyError("54000", "commit too large")
        self._log.append("submitted")
        threading.Thread(target=self._decide, args=(on_done,)).start()

    def _decide(self, on_done: Callable[[], None]) -> None:
        if self._held_until is not None:
            self._held_until.wait(HELD_SECONDS)
        on_done()

    def take_back(self, error: TenureError) -> bool:
        return False

    def result(self) -> Answer | Pending:
        if self._tries > 1:
            return ToyCommit(self._log, self._answer, self._tries - 1)
        self._log.append("committed")
        return self._answer


class ToyCopyIn:
    format = CopyFormat.TEXT
    columns = 2

    def __init__(self, toys: "Toys") -> None:
        self._toys = toys
        self._data = b""

    def write(self, data: bytes) -> None:
        if b"bad" in data:
            raise ToyError("22P02", "bad row")
        self._data += data

    def finish(self) -> Answer | Pending:
        self._toys.table += self._data.splitlines(keepends=True)
        return Answer((), f"COPY {self._data.count(bytes([10]))}")

    def fail(self, message: str) -> None:
        raise QueryCanceled(f"COPY from stdin failed: {message}")


class ToyCopyOut:
    format = CopyFormat.TEXT
    columns = 2

    def __init__(self, toys: "Toys") -> None:
        self._rows = toys.table

    def batches(self) -> Iterable[Sequence[bytes]]:
        for start in range(0, len(self._rows), 2):
            yield self._rows[start : start + 2]

    def tag(self) -> str:
        return f"COPY {len(self._rows)}"


class ToyBuffers:
    """What the door said it holds."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.unsent: list[int] = []
        self.message_bytes_max = 1 << 40

    def receive(self, size_bytes: int) -> None:
        if size_bytes > self.message_bytes_max:
            raise OutOfMemory("no room for the message")
        self.received.append(size_bytes)

    def leave_unsent(self, size_bytes: int) -> None:
        self.unsent.append(size_bytes)


class ToyClient:
    def __init__(self, toys: "Toys", user: str, options: dict[str, str]) -> None:
        self.status = BlockStatus.IDLE
        self.notices: list[Notice] = []
        self.doing = "what the toy does"
        self.changed: dict[str, str] = {}
        self.zone: tzinfo = UTC
        self.encoding = UTF8
        self.has_arrivals = False
        self.memory = ToyBuffers()
        self.user = user
        self.is_superuser = user == "root"
        self.holds_locks = False
        self.received_at: list[float | None] = []
        self.options = options
        self.log: list[str] = toys.log
        self.timeouts_now = toys.timeouts
        self.is_closed = False
        self.batches_made = 0
        self._toys, self.env = toys, toys.env
        self._statements: dict[str, ToyStatement] = {}
        self._portals: dict[str, ToyPortal] = {}
        self._canceled = threading.Event()

    def take_arrivals(self) -> list[Arrival]:
        return []

    def check_arrivals(self) -> None:
        pass

    def on_arrival(self, call: Callable[[], None]) -> None:
        pass

    def parameters(self) -> dict[str, str]:
        return {"server_version": "18.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}

    def timeouts(self) -> Timeouts:
        return self.timeouts_now

    def split(self, text: str) -> Sequence[str]:
        if "syntax" in text:
            raise ToyError("42601", 'syntax error at or near "syntax"', position=text.index("syntax") + 1)
        return [each.strip() for each in text.split(";") if each.strip()]

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> ToyStatement:
        if inline and "slowly" in text:
            raise NotShort
        if name and name in self._statements:
            raise ToyError("42P05", f'prepared statement "{name}" already exists')
        statement = self._statements[name] = _statement(_lowered(text.strip()), types)
        return statement

    def prepared(self, name: str) -> ToyStatement:
        if name not in self._statements:
            raise ToyError("26000", f'prepared statement "{name}" does not exist')
        return self._statements[name]

    def bind(
        self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False
    ) -> ToyPortal:
        found = self.prepared(statement)
        if inline and "slowly" in found.text:
            raise NotShort
        is_short = not re.match("series|wait|compute|copy", found.text)
        made = self._portals[portal] = ToyPortal(found.text, found.columns, is_short, values)
        return made

    def portal(self, name: str) -> ToyPortal:
        if name not in self._portals:
            raise ToyError("34000", f'portal "{name}" does not exist')
        return self._portals[name]

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> Answer | Pending:
        found = self.portal(portal)
        if inline and "slowly" in found.text:
            raise NotShort
        self.log.append(f"{found.text} ends={ends}")
        if self.status is BlockStatus.FAILED and found.text not in ("commit", "rollback"):
            raise ToyError("25P02", "current transaction is aborted")
        return self._answer(found, limit)

    def _answer(self, portal: ToyPortal, limit: int) -> Answer | Pending:
        text = portal.text
        match text.split():
            case []:
                return Answer((), "", is_empty=True)
            case ["select", "instant"]:
                return Answer([(datetime(2026, 7, 1, 12, tzinfo=UTC),)], "SELECT", counts=True)
            case ["select", *_]:
                value = portal.values[0] if portal.values else None
                number = value + 1 if isinstance(value, int) and abs(value) < 2**31 - 1 else 1
                return Answer([(number, "hällo", None)], "SELECT", counts=True)
            case ["series", count] if count.isdecimal():
                return self._series(portal, min(int(count[:9]), self._toys.series_max), limit)
            case ["insert", "returning"]:
                returned = Answer([(1,)], "INSERT 0 1", size_bytes=1 << 30)
                return ToyCommit(self.log, returned, 1)
            case ["insert", "held"]:
                self._toys.waiting.set()
                return ToyCommit(self.log, Answer((), "INSERT 0 1"), 1, held_until=self._toys.released)
            case ["insert", *rest]:
                tries = {"refused": 0, "retried": 2}.get("".join(rest), 1)
                return ToyCommit(self.log, Answer((), "INSERT 0 1"), tries)
            case ["wait"]:
                with self._toys.env.waiting():
                    return self._wait()
            case ["compute", *_]:
                return self._wait()
            case ["copy", _, "from", "stdin"]:
                return Answer((), "", copy=ToyCopyIn(self._toys))
            case ["copy", _, "to", "stdout"]:
                return Answer((), "", copy=ToyCopyOut(self._toys))
            case ["crash"]:
                raise ZeroDivisionError("a bug")
            case ["fail"]:
                raise ToyError(
                    "23505",
                    'duplicate key value violates unique constraint "t_pkey"',
                    detail="Key (id)=(1) already exists.",
                    hint="Try another.",
                    position=3,
                    schema="public",
                    table="t",
                    column="id",
                    constraint="t_pkey",
                )
            case _:
                return self._utility(text)

    def _series(self, portal: ToyPortal, count: int, limit: int) -> Answer:
        self._check_canceled()
        self.batches_made += 1
        stop = min(count, portal.given + min(limit or BATCH, BATCH))
        rows = [(n,) for n in range(portal.given, stop)]
        portal.given = stop
        return Answer(rows, "SELECT", is_done=stop == count, counts=True)

    def _wait(self) -> Answer:
        self._toys.waiting.set()
        while not self._toys.released.wait(0.01):
            self._check_canceled()
        return Answer((), "WAIT")

    def _check_canceled(self) -> None:
        if self._canceled.is_set():
            self._canceled.clear()
            raise QueryCanceled("canceling statement due to user request")

    def _utility(self, text: str) -> Answer:
        match text.split():
            case ["begin"]:
                self.status = BlockStatus.IN_TRANSACTION
            case ["commit" | "rollback" as word]:
                is_failed, self.status = self.status is BlockStatus.FAILED, BlockStatus.IDLE
                return Answer((), "ROLLBACK" if is_failed else word.upper())
            case ["set", name, value]:
                self.changed[name] = value
                self.zone = ZoneInfo(value) if name == "TimeZone" else self.zone
            case ["notice"]:
                self.notices.append(Notice("look", severity="WARNING", sqlstate="01000", hint="there"))
        return Answer((), text.split()[0].upper())

    def sync(self, *, inline: bool = False) -> Pending | None:
        self._canceled.clear()
        return None

    def failed(self, error: BaseException | None = None) -> None:
        self._canceled.clear()
        self.log.append("failed")
        if self.status is BlockStatus.IN_TRANSACTION:
            self.status = BlockStatus.FAILED

    def close_prepared(self, name: str) -> None:
        self._statements.pop(name, None)

    def close_portal(self, name: str) -> None:
        self._portals.pop(name, None)

    def received(self, at: float | None) -> None:
        self.received_at.append(at)

    def start_reading(self) -> None:
        self._canceled.clear()

    def check_time(self) -> None:
        if self._canceled.is_set():
            raise QueryCanceled("canceling statement due to user request")

    def cancel(self) -> None:
        self._canceled.set()

    def close(self) -> None:
        self.is_closed = True


def _lowered(text: str) -> str:
    """Clients write BEGIN; but settings have capital letters."""
    return text if text.startswith("set") else text.lower()


def _statement(text: str, types: Sequence[Type | None]) -> ToyStatement:
    if text == "select instant":
        return ToyStatement(text, (), (ResultColumn("at", INSTANT),))
    if text.startswith("select"):
        given = [*types, *[None] * text.count("$")][: text.count("$")]
        return ToyStatement(text, [type or INT4 for type in given], THREE_COLUMNS)
    return ToyStatement(text, (), ONE_COLUMN if re.match("series|insert returning", text) else None)


@dataclass
class Toys:
    """The clients of a server, and what they share."""

    table: list[bytes] = field(default_factory=lambda: [b"1\ta\n", b"2\tb\n", b"3\tc\n"])
    clients: list[ToyClient] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    timeouts: Timeouts = NO_TIMEOUTS
    series_max: int = SERIES_MAX
    env: SystemEnv = field(default_factory=SystemEnv)
    waiting: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def open(
        self, *, user: str, database: str, options: dict[str, str], endpoints: Endpoints, pid: int
    ) -> ToyClient:
        if database == "missing":
            raise ToyError("3D000", 'database "missing" does not exist')
        self.clients.append(ToyClient(self, user, options))
        return self.clients[-1]


class LetIn:
    """Nobody needs a password."""

    def login(self, *, user: str, address: str, binding: bytes | None) -> None:
        return None
