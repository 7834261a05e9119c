"""One connection as a state machine: bytes in, bytes out, and its waits in between.

    receive(data)    reads all messages it can          output    bytes to be written
    wait             what must happen first, or None    resume    it has happened: goes on
    is_closing       write the output and close

            ┌ start-up: a talk ┐  ┌── ready: each message is handled at once or starts a talk ──┐
    error   FATAL, closes         extended: skips to Sync · simple: ReadyForQuery follows

One message is handled at a time; later input is kept until then.

Invariant (never-raises): no input makes an exception leave `receive` or `resume`; the client gets an
answer or the connection closes.
Invariant (skips-to-sync): after an error in an extended message nothing is executed before Sync.

Walk: `pgwire.door` calls `receive`, `resume` and `close`; messages go to `pgwire.conversation`, the start to
`pgwire.login.startup`.
"""

import logging
from collections.abc import Callable
from typing import Any

from tenure.base.errors import OutOfMemory, ProtocolViolation, TenureError, Terminated
from tenure.pgwire.connection_slots import Seat
from tenure.pgwire.conversation import HANDLERS, Conversation
from tenure.pgwire.copying import COPY_DATA
from tenure.pgwire.login.startup import Progress, Service, start_up
from tenure.pgwire.messages import UINT4
from tenure.pgwire.reports import error_response
from tenure.pgwire.waits import Need, Talk, Wait
from tenure.sql.session.answers import BlockStatus, Client, Endpoints

STARTUP_BYTES_MAX = 10_000
"""The longest packet or message before the login, as in PostgreSQL."""

MESSAGE_BYTES_MAX = 64 * 2**20
"""The longest later message. PostgreSQL allows 1 GiB; our values are smaller, and memory is shared."""

CHARGED_BYTES_MIN = 64 * 1024
"""A longer message is charged to its session as soon as its head has arrived."""

UNSENT_BYTES_MAX = 64 * 1024
"""When this much waits to be written, it is written before the next message is read."""

TERMINATE, SYNC = ord("X"), ord("S")
MAY_TAKE_LONG = frozenset(b"PEQ")
"""Messages after which the connection checks whether its turn is over: other messages are cheap for their
length.
"""
_HEAD_BYTES = 5
_FROM_INPUT = (Need.PACKET, Need.MESSAGE)
_ANSWERED_BY_READY = frozenset(b"QFS")
_LEFT_OVER_FROM_COPY = frozenset(b"dcf")
_KNOWN = frozenset(HANDLERS) | _LEFT_OVER_FROM_COPY | {TERMINATE, ord("p")}

_length = UINT4.unpack_from
_handler = HANDLERS.get

_log = logging.getLogger(__name__)


class Connection:
    def __init__(self, service: Service, endpoints: Endpoints) -> None:
        self.endpoints = endpoints
        self._turns = service.turns
        self.output: list[bytes] = []
        self.wait: Wait | None = None
        self.is_closing = False
        self.client: Client | None = None
        self.seat: Seat | None = None
        self.user = ""
        """The user and addresses of the client."""
        self.progress = Progress.SILENT
        self.on_cancel: Callable[[], None] = lambda: None
        self.on_terminate: Callable[[], None] = lambda: None
        """Called when the current statement is canceled: it may not have begun."""
        self.pieces_received = 0
        """A reader that finds it unchanged knows that no input came in between."""
        self._conversation: Conversation | None = None
        self._data = b""
        self._at = 0
        self._more = bytearray()
        self._needed = 0
        """How many bytes the next message needs to be complete."""
        self._is_charged = False
        """Its session was charged for a long message, which is not handled yet."""
        self._is_skipping = False
        self._kind = 0
        self._talk: Talk[Any] | None = start_up(self, service)
        self._advance(None)

    @property
    def buffered(self) -> int:
        return len(self._data) - self._at + len(self._more)

    @property
    def is_blocked(self) -> bool:
        """Whether it waits, and not for input."""
        return self.wait is not None and self.wait not in _FROM_INPUT

    @property
    def is_starting(self) -> bool:
        return self._conversation is None and not self.is_closing

    @property
    def is_ready(self) -> bool:
        """Whether it is logged in, with nothing under way."""
        return self._talk is None and self._conversation is not None and not self.is_closing

    @property
    def is_outside(self) -> bool:
        """Whether it is ready, and not in a transaction block."""
        return self.is_ready and self.client is not None and self.client.status is BlockStatus.IDLE

    def receive(self, data: bytes) -> None:
        self.pieces_received += 1
        if self._at < len(self._data) or self._more:
            self._more += data
            if self.is_blocked or self.buffered < self._needed:
                return
            self._join()
        else:
            self._data, self._at = data, 0
        self._run()
        if self._is_charged:
            self._let_go_of_input()

    def resume(self, value: object = None, error: BaseException | None = None) -> None:
        if self.is_closing:
            return
        self.wait = None
        if self._talk is not None:
            self._advance(value, error)
        self._join()
        self._run()
        if self._is_charged:
            self._let_go_of_input()

    def _let_go_of_input(self) -> None:
        """Called when a long message was handled: releases the message and its charge at once."""
        is_over = self._talk is None and max(self.buffered, self._needed) < CHARGED_BYTES_MIN
        if is_over and self.client is not None:
            self._data, self._at = self._data[self._at :], 0
            self._is_charged = False
            self.client.memory.receive(0)

    def take_output(self) -> bytes:
        output = self.output
        data = output[0] if len(output) == 1 else b"".join(output)
        output.clear()
        if self._conversation is not None:
            self._conversation.unsent_bytes = 0
        return data

    def cancel(self) -> None:
        """Cancels the current statement, if there is one."""
        if self._talk is not None and self._conversation is not None:
            self._conversation.is_canceled = True
            self._conversation.client.cancel()
            self.on_cancel()

    def terminate(self) -> None:
        """Called when somebody with the right to it ends the session."""
        self.on_terminate()

    def tell_arrivals(self) -> None:
        """Called when notifications have arrived: a client outside of transactions is told at once, others
        before ReadyForQuery of the statement that ends theirs. If some were lost, it closes.
        """
        if self.is_outside and self._conversation is not None:
            try:
                self._conversation.client.check_arrivals()
                self._conversation.tell_arrivals()
            except TenureError as error:
                self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Sends the reason, if there is one; the driver writes that and closes."""
        if error is not None and not self.is_closing:
            self.output.append(error_response(error, severity="FATAL"))
        self.is_closing = True
        self.wait = None
        self._data, self._at = b"", 0  # door and transport refer to each other: this may stay for a while
        self._more = bytearray()
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    def _join(self) -> None:
        if self._more:
            self._data = self._data[self._at :] + self._more
            self._at = 0
            self._more.clear()

    def _run(self) -> None:
        """Handles input until something else must happen first."""
        while not self.is_closing:
            if self.wait is None:
                self._handle_messages()
                if self.wait is None:
                    return
            elif self.wait not in _FROM_INPUT or not self._feed_talk():
                return

    def _handle_messages(self) -> None:
        """The hot loop: until all complete messages are handled, or `wait` is set."""
        conversation = self._conversation
        assert conversation is not None
        data, at, size = self._data, self._at, len(self._data)
        while size - at >= _HEAD_BYTES:
            kind = data[at]
            stop = at + 1 + _length(data, at + 1)[0]
            if stop > size or stop < at + _HEAD_BYTES:
                self._at, self._needed = at, stop - at
                self._is_allowed(kind, stop - at - 1)
                return
            body_at, at = at + _HEAD_BYTES, stop
            handler = _handler(kind)
            if handler is None or self._is_skipping:
                self._skip(kind, handler)
                if self.is_closing:
                    return
                if self._is_skipping or handler is None:
                    continue
            try:
                talk = handler(conversation, data, body_at, stop)
                if talk is not None:
                    self._at = stop
                    self._begin(kind, talk)
            except Exception as error:
                self._failed(kind, error)
            if self.wait is None and (
                conversation.unsent_bytes > UNSENT_BYTES_MAX
                # Not if only a Sync is left, which is the usual case: reading the clock costs time.
                or (size - stop > _HEAD_BYTES and kind in MAY_TAKE_LONG and self._turns.is_over())
            ):
                self.wait = Need.FLUSH
            if self.wait is not None or self.is_closing:
                self._at = stop
                return
        self._at, self._needed = at, _HEAD_BYTES

    def _feed_talk(self) -> bool:
        """Gives the talk its next packet or message, if it is complete."""
        has_kind = self.wait is Need.MESSAGE
        data, at = self._data, self._at
        head = _HEAD_BYTES if has_kind else _HEAD_BYTES - 1
        if len(data) - at < head:
            self._needed = head
            return False
        kind = data[at] if has_kind else 0
        length = UINT4.unpack_from(data, at + has_kind)[0]
        stop = at + has_kind + length
        if not self._is_allowed(kind, length) or stop > len(data):
            self._needed = has_kind + length
            return False
        self._at = stop
        if kind == TERMINATE:
            self.close()
        else:
            body = data[at + head : stop]
            if kind == COPY_DATA:
                body += self._more_copy_data()
            self.wait = None
            self._advance((kind, body) if has_kind else body)
        return True

    def _more_copy_data(self) -> bytes:
        """What follows of a COPY and is whole: most clients send a message for each row."""
        data, at, size = self._data, self._at, len(self._data)
        bodies: list[bytes] = []
        while size - at >= _HEAD_BYTES and data[at] == COPY_DATA:
            length = _length(data, at + 1)[0]
            stop = at + 1 + length
            if not 4 <= length <= CHARGED_BYTES_MIN or stop > size:
                break  # to be looked at by itself
            bodies.append(data[at + _HEAD_BYTES : stop])
            at = stop
        self._at = at
        return b"".join(bodies)

    def _is_allowed(self, kind: int, length: int) -> bool:
        """Whether a message is allowed, of which perhaps only the head has arrived; if not, closes."""
        length_max = STARTUP_BYTES_MAX if self._conversation is None else MESSAGE_BYTES_MAX
        if self.wait is Need.PACKET:
            if not 8 <= length <= length_max:
                self.close(ProtocolViolation("invalid length of startup packet"))
        elif kind not in _KNOWN:
            self._unknown(kind)
        elif not 4 <= length <= length_max:
            self.close(ProtocolViolation("invalid message length"))
        elif length > CHARGED_BYTES_MIN and self.client is not None:
            self._charge(self.client, length)
        return not self.is_closing

    def _charge(self, client: Client, length: int) -> None:
        """Charges a message before it is waited for. A refused client is disconnected: the rest would have to
        be read.
        """
        try:
            client.memory.receive(2 * length)  # its pieces, and the whole
            self._is_charged = True
        except OutOfMemory as error:
            self.close(error)

    def _skip(self, kind: int, handler: object) -> None:
        """Skips messages after an error, up to Sync; and messages sent before the client knew that a COPY
        failed.
        """
        if kind == TERMINATE:
            self.close()
        elif handler is None and kind not in _LEFT_OVER_FROM_COPY:
            self._unknown(kind)
        elif kind == SYNC:
            self._is_skipping = False

    def _unknown(self, kind: int) -> None:
        self.close(ProtocolViolation(f"invalid frontend message type {kind}"))

    def _begin(self, kind: int, talk: Talk[None]) -> None:
        assert self._conversation is not None
        self._conversation.is_canceled = False
        self._kind = kind
        self._talk = talk
        self._advance(None)

    def _advance(self, value: object, error: BaseException | None = None) -> None:
        talk = self._talk
        assert talk is not None
        try:
            self.wait = talk.send(value) if error is None else talk.throw(error)
        except StopIteration as done:
            self._talk = None
            if self._conversation is None:
                self._open(done.value)
        except Exception as failure:
            self._talk = None
            self._failed(self._kind, failure)
            # The error's traceback refers to this frame: breaking the reference cycle here.
            failure.__traceback__ = None

    def _open(self, client: Client | None) -> None:
        if client is None:
            return self.close()
        self._conversation = Conversation(client, self.output, self._turns)
        self._conversation.ready()
        return None

    def _failed(self, kind: int, error: Exception) -> None:
        if not isinstance(error, TenureError):
            _log.error("a statement failed in a way that it should not", exc_info=error)
        conversation = self._conversation
        if conversation is None or isinstance(error, Terminated):
            return self.close(error)
        try:
            conversation.fail(error)
            if kind in _ANSWERED_BY_READY:
                conversation.ready()
            else:
                self._is_skipping = True
        except Exception as failure:
            _log.error("a session cannot go on after an error", exc_info=failure)
            self.close(failure)
        return None
