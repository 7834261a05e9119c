"""One client's socket: the door carries out what its connection waits for, on the loop or in threads.

    a short statement     runs on the loop, inside `data_received`
    a long one            runs in a thread; the loop goes on with others
    a commit              is submitted with those of others; the loop is told when it is done. Until it is
                          sent to the store, a cancel or a time-out takes it back

A statement that needs a thread may have to queue for a place to run (`pgwire.threads.places`). If it is
canceled, its time is up or its client goes away before it has one, it never runs.

Reading stops while a connection is busy and much input waits; work stops while a client does not
read: at most one batch of rows waits for it.

Invariant (reader-holds-one-batch): for a client that does not read, no more than one batch is made.
Invariant (gone-ends-statement): when a client is gone, its statement is canceled, whether it runs, waits or
is queued, and whether the door was reading or not.

Walk: `pgwire.server` makes a `Door` for each socket; it calls `pgwire.connection`, and
`pgwire.threads.server_state` for threads and gathered commits.
"""

import asyncio
import logging
import select
import socket
from collections.abc import Callable
from functools import partial
from typing import cast

from tenure.base.errors import (
    IdleInTransaction,
    IdleTooLong,
    LoginTooSlow,
    QueryCanceled,
    ShuttingDown,
    StatementTimeout,
    TenureError,
    Terminated,
    TransactionTimeout,
)
from tenure.pgwire.connection import Connection
from tenure.pgwire.threads.places import Errand
from tenure.pgwire.threads.server_state import ServerState
from tenure.pgwire.waits import CommitWait, Delay, InThread, Lane, Need, PauseWait, Wait
from tenure.sql.session.answers import Endpoints, NotShort, Pause, Pending

RECEIVE_BYTES = 16 * 1024
"""asyncio's own 256 KiB are allocated anew for each read, which can double a short query's cost."""

INPUT_BYTES_MAX = 64 * 1024
"""Input that may wait while a connection is busy; then no more is read."""

WRITE_BYTES_HIGH = 64 * 1024
"""Output that the client has not read; then no more is made."""

LINGER_SECONDS = 5.0
"""How long a client may take to read why it was disconnected."""

HANG_UP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
"""Poll events by which the kernel reports a client that is gone while nothing is read."""

NEVER = (0.0, IdleTooLong(""))

_log = logging.getLogger(__name__)


class Door(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, hall: ServerState) -> None:
        self._hall = hall
        self.since = hall.env.monotonic()
        """Since when it logs in, is idle, or is closing: for time-outs."""
        self._heard = 0
        self._patience: tuple[float, TenureError] = NEVER
        """After how many seconds of silence it is closed, and the reason."""
        self._is_full = False
        """The client does not read its output."""
        self._is_paused = False
        self._is_gone = False
        self._is_arriving = True
        self._attended: Wait | None = None
        """The action for the connection's wait."""
        self._errand: Errand | None = None
        """The call that it waits for, where that is a statement's."""
        self._asked_at = 0.0
        self._pause_timer: asyncio.TimerHandle | None = None
        self._hand_over: Callable[[], None] | None = None
        """Submits the commit that it waits for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.max_size = RECEIVE_BYTES  # type: ignore[attr-defined]
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection = Connection(self._hall.service, _endpoints(transport))
        self.connection.on_cancel = self._give_up
        self.connection.on_terminate = self._terminate
        self._hall.arrived(self)
        self.settle()

    def data_received(self, data: bytes) -> None:
        turns = self._hall.service.turns
        turns.begin()
        self._receive(data)
        turns.end(self.connection.client)

    def _receive(self, data: bytes) -> None:
        connection = self.connection
        if self._hall.is_draining and connection.is_outside:
            self.settle()  # any further request would be a new transaction
            return
        connection.receive(data)
        if connection.wait is not None or connection.is_closing or self._hall.is_draining:
            self.settle()
            return
        if connection.output:
            self._transport.write(connection.take_output())
        if self._is_full:
            self.settle()

    def settle(self) -> None:
        """Called after each event: writes, and acts on the connection's wait."""
        connection = self.connection
        if self._is_arriving:
            self._follow_arrival()
        if self._hall.is_draining and (connection.is_outside or connection.is_starting):
            if connection.output and connection.is_outside:
                # The answer alone: clients take an error that comes with it for a notice, and notice the end
                # when they read on. The error is sent with their next message, or in a moment.
                self._hall.loop.call_later(self._hall.limits.pass_seconds, self.settle)
            else:
                connection.close(shutting_down())
        if connection.output and not isinstance(connection.wait, CommitWait):
            # Output before a commit is written with the output after it: one system call here, one for the
            # client.
            self._transport.write(connection.take_output())
        if connection.is_closing:
            self._transport.close()
            return
        if self._is_full and connection.wait is None:
            connection.wait = Need.FLUSH
        if connection.is_blocked and self._attended is None:
            self._attend(connection.wait)
        should_pause = connection.is_blocked and connection.buffered > INPUT_BYTES_MAX
        if should_pause != self._is_paused:
            self._is_paused = should_pause
            (self._transport.pause_reading if should_pause else self._transport.resume_reading)()

    def _follow_arrival(self) -> None:
        connection, arrivals = self.connection, self._hall.arrivals
        if connection.is_starting:
            address = connection.endpoints.client_address
            arrivals.move(self, address, connection.progress, connection.user)
        else:
            self._is_arriving = False
            arrivals.remove(self)
            if connection.client is not None:
                connection.client.on_arrival(partial(self._hall.tell, self._tell_arrivals))

    def _tell_arrivals(self) -> None:
        """Notifications have come for the client; one that does not read gets them when it does."""
        if not self._is_gone and not self._is_full:
            self.connection.tell_arrivals()
            self.settle()

    def _attend(self, wait: Wait | None) -> None:
        self._attended = wait
        loop = self._hall.loop
        try:
            match wait:
                case InThread(lane=Lane.STATEMENT):
                    self._start_errand(wait)
                case InThread():
                    done = partial(self._hall.tell, self._resume)
                    self._hall.submit(wait, self.connection.user, done)
                case CommitWait(pending):
                    self._hand_over = partial(self._submit, pending)
                    self._hall.commits.add(self._hand_over)
                case PauseWait(pause):
                    self._begin_pause(pause, wait)
                case Delay(seconds):
                    loop.call_later(seconds, self._resume)
                case Need.TLS:
                    self._handshake = loop.create_task(self._start_tls())
                case Need.FLUSH:
                    loop.call_soon(self._flushed)  # others have their turn first
        except Exception as error:  # it could not even begin
            loop.call_soon(self._resume, None, error)

    def _start_errand(self, wait: InThread) -> None:
        client, seat = self.connection.client, self.connection.seat
        assert client is not None
        assert seat is not None
        self._asked_at = self._hall.env.monotonic()
        client.received(self._asked_at)
        places = self._hall.places_of(client)
        done = partial(self._hall.tell, self._resume)
        self._errand = Errand(places, wait.call, done, user=seat.user, is_inside=wait.is_inside)
        places.enter(self._errand)

    def _give_up(self, error: TenureError | None = None) -> None:
        """Called when the statement is canceled, or its time is up: it does not begin any more, or need not
        queue to go on. A commit that was not sent is taken back.
        """
        error = error or QueryCanceled("canceling statement due to user request")
        match self._attended:
            case InThread(can_stop=True):
                self._give_up_errand(error)
            case CommitWait(pending):
                self._take_back(pending, error)
            case PauseWait() as wait:
                self._hall.loop.call_soon(self._end_pause, wait, error)

    def _give_up_errand(self, error: TenureError) -> None:
        errand, client = self._errand, self.connection.client
        if errand is not None and client is not None and self._hall.places_of(client).withdraw(errand):
            self._hall.loop.call_soon(self._resume, None, error)

    def _take_back(self, pending: Pending, error: TenureError) -> None:
        hand_over = self._hand_over
        if hand_over is None:
            return  # it was taken back already
        self._hand_over = None
        if self._hall.commits.withdraw(hand_over):
            pending.take_back(error)
            self._hall.loop.call_soon(self._resume)
        elif not pending.take_back(error):
            self._hand_over = hand_over

    def _end_errand(self) -> None:
        if self._errand is not None and self.connection.client is not None:
            self._errand = None
            self.connection.client.received(None)

    def _submit(self, pending: Pending) -> None:
        try:
            pending.submit(partial(self._hall.tell, self._resume))
        except Exception as error:
            self._hall.loop.call_soon(self._resume, None, error)

    def _begin_pause(self, pause: Pause, wait: PauseWait) -> None:
        self._pause_timer = self._hall.loop.call_later(pause.seconds, self._end_pause, wait)
        pause.begin(partial(self._hall.tell, self._end_pause, wait))

    def _end_pause(self, wait: PauseWait, error: TenureError | None = None) -> None:
        """Called by the stream, the timer or a cancel: the first of them ends the wait."""
        if self._attended is wait:
            if self._pause_timer is not None:
                self._pause_timer.cancel()
            self._resume(None, error)

    def _flushed(self) -> None:
        """May be called more often than it is waited for."""
        if self._attended is Need.FLUSH and not self._is_full:
            self._resume()

    def _resume(self, value: object = None, error: BaseException | None = None) -> None:
        attended, self._attended = self._attended, None
        if isinstance(attended, CommitWait):
            self._hall.commits.ended()
        self._end_errand()
        if self._is_gone:
            if isinstance(attended, CommitWait) and error is None:
                _take_in(attended.pending)
            self._finish()
            return
        turns = self._hall.service.turns
        turns.begin()
        self.connection.resume(value, error)
        self.settle()
        turns.end(self.connection.client)

    async def _start_tls(self) -> None:
        tls, seconds = self._hall.tls, self._hall.limits.login_seconds
        assert tls is not None
        try:
            transport = await self._hall.loop.start_tls(
                self._transport, self, tls.context, server_side=True, ssl_handshake_timeout=seconds
            )
        except OSError as error:  # ssl errors and time-outs are OSErrors
            _log.info("TLS handshake with %s failed: %s", self.connection.endpoints.client_address, error)
            self.connection_lost(error)
            return
        assert transport is not None
        self._transport = transport
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        self._resume(tls.binding)

    def pause_writing(self) -> None:
        self._is_full = True
        self._tell_unsent()

    def resume_writing(self) -> None:
        self._is_full = False
        self._tell_unsent()
        self._hall.loop.call_soon(self._flushed)
        self._hall.loop.call_soon(self._tell_arrivals)

    def _tell_unsent(self) -> None:
        client = self.connection.client
        if client is not None:
            client.memory.leave_unsent(self._transport.get_write_buffer_size() if self._is_full else 0)

    def check_time(self, now: float) -> None:
        """Closes the connection if its client has been silent for too long."""
        connection = self.connection
        if connection.is_ready:
            if connection.client is not None and connection.client.has_arrivals:
                self._tell_arrivals()  # some were lost while it was in a transaction
            if connection.pieces_received != self._heard:
                self._heard = connection.pieces_received
                self.since = now
                self._patience = _patience(connection)
                return
            if not connection.is_outside:
                # The cluster's setting may change while it is silent; the session's own cannot.
                self._patience = _patience(connection, now - self.since)
            if 0 < self._patience[0] < now - self.since:
                self.end(self._patience[1])
        elif connection.is_starting:
            if now - self.since > self._hall.limits.login_seconds:
                self.end(LoginTooSlow("canceling authentication due to timeout"))
        elif not connection.is_closing:
            self._heard = 0  # busy: it counts as idle from the next check that finds it so
            self._check_errand(now)
            self._check_commit()
            if self._is_paused and self._has_hung_up():
                self.abort()
        elif now - self.since > LINGER_SECONDS:
            self._transport.abort()

    def _check_errand(self, now: float) -> None:
        """A running errand checks the time by itself."""
        if self._errand is not None and self.connection.client is not None:
            seconds = self.connection.client.timeouts().statement
            if 0 < seconds < now - self._asked_at:
                self._give_up(StatementTimeout("canceling statement due to statement timeout"))

    def _check_commit(self) -> None:
        """A commit on the loop, or a pause, has no thread that checks the time while it waits."""
        if isinstance(self._attended, CommitWait | PauseWait) and self.connection.client is not None:
            try:
                self.connection.client.check_time()
            except TenureError as error:
                self._give_up(error)

    def _has_hung_up(self) -> bool:
        """asyncio notices that only when it reads."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), HANG_UP)
        return bool(poll.poll(0))

    def end(self, error: TenureError) -> None:
        """Tells the client why, and cancels its statement."""
        self.connection.cancel()
        self.connection.close(error)
        self.since = self._hall.env.monotonic()
        self.settle()

    def _terminate(self) -> None:
        self.end(Terminated("terminating connection due to administrator command"))

    def abort(self) -> None:
        self.connection.cancel()
        self._transport.abort()

    def connection_lost(self, error: BaseException | None) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        self.connection.cancel()
        self.connection.close()
        if not isinstance(self._attended, InThread | CommitWait):
            self._finish()

    def _finish(self) -> None:
        """Called when the client is gone, and nothing runs for it any more."""
        if self not in self._hall.doors:
            return
        self._hall.left(self)
        self._hall.arrivals.remove(self)
        connection = self.connection
        if connection.seat is not None:
            self._hall.service.seats.leave(connection.seat)
        if connection.client is not None:
            self._hall.close_client(connection.client)


def _take_in(pending: Pending) -> None:
    """Has the session process the outcome of a commit for which no client waits, and release its pins."""
    try:
        pending.result()
    except (TenureError, NotShort):
        pass  # there is no client to tell


def shutting_down() -> ShuttingDown:
    return ShuttingDown("terminating connection due to administrator command")


def _patience(connection: Connection, silent_seconds: float = 0.0) -> tuple[float, TenureError]:
    """How long it may be silent, and the reason for closing it then, given how long it has been silent."""
    assert connection.client is not None
    timeouts = connection.client.timeouts()
    if connection.is_outside:
        return timeouts.idle_session, IdleTooLong("terminating connection due to idle-session timeout")
    idle, whole = timeouts.idle_in_transaction, timeouts.transaction and timeouts.transaction + silent_seconds
    if whole and (not idle or whole < idle):
        return whole, TransactionTimeout("terminating connection due to transaction timeout")
    return idle, IdleInTransaction("terminating connection due to idle-in-transaction timeout")


def _endpoints(transport: asyncio.BaseTransport) -> Endpoints:
    """Each end is a host and a port, and more in IPv6; a client that is gone already has none."""
    client, server = (transport.get_extra_info(name) or ("", 0) for name in ("peername", "sockname"))
    return Endpoints(str(client[0]), client[1], str(server[0]), server[1])
