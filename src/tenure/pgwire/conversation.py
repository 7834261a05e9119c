"""An open session's messages: each is answered at once, or by a talk if something must be waited for.

    P Parse      1                          B Bind     2
    D Describe   t, T or n                  C Close    3
    E Execute    D ... then C, I or s       S Sync     Z
    Q Query      T, D ..., C for each statement, Z     F FunctionCall    refused

Handlers get the whole input and the position of their message in it, so that nothing is copied and Execute
can see whether Sync comes next: then the statement ends its transaction by itself.

The short path matters most: Bind, Execute and Sync of a short statement make no generator and call the
session four times.

Invariant (commit-before-complete): CommandComplete of a statement that ends its transaction is written
only after its commit is done.

Walk: `pgwire.connection` calls the handlers of `HANDLERS`; they call the session
(`sql.session.answers.Client`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from tenure.base.errors import (
    InFailedTransaction,
    NotSupported,
    ProtocolViolation,
    QueryCanceled,
    UndefinedParameter,
)
from tenure.base.interruptible import checked_by
from tenure.pgwire.bound_statements import ALL_TEXT, BoundPortal, BoundStatements
from tenure.pgwire.copying import copy_in, copy_out
from tenure.pgwire.messages import (
    BIND_COMPLETE,
    CLOSE_COMPLETE,
    EMPTY_QUERY,
    INT4,
    NO_DATA,
    PARSE_COMPLETE,
    PORTAL_SUSPENDED,
    READY_FAILED,
    READY_IDLE,
    READY_IN_TRANSACTION,
    SYNC,
    Body,
    ReadText,
    command_complete,
    notification_response,
    parameter_description,
    parameter_statuses,
    read_bind,
    read_parse,
)
from tenure.pgwire.reports import error_response, notice_response
from tenure.pgwire.turns import Turns
from tenure.pgwire.values.binary import text_of
from tenure.pgwire.values.codecs import oid_of, type_with_oid
from tenure.pgwire.values.row_format import RowFormat
from tenure.pgwire.waits import CommitWait, InThread, Need, PauseWait, T, Talk
from tenure.sql.session.answers import Answer, BlockStatus, Client, CopyIn, NotShort, Pending, Portal
from tenure.sql.session.inline import INPUT_BYTES_MAX

ANSWER_BYTES_MAX = 64 * 1024
"""Rows to encode on the loop: some milliseconds. More rows are encoded in a thread."""

INLINE_TEXT_CHARS_MAX = 4_000
"""Longer statements are parsed and planned in a thread: on the loop these take a few milliseconds."""

ANSWERS_AT_ONCE = 100
"""Statements of one query string; then the output is written, and other clients have their turn."""

_STATEMENT, _PORTAL = ord("S"), ord("P")

_complete = lru_cache(maxsize=4096)(command_complete)


class Conversation:
    __slots__ = (
        "_bound",
        "_offset",
        "_read_text",
        "_reported",
        "_turns",
        "_unsynced",
        "client",
        "is_canceled",
        "output",
        "unsent_bytes",
    )

    def __init__(self, client: Client, output: list[bytes], turns: Turns) -> None:
        self.client = client
        self._turns = turns
        self.output = output
        self.unsent_bytes = 0
        """The bytes of rows and descriptions in `output`: the rest is small."""
        self.is_canceled = False
        self._bound = BoundStatements(client)
        self._follow_session()
        self._reported = client.parameters()
        self._offset = 0
        """Where in its query string the current statement begins, in characters."""
        self._unsynced = False
        """Whether a statement was executed that did not end its transaction."""

    def parse(self, data: bytes, at: int, stop: int) -> Talk[None] | None:
        name, text, oids = read_parse(data, at, stop, self._read_text)
        types = [type_with_oid(oid) for oid in oids]
        try:
            if len(text) > INLINE_TEXT_CHARS_MAX:
                raise NotShort
            self.client.prepare(name, text, types, inline=True)
        except NotShort:
            return self._parse_in_thread(partial(self.client.prepare, name, text, types))
        self.output.append(PARSE_COMPLETE)
        return None

    def _parse_in_thread(self, prepare: Callable[[], object]) -> Talk[None]:
        yield self._in_thread(prepare)
        self.output.append(PARSE_COMPLETE)

    def bind(self, data: bytes, at: int, stop: int) -> Talk[None] | None:
        name, statement_name, formats, raw, result_formats = read_bind(data, at, stop, self._read_text)
        statement = self._bound.statement(statement_name)
        if stop - at > INPUT_BYTES_MAX:
            decode = partial(statement.decode, statement_name, formats, raw)
            return self._bind_in_thread(name, statement_name, decode, result_formats)
        values = statement.decode(statement_name, formats, raw)
        try:
            portal = self.client.bind(name, statement_name, values, inline=True)
        except NotShort:
            return self._bind_in_thread(name, statement_name, lambda: values, result_formats)
        self._bound.bind(name, portal, statement.shape(portal.columns, result_formats))
        self.output.append(BIND_COMPLETE)
        return None

    def _bind_in_thread(
        self, name: str, statement: str, values: Callable[[], Sequence[Any]], formats: bytes
    ) -> Talk[None]:
        def read() -> Portal:
            self.client.start_reading()
            return self.client.bind(name, statement, values())

        portal = yield self._in_thread(read)
        shape = self._bound.statement(statement).shape(portal.columns, formats)
        self._bound.bind(name, portal, shape)
        self.output.append(BIND_COMPLETE)

    def describe(self, data: bytes, at: int, stop: int) -> None:
        kind, name = _kind_and_name(data, at, stop, self._read_text)
        statement = None if kind == _PORTAL else self._bound.statement(name)
        if statement is None:
            shape = self._bound.portal(name).shape
        else:
            shape = statement.shape(statement.prepared.columns, ALL_TEXT)
        if shape is not None and self.client.status is BlockStatus.FAILED:
            # The columns of a result are looked up in the catalog.
            raise InFailedTransaction
        if statement is not None:
            oids = [oid_of(type)[0] for type in statement.prepared.parameters]
            self.output.append(parameter_description(oids))
        if shape is None:
            self.output.append(NO_DATA)
        else:
            self.output.append(shape.description)
            self.unsent_bytes += len(shape.description)

    def close(self, data: bytes, at: int, stop: int) -> None:
        kind, name = _kind_and_name(data, at, stop, self._read_text)
        if kind == _PORTAL:
            self._bound.close_portal(name)
        else:
            self._bound.close_statement(name)
        self.output.append(CLOSE_COMPLETE)

    def execute(self, data: bytes, at: int, stop: int) -> Talk[None] | None:
        end = data.find(0, at, stop)
        if end != stop - 5:
            raise ProtocolViolation("invalid message format")
        name = self._read_text(data[at:end]) if end > at else ""
        limit = max(0, INT4.unpack_from(data, end + 1)[0])
        ends = data.startswith(SYNC, stop)
        bound = self._bound.portal(name)
        if not ends:
            self._unsynced = True
        if not bound.portal.is_short:
            return self._run_portal(name, bound, limit, ends=ends)
        try:
            answer = self.client.execute(name, limit, ends=ends, inline=True)
        except NotShort:
            return self._run_portal(name, bound, limit, ends=ends, is_short=False)
        if (
            type(answer) is not Answer
            or not answer.is_done
            or answer.copy is not None
            or answer.size_bytes > ANSWER_BYTES_MAX
        ):
            return self._run_portal(name, bound, limit, ends=ends, begun=answer)
        self._send_rows(bound.shape, answer)
        self._complete(answer, len(answer.rows))
        return None

    def _run_portal(
        self,
        name: str,
        bound: BoundPortal,
        limit: int,
        *,
        ends: bool,
        is_short: bool | None = None,
        begun: Answer | Pending | None = None,
    ) -> Talk[None]:
        """The long path: in a thread, or with a commit, or in several batches, or with COPY."""
        is_short = bound.portal.is_short if is_short is None else is_short
        sent = 0
        while True:
            if begun is None:
                left = limit - sent if limit else 0
                execute = partial(self.client.execute, name, left, ends=ends)
                begun = yield from self._called(execute, is_short=is_short)
            try:
                answer = yield from _settled(begun)
            except NotShort:
                # Its commit met a conflict: nothing was sent yet, and it can be repeated where waiting is
                # allowed.
                begun, is_short = None, False
                continue
            if answer.copy is not None:
                answer = yield from self._copy(answer)
            sent += len(answer.rows)
            if answer.size_bytes > ANSWER_BYTES_MAX and bound.shape is not None:
                encode = partial(bound.shape.encode, answer.rows)
                if self.client.notices:
                    self._tell_notices()
                self._send((yield self._in_thread(encode, can_stop=not answer.is_done)))
            else:
                self._send_rows(bound.shape, answer)
            if answer.is_done:
                return self._complete(answer, sent)
            if limit and sent >= limit:
                self.output.append(PORTAL_SUSPENDED)
                return None
            begun = None
            yield Need.FLUSH
            if answer.pause is not None:
                yield PauseWait(answer.pause)

    def _copy(self, answer: Answer) -> Talk[Answer]:
        copy = answer.copy
        assert copy is not None
        self._tell_notices()
        if isinstance(copy, CopyIn):
            begun = yield from copy_in(copy, self.output, self._in_thread)
            return (yield from _settled(begun))
        tag = yield from copy_out(copy, self.output, self._in_thread)
        return Answer((), tag)

    def _send_rows(self, shape: RowFormat | None, answer: Answer) -> None:
        if self.client.notices:
            self._tell_notices()
        if answer.rows and shape is not None:
            self._send(shape.encode(answer.rows))

    def _send(self, encoded: bytes) -> None:
        self.output.append(encoded)
        self.unsent_bytes += len(encoded)

    def _complete(self, answer: Answer, sent: int) -> None:
        if self.client.changed:
            self._follow_session()
        if answer.is_empty:
            self.output.append(EMPTY_QUERY)
        elif answer.counts:
            self.output.append(_complete(f"{answer.tag} {sent}"))
        else:
            self.output.append(_complete(answer.tag))

    def sync(self, data: bytes, at: int, stop: int) -> Talk[None] | None:
        return self._finish()

    def _finish(self) -> Talk[None] | None:
        """Commits what is left to commit. If nothing is left, a cancel that comes now is too late."""
        try:
            pending = self.client.sync(inline=True)
        except NotShort:
            return self._end(self._in_thread(self.client.sync))
        if pending is not None:
            return self._end(CommitWait(pending))
        self.ready()
        return None

    def _end(self, first: InThread | CommitWait) -> Talk[None]:
        pending = yield first
        if isinstance(first, CommitWait):
            pending = first.pending.result()
        if pending is not None:
            yield from _settled(pending)
        self.ready()

    def query(self, data: bytes, at: int, stop: int) -> Talk[None]:
        body = Body(data, at, stop, self._read_text)
        text = body.string()
        body.end()
        return self._query(text)

    def _query(self, text: str) -> Talk[None]:
        """All statements are one implicit transaction; the last one ends it."""
        self._bound.close_statement("")
        try:
            yield from self._statements(text)
        finally:
            # Neither Bind nor Execute finds its statement or portal.
            self._bound.close_statement("")
        yield from self._finish() or ()

    def _statements(self, text: str) -> Talk[None]:
        if len(text) > INLINE_TEXT_CHARS_MAX:
            statements = yield self._in_thread(partial(self.client.split, text))
        else:
            statements = self.client.split(text)
        if not statements:
            self.output.append(EMPTY_QUERY)
        end = 0
        for number, statement in enumerate(statements, 1):
            self._offset = max(0, text.find(statement, end))
            end = self._offset + len(statement)
            yield from self._simple(statement, ends=number == len(statements))
            if len(self.output) > ANSWERS_AT_ONCE or self._turns.is_over():
                yield Need.FLUSH
        self._offset = 0

    def _simple(self, statement: str, *, ends: bool) -> Talk[None]:
        client = self.client
        is_short = len(statement) <= INLINE_TEXT_CHARS_MAX
        prepared = yield from self._called(partial(client.prepare, "", statement, ()), is_short=is_short)
        if prepared.parameters:
            raise UndefinedParameter("there is no parameter $1")
        portal = yield from self._called(partial(client.bind, "", "", ()), is_short=True)
        shape = None if portal.columns is None else self._bound.text_shape(portal.columns)
        if shape is not None:
            self._tell_notices()
            self.output.append(shape.description)
        self._unsynced |= not ends
        self._bound.bind("", portal, shape)
        yield from self._run_portal("", self._bound.portal(""), 0, ends=ends)
        self._bound.close_portal("")

    def flush(self, data: bytes, at: int, stop: int) -> None:
        """The output is written after each piece of input anyway."""

    def function_call(self, data: bytes, at: int, stop: int) -> None:
        raise NotSupported("the function call message is not supported", hint="Use SELECT.")

    def fail(self, error: BaseException) -> None:
        """Tells the session, which rolls back an implicit transaction, then the client."""
        self._tell_notices()
        self.client.failed(error)
        self.output.append(error_response(error, offset=self._offset, encoding=self._bound.encoding))
        self._offset = 0
        self._unsynced = False
        if self.client.status is BlockStatus.IDLE:
            self._bound.forget_portals()

    def ready(self) -> None:
        client = self.client
        if client.notices:
            self._tell_notices()
        if client.changed:
            self._follow_session()
            self._report(client.changed)
            client.changed.clear()
        status = client.status
        if status is BlockStatus.IDLE:
            self._bound.forget_portals()
            if client.has_arrivals:
                self.tell_arrivals()
            self.output.append(READY_IDLE)
        elif status is BlockStatus.FAILED:
            self.output.append(READY_FAILED)
        else:
            self.output.append(READY_IN_TRANSACTION)
        self._unsynced = False

    def tell_arrivals(self) -> None:
        """Sends notifications of LISTEN."""
        encoding = self._bound.encoding
        for each in self.client.take_arrivals():
            self.output.append(notification_response(each.pid, each.channel, each.payload, encoding))

    def _follow_session(self) -> None:
        self._bound.follow_session()
        encoding = self._bound.encoding
        self._read_text = text_of if encoding.is_utf8 else encoding.decode

    def _report(self, settings: dict[str, str]) -> None:
        """A setting that has the value last reported is not reported again."""
        news = {name: value for name, value in settings.items() if self._reported.get(name) != value}
        self._reported |= news
        self.output.append(parameter_statuses(news, self._bound.encoding))

    def _tell_notices(self) -> None:
        encoding = self._bound.encoding
        self.output += [notice_response(each, encoding) for each in self.client.notices]
        self.client.notices.clear()

    def _called(self, call: Callable[..., T], *, is_short: bool) -> Talk[T]:
        """Inline where it is short, in a thread otherwise."""
        if is_short:
            self._stop_if_canceled()
            try:
                return call(inline=True)
            except NotShort:
                pass
        result: T = yield self._in_thread(call)
        return result

    def _in_thread(self, call: Callable[[], Any], *, can_stop: bool = True) -> InThread:
        """Stops if it is canceled before it begins, or while a function computes; but not the rest of a
        statement that may be committed.
        """

        def run() -> Any:
            if not can_stop:
                return call()
            self._stop_if_canceled()  # it may have waited for a thread
            with checked_by(self.client.check_time, self.client.env):
                return call()

        client = self.client
        is_inside = self._unsynced or client.status is not BlockStatus.IDLE or client.holds_locks
        return InThread(run, is_inside, can_stop)

    def _stop_if_canceled(self) -> None:
        if self.is_canceled:
            raise QueryCanceled("canceling statement due to user request")


def _settled(answer: Answer | Pending) -> Talk[Answer]:
    while not isinstance(answer, Answer):
        yield CommitWait(answer)
        answer = answer.result()
    return answer


def _kind_and_name(data: bytes, at: int, stop: int, read_text: ReadText) -> tuple[int, str]:
    if data.find(0, at + 1, stop) != stop - 1:
        raise ProtocolViolation("invalid message format")
    kind, name = data[at], read_text(data[at + 1 : stop - 1])
    if kind not in (_STATEMENT, _PORTAL):
        raise ProtocolViolation(f"invalid subtype {kind} of a DESCRIBE or CLOSE message")
    return kind, name


Handler = Callable[[Conversation, bytes, int, int], Talk[None] | None]

HANDLERS: dict[int, Handler] = {
    ord("P"): Conversation.parse,
    ord("B"): Conversation.bind,
    ord("D"): Conversation.describe,
    ord("C"): Conversation.close,
    ord("E"): Conversation.execute,
    ord("S"): Conversation.sync,
    ord("Q"): Conversation.query,
    ord("H"): Conversation.flush,
    ord("F"): Conversation.function_call,
}
