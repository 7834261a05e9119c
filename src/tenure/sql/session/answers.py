"""The interface between a door and a SQL session.

A door (`pgwire`) owns bytes, sockets and formats; a session owns statements, transactions and
values. Between them go values in Python, described by `expr` types:

    door                                  session
    Parse      ─► prepare(name, text, types) ─► Prepared: parameters, columns
    Bind       ─► bind(portal, name, values) ─► Portal: columns
    Execute    ─► execute(portal, limit)     ─► Answer: rows, tag; or Pending: a commit under way
    Sync       ─► sync()                     ─► None, or Pending
    Query      ─► split(text), then for each: prepare, bind, execute
    Cancel     ─► cancel(), from any thread

A session runs in one thread at a time, but not always in the same one. Short statements run on the door's own
loop (`inline`), where nothing may wait: a statement that would have to wait raises `NotShort` before it has
any effect, and the door calls again from a thread. A commit made inline comes back as a `Pending`: the door
submits it, and asks for its result when `on_done` was called.

Walk: `pgwire.conversation` calls the methods of `Client`; `sql.clients.session.Session` is one.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.base.memory import Account
from tenure.cluster.notifications import Arrival
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import Encoding


class ResultColumn(NamedTuple):
    """One column of a result."""

    name: str
    type: Type
    table: int = 0
    """The descriptor's id, where it is a table's column."""
    number: int = 0
    """And the column's id."""


class BlockStatus(Enum):
    """As ReadyForQuery tells it."""

    IDLE = "I"
    IN_TRANSACTION = "T"
    FAILED = "E"
    """In a transaction block that an error has ended: only its end is accepted (25P02)."""


class Answer(NamedTuple):
    rows: Sequence[Sequence[Datum]]
    tag: str
    """The command tag: "INSERT 0 1"; where `counts`, only its first word."""
    is_done: bool = True
    """False: more rows are there for the next call with the same portal."""
    counts: bool = False
    """The number of rows sent since Execute belongs to the tag: "SELECT 5"."""
    copy: "CopyIn | CopyOut | None" = None
    is_empty: bool = False
    """The query string held no statement: EmptyQueryResponse."""
    size_bytes: int = 0
    """The approximate size of the rows in bytes."""
    stream: "RowStream | None" = None
    """Where the rows come from by and by."""
    pause: "Pause | None" = None
    """No more rows are there now: what to wait for before the next call with the same portal."""


class RowStream(Protocol):
    """Rows that come by and by, as the result of a statement: a changefeed without a sink."""

    def take(self, count: int, account: Account | None) -> Sequence[Sequence[Datum]]:
        """The rows that are there, at most so many; its memory is charged to the account."""
        ...

    @property
    def is_done(self) -> bool: ...

    @property
    def pause(self) -> "Pause | None":
        """What to wait for before the next `take`; None: there are rows."""
        ...

    def close(self) -> None: ...


class Pause(Protocol):
    """A wait for rows that needs no thread."""

    seconds: float
    """After which time to ask again in any case."""

    def begin(self, on_ready: Callable[[], None]) -> None:
        """Calls back once, from any thread, when it is worth to ask again; maybe at once, or never."""
        ...


class Pending(Protocol):
    """A commit under way."""

    def submit(self, on_done: Callable[[], None]) -> None:
        """Hands it to the committer and returns; `on_done` is called from another thread, once."""
        ...

    def take_back(self, error: TenureError) -> bool:
        """Gives the commit up unless it was sent; returns whether it did. `result` then raises the error. If
        the commit was submitted, `on_done` is called.
        """
        ...

    def result(self) -> "Answer | Pending":
        """After `on_done`: the answer, or another try that is under way. Raises what went wrong; NotShort if
        the statement is to be run once more, in a thread.
        """
        ...


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


@runtime_checkable
class CopyIn(Protocol):
    """COPY ... FROM STDIN: the client's data, in pieces of any length, text in UTF-8."""

    format: CopyFormat
    columns: int

    def write(self, data: bytes) -> None: ...

    def finish(self) -> "Answer | Pending":
        """The client is done: the rows are in, the tag is "COPY n"."""
        ...

    def fail(self, message: str) -> None:
        """The client gave up. Raises QueryCanceled (57014)."""
        ...


@runtime_checkable
class CopyOut(Protocol):
    """COPY ... TO STDOUT; ends with a tag, "COPY n"."""

    format: CopyFormat
    columns: int

    def batches(self) -> Iterable[Sequence[bytes]]:
        """Some rows at a time, each row with its newline: clients rely on one row per message. In the
        binary format the header is part of the first, the trailer of the last.
        """
        ...

    def tag(self) -> str: ...


class Prepared(Protocol):
    @property
    def parameters(self) -> Sequence[Type]: ...

    @property
    def columns(self) -> Sequence[ResultColumn] | None:
        """None: it returns no rows."""
        ...


class Portal(Protocol):
    @property
    def columns(self) -> Sequence[ResultColumn] | None: ...

    @property
    def is_short(self) -> bool:
        """It may be tried inline."""
        ...


class NotShort(Exception):
    """Raised inline, before any effect that lasts: run it again in a thread."""


class Notice(NamedTuple):
    """A message beside the answer; severity is NOTICE, WARNING, INFO or LOG."""

    message: str
    severity: str = "NOTICE"
    sqlstate: str = "00000"
    detail: str = ""
    hint: str = ""


class Endpoints(NamedTuple):
    """The two addresses of a client's connection; empty if there is none."""

    client_address: str = ""
    client_port: int = 0
    server_address: str = ""
    server_port: int = 0


class Timeouts(NamedTuple):
    """After how many seconds without a word the door ends the session; 0: never."""

    idle_session: float = 0.0
    idle_in_transaction: float = 0.0
    transaction: float = 0.0
    """The same for the transaction that is open: what is left of its transaction_timeout."""
    statement: float = 0.0
    """How long a statement may take from when the door has received it."""


class Buffers(Protocol):
    """The interface by which the door reports the memory it holds for a session."""

    def receive(self, size_bytes: int) -> None:
        """A message of so many bytes is coming, or 0: it has been dealt with. Raises OutOfMemory (53200)."""
        ...

    def leave_unsent(self, size_bytes: int) -> None:
        """So many bytes wait for the client to take them."""
        ...


class Client(Protocol):
    """One client's session, as its door knows it. Errors are TenureErrors with their SQLSTATE; those that
    name a table have the name of its schema in `schema`, beside `table`, `column` and `constraint`.
    """

    @property
    def status(self) -> BlockStatus: ...

    @property
    def is_superuser(self) -> bool: ...

    @property
    def env(self) -> Env:
        """Runs calls that go on when their caller has stopped waiting."""
        ...

    @property
    def holds_locks(self) -> bool:
        """Whether others may wait for this session's next step, even outside of a transaction."""
        ...

    @property
    def memory(self) -> Buffers: ...

    @property
    def doing(self) -> str:
        """The text of its current or last statement without secrets, for logs."""
        ...

    @property
    def notices(self) -> list[Notice]:
        """The door removes them and sends them before the answer."""
        ...

    @property
    def changed(self) -> dict[str, str]:
        """Reported settings (TimeZone, client_encoding, application_name ...) that have changed: the same."""
        ...

    @property
    def zone(self) -> tzinfo:
        """The session's time zone, for timestamptz as text; the door asks when `changed` is not empty."""
        ...

    @property
    def encoding(self) -> Encoding:
        """The client's encoding; the same."""
        ...

    @property
    def has_arrivals(self) -> bool:
        """Whether notifications (NOTIFY) wait to be sent; outside of transactions the door sends them."""
        ...

    def take_arrivals(self) -> Sequence[Arrival]: ...

    def check_arrivals(self) -> None:
        """Raises Terminated if some were lost."""
        ...

    def on_arrival(self, call: Callable[[], None]) -> None:
        """Has a function called, from another thread, when the first of them has come."""
        ...

    def parameters(self) -> dict[str, str]:
        """All reported settings, for the start."""
        ...

    def split(self, text: str) -> Sequence[str]:
        """The statements of a query string, each as it stands in the text; empty ones are left out. Several
        are one implicit block, up to `sync` or `failed`. Raises SyntaxFault (42601).
        """
        ...

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> Prepared:
        """Keeps it under a name; "" is overwritten, another one must be new (42P05). Binding its names may
        have to wait for a lease: then NotShort, where it is tried inline.
        """
        ...

    def prepared(self, name: str) -> Prepared:
        """Raises 26000 if there is none."""
        ...

    def bind(
        self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False
    ) -> Portal: ...

    def portal(self, name: str) -> Portal:
        """Raises 34000 if there is none."""
        ...

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> "Answer | Pending":
        """Runs a portal, or goes on with it. `limit` is a number of rows, 0 is all the session cares to
        give at once: the door calls again while `is_done` is false.

        `ends`: this is the last before Sync, so an implicit transaction may be committed with it (and
        run again by itself on 40001).
        """
        ...

    def sync(self, *, inline: bool = False) -> "Pending | None":
        """Ends an implicit transaction that is open: commits it."""
        ...

    def failed(self, error: BaseException | None = None) -> None:
        """The door is about to send an error: what was implicit is rolled back, a block counts as failed, and
        what the error names by numbers gets its names.
        """
        ...

    def close_prepared(self, name: str) -> None: ...

    def close_portal(self, name: str) -> None: ...

    def received(self, at: float | None) -> None:
        """The next call was received then, by the monotonic clock: it may have waited in a queue."""
        ...

    def cancel(self) -> None:
        """From any thread: the statement under way fails with 57014, soon. It is under way until the
        last of its rows was asked for, or its COPY has ended.
        """
        ...

    def start_reading(self) -> None:
        """Parameters are about to be read in a thread: from here on their time counts as a statement's."""
        ...

    def check_time(self) -> None:
        """Raises if what is under way was canceled, or its time is up. Asked by functions while they
        compute, and by waits."""
        ...

    def timeouts(self) -> Timeouts:
        """As the session's settings say now; asked for a few times a second."""
        ...

    def close(self) -> None:
        """The client is gone: rolls back, releases locks."""
        ...


class Clients(Protocol):
    def open(
        self, *, user: str, database: str, options: dict[str, str], endpoints: Endpoints, pid: int
    ) -> Client:
        """Raises 3D000 if there is no such database; `user` is who has logged in, `pid` what its client
        knows the session by.
        """
        ...
