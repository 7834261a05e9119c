"""The door with real sockets: limits, slow and silent clients, cancel, drain."""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.pgwire.server import Server
from tenure.pgwire.threads.server_state import DoorLimits
from tenure.sql.session.answers import Timeouts
from tests.unit.pgwire.toy import BATCH, LetIn, Toys
from tests.unit.pgwire.wire import (
    SSL_REQUEST,
    VERSION_3_0,
    Heard,
    cancel_request,
    heard,
    message,
    query,
    startup,
)

QUICK = DoorLimits(
    seats_max=6, kept_for_root=2, starting_max=4, places_max=2, login_seconds=0.2, pass_seconds=0.02
)
"""Time-outs are short, and are awaited on the socket: no test sleeps."""

LONG = 400_000
"""Rows, some 6 MB: more than the kernel's buffers hold."""

Start = Callable[..., Server]


@pytest.fixture
def toys() -> Iterator[Toys]:
    toys = Toys()
    yield toys
    toys.released.set()


@pytest.fixture
def start(toys: Toys) -> Iterator[Start]:
    with ExitStack() as undo:

        def started(**options: object) -> Server:
            limits = options.pop("limits", DoorLimits(pass_seconds=0.02))
            server = Server(toys, LetIn(), toys.env, limits=limits, **options)  # type: ignore[arg-type]
            server.start()
            undo.callback(server.stop)
            return server

        yield started
        toys.released.set()


class Socket:
    """A client that says and hears bytes."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(server.address, timeout=10)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def log_in(self, **parameters: str) -> "Socket":
        self.say(startup(VERSION_3_0, **parameters))
        self.hear("Z")
        return self

    def say(self, *messages: bytes) -> None:
        self._socket.sendall(b"".join(messages))

    def hear(self, until: str) -> list[Heard]:
        """Up to an answer of this kind, or to the end of the connection."""
        answers: list[Heard] = []
        while not answers or answers[-1].kind != until:
            head = self._file.read(5)
            if len(head) < 5:
                break
            body = self._file.read(struct.unpack_from(">I", head, 1)[0] - 4)
            answers += heard(head + body)
        return answers

    def ends_with(self) -> str:
        """What it is told before the connection is closed, in short."""
        try:
            return " ".join(map(str, self.hear("nothing")))
        except ConnectionResetError:
            return "reset"


def dsn(server: Server, **more: object) -> str:
    host, port = server.address
    said = {"host": host, "port": port, "user": "root", "dbname": "db", "sslmode": "disable", **more}
    return " ".join(f"{name}={value}" for name, value in said.items())


def test_a_long_statement_does_not_hold_up_others(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server).log_in() as busy, Socket(server).log_in() as other:
        busy.say(query("wait"))
        assert toys.waiting.wait(10)
        other.say(query("select 1"))
        assert [str(each) for each in other.hear("Z")] == ["T", "D", "C:SELECT 1", "Z:I"]
        toys.released.set()
        assert str(busy.hear("Z")[0]) == "C:WAIT"


def test_a_commit_that_cannot_be_begun_keeps_nobody_back(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as one, Socket(server).log_in() as other:
        one.say(query("insert refused"))
        assert [str(each) for each in one.hear("Z")] == ["E:54000", "Z:I"]
        for client in (other, one):
            client.say(query("insert"))
            assert [str(each) for each in client.hear("Z")] == ["C:INSERT 0 1", "Z:I"]


def test_a_client_that_leaves_during_its_commit_keeps_nobody_back(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server).log_in() as other:
        with Socket(server).log_in() as one:
            one.say(query("insert held"))
            assert toys.waiting.wait(10)
        other.say(query("insert"))
        toys.released.set()
        assert [str(each) for each in other.hear("Z")] == ["C:INSERT 0 1", "Z:I"]


def test_a_statement_inside_a_transaction_never_queues_behind_waits(start: Start, toys: Toys) -> None:
    server = start(limits=QUICK)
    with ExitStack() as all:
        inside = all.enter_context(Socket(server).log_in())
        inside.say(query("begin"))
        inside.hear("Z")
        for _ in range(QUICK.places_max):  # these would take all the places
            all.enter_context(Socket(server).log_in()).say(query("wait"))
        inside.say(query("select slowly"))
        assert str(inside.hear("Z")[-2]) == "C:SELECT 1"
        toys.released.set()


def test_a_request_cancels_the_statement_under_way(start: Start, toys: Toys) -> None:
    with psycopg.connect(dsn(start()), autocommit=True) as connection:

        def cancel() -> None:
            toys.waiting.wait(10)
            connection.cancel_safe()

        canceler = threading.Thread(target=cancel)
        canceler.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("wait")
        canceler.join()
        assert connection.execute("select 1").fetchone() == (1, "hällo", None)


def test_a_routed_request_cancels_too(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server) as client:
        client.say(startup())
        key = next(each for each in client.hear("Z") if each.kind == "K")
        client.say(query("wait"))
        assert toys.waiting.wait(10)
        server.cancel(struct.unpack_from(">i", key.body)[0], sha256(key.body[4:]).digest())
        assert str(client.hear("Z")[0]) == "E:57014"


def test_a_cancel_that_comes_to_the_wrong_process_is_handed_on(start: Start) -> None:
    routed = threading.Event()
    server = start(instance=lambda: 1, route_cancel=lambda _pid, _secret: routed.set())
    with Socket(server) as client:
        client.say(cancel_request(2 * 2**16 + 1, b"1234"))
        assert client.ends_with() == ""
    assert routed.is_set()


def test_servers_that_share_a_port_spread_connections_and_leave_the_queue_to_the_others(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:
        port.setblocking(False)
        first, second = (start(inherited=os.dup(port.fileno())) for _ in range(2))
        assert first.address == second.address == port.getsockname()
        with ExitStack() as clients:
            for _ in range(4):
                clients.enter_context(Socket(first).log_in())
            assert min(first.connections, second.connections) > 0
            first.drain(0.0)
            before = second.connections
            clients.enter_context(Socket(second).log_in())
            assert second.connections == before + 1


def test_a_taken_port_is_an_error(start: Start) -> None:
    first = start()
    server = Server(Toys(), LetIn(), SystemEnv(), port=first.address[1])
    with pytest.raises(OSError, match="in use"):
        server.start()


@pytest.mark.invariant("reader-holds-one-batch")
def test_a_client_that_does_not_read_holds_no_more_than_a_batch(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server).log_in() as slow, Socket(server).log_in() as other:
        slow._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        slow.say(query(f"series {LONG}"))
        assert str(slow.hear("D")[-1]) == "D"
        for _ in range(50):  # meanwhile it fills what the kernel takes, and stops
            other.say(query("select slowly"))
            other.hear("Z")
        made = toys.clients[0].batches_made
        assert made < LONG / BATCH
        assert len(slow.hear("Z")) == LONG + 1
        assert toys.clients[0].batches_made == LONG / BATCH


def test_many_small_answers_that_nobody_reads_stop_the_work(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server).log_in() as slow:
        slow._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow._socket.settimeout(0.3)
        with pytest.raises(TimeoutError):  # the server reads no more
            slow.say(query("select 1") * 2_000_000)
        assert len(toys.log) < 2_000_000


def test_a_client_that_goes_away_is_cancelled_and_closed(start: Start, toys: Toys) -> None:
    server = start()
    with Socket(server).log_in() as client:
        client.say(query("wait"))
        assert toys.waiting.wait(10)
    assert server.drain(10)
    assert toys.log[-1] != "failed"


def test_sessions_are_closed_when_their_clients_are_gone(start: Start, toys: Toys) -> None:
    server = start()
    for _ in range(3):
        Socket(server).log_in().__exit__()
    server.drain(10)
    server._hall.close(wait=True)
    assert [client.is_closed for client in toys.clients] == [True] * 3


def test_half_open_connections_are_cut_off_and_harm_nobody(start: Start) -> None:
    server = start(limits=QUICK)
    with ExitStack() as all:
        silent = [all.enter_context(Socket(server)) for _ in range(QUICK.starting_max)]
        for each in silent[::2]:
            each.say(startup()[:6])
        all.enter_context(Socket(server)).log_in()  # the one that has been silent for longest makes room
        assert silent[0].ends_with() in ("E:53300", "reset")
        assert [each.ends_with() for each in silent[1:]] == ["E:08P01"] * (QUICK.starting_max - 1)


def test_some_seats_are_kept_for_root(start: Start) -> None:
    server = start(limits=QUICK)
    with ExitStack() as all:
        for _ in range(QUICK.seats_max - QUICK.kept_for_root):
            all.enter_context(Socket(server)).log_in(user="anna")
        refused = all.enter_context(Socket(server))
        refused.say(startup(user="anna"))
        assert refused.ends_with() == "R E:53300"
        all.enter_context(Socket(server)).log_in(user="root")


def test_a_seat_is_free_again_when_its_client_has_left(start: Start) -> None:
    server = start(limits=QUICK)
    for _ in range(QUICK.seats_max * 3):
        with psycopg.connect(dsn(server)) as connection:
            connection.execute("select 1")


def test_an_oversized_message_is_refused_at_its_head(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as greedy, Socket(server).log_in() as other:
        greedy.say(b"Q" + struct.pack(">I", 2**30))
        assert greedy.ends_with() == "E:08P01"
        other.say(query("select 1"))
        assert str(other.hear("Z")[-1]) == "Z:I"


def test_a_long_statement_text_is_taken_in_pieces(start: Start) -> None:
    with Socket(start()).log_in() as client:
        client.say(query("select " + "1" * 5_000_000))
        assert str(client.hear("Z")[-2]) == "C:SELECT 1"


def test_garbage_closes_only_its_own_connection(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as bad, Socket(server).log_in() as other:
        bad.say(b"\x16\x03\x01 garbage")
        assert bad.ends_with() == "E:08P01"
        other.say(query("select 1"))
        assert str(other.hear("Z")[-1]) == "Z:I"


def test_an_idle_session_is_ended_after_its_time(start: Start, toys: Toys) -> None:
    toys.timeouts = Timeouts(idle_session=0.1)
    with Socket(start()).log_in() as client:
        assert client.ends_with() == "E:57P05"


def test_an_idle_transaction_is_ended_after_its_time(start: Start, toys: Toys) -> None:
    toys.timeouts = Timeouts(idle_in_transaction=0.1)
    with Socket(start()).log_in() as client:
        client.say(query("begin"))
        assert client.ends_with() == "C:BEGIN Z:T E:25P03"


def test_a_busy_session_is_not_idle(start: Start, toys: Toys) -> None:
    toys.timeouts = Timeouts(idle_session=0.1)
    server = start()
    with Socket(server).log_in() as busy, Socket(server).log_in() as idle:
        busy.say(query("wait"))
        assert idle.ends_with() == "E:57P05"
        toys.released.set()
        assert str(busy.hear("Z")[0]) == "C:WAIT"


def test_a_drain_ends_idle_connections_and_lets_no_one_in(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as idle:
        assert server.drain(10)
        assert idle.ends_with() == "E:57P01"
    with pytest.raises(ConnectionRefusedError):
        Socket(server)


@pytest.mark.invariant("drain-keeps-transactions")
def test_a_drain_lets_transactions_finish(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as client:
        client.say(query("begin"))
        client.hear("Z")
        results: list[bool] = []
        drain = threading.Thread(target=lambda: results.append(server.drain(10)))
        drain.start()
        client.say(query("select 1"))
        assert [str(each) for each in client.hear("Z")] == ["T", "D", "C:SELECT 1", "Z:T"]
        client.say(query("commit"))
        assert client.ends_with() == "C:COMMIT Z:I E:57P01"
        drain.join()
    assert results == [True]


def test_what_a_client_sends_after_its_last_transaction_in_a_drain_is_answered_with_the_reason(
    start: Start,
) -> None:
    server = start(limits=DoorLimits(pass_seconds=60.0))
    with Socket(server).log_in() as client:
        client.say(query("begin"))
        client.hear("Z")
        drain = threading.Thread(target=lambda: server.drain(10))
        drain.start()
        _await_refusal(server)
        client.say(query("commit"))
        client.hear("Z")
        client.say(query("select 1"))
        assert client.ends_with() == "E:57P01"
        drain.join()


def _await_refusal(server: Server) -> None:
    """Returns when nobody is let in any more."""
    while True:
        try:
            with Socket(server):
                pass
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # it stood in the queue when the listener was closed


def test_a_drain_cuts_off_who_does_not_finish(start: Start) -> None:
    server = start()
    with Socket(server).log_in() as client:
        client.say(query("begin"))
        client.hear("Z")
        assert not server.drain(0.05)
        assert client.ends_with() == "E:57P01"


def test_a_stop_cancels_what_runs(start: Start, toys: Toys) -> None:
    server = Server(toys, LetIn(), SystemEnv())
    server.start()
    with Socket(server).log_in() as client:
        client.say(query("wait"))
        assert toys.waiting.wait(10)
        server.stop()
        assert toys.clients[0].is_closed


def test_an_ssl_request_without_certificate_is_declined(start: Start) -> None:
    with Socket(start()) as client:
        client.say(SSL_REQUEST)
        assert client._file.read(1) == b"N"
        client.log_in()


def test_unknown_messages_are_fatal(start: Start) -> None:
    with Socket(start()).log_in() as client:
        client.say(message("?"))
        assert client.ends_with() == "E:08P01"
