"""Many clients of few places: nobody is kept out, and what is queued can be ended."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tenure.pgwire.server import Server
from tenure.pgwire.threads.server_state import DoorLimits, UserLimits
from tenure.sql.session.answers import Timeouts
from tests.unit.pgwire.test_server import Socket
from tests.unit.pgwire.toy import LetIn, Toys
from tests.unit.pgwire.wire import cancel_request, query, startup

PLACES = 2
LIMITS = DoorLimits(places_max=PLACES, pass_seconds=0.02)


class Crowd:
    def __init__(self, toys: Toys, all: ExitStack) -> None:
        self.toys = toys
        self.limits = UserLimits()
        self.server = Server(toys, LetIn(), toys.env, limits=LIMITS, user_limits=lambda: self.limits)
        self.server.start()
        self._all = all

    def client(self, user: str = "anna") -> Socket:
        return self._all.enter_context(Socket(self.server).log_in(user=user))

    def fill(self) -> list[Socket]:
        """Has anna compute in all places."""
        clients = [self.client() for _ in range(PLACES)]
        for client in clients:
            client.say(query("compute"))
        while self.toys.log.count("compute ends=True") < PLACES:
            assert self.toys.waiting.wait(10)
        return clients


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    toys = Toys()
    with ExitStack() as all:
        crowd = Crowd(toys, all)
        yield crowd
        toys.released.set()
    crowd.server.stop()


def said(client: Socket) -> list[str]:
    return [str(each) for each in client.hear("Z")]


def test_who_waits_keeps_nobody_out(crowd: Crowd) -> None:
    for _ in range(10 * PLACES):
        crowd.client().say(query("wait"))
    for user in ("anna", "bert", "root"):
        client = crowd.client(user)
        client.say(query("select slowly"))
        assert said(client) == ["T", "D", "C:SELECT 1", "Z:I"]


def test_who_computes_keeps_only_the_same_user_back(crowd: Crowd) -> None:
    crowd.fill()
    for user in ("bert", "root"):
        client = crowd.client(user)
        client.say(query("select slowly"))
        assert said(client) == ["T", "D", "C:SELECT 1", "Z:I"]
    queued = crowd.client()
    queued.say(query("select slowly"))
    crowd.toys.released.set()
    assert said(queued) == ["T", "D", "C:SELECT 1", "Z:I"]


def test_a_queued_statement_can_be_canceled(crowd: Crowd) -> None:
    crowd.fill()
    with Socket(crowd.server) as queued, Socket(crowd.server) as canceler:
        queued.say(startup(user="anna"))
        key = next(each for each in queued.hear("Z") if each.kind == "K")
        queued.say(query("compute later"))
        canceler.say(cancel_request(struct.unpack_from(">i", key.body)[0], key.body[4:]))
        assert said(queued) == ["E:57014", "Z:I"]
        queued.say(query("select 1"))
        assert said(queued)[-1] == "Z:I"
    assert "compute later ends=True" not in crowd.toys.log


def test_the_time_of_a_queued_statement_counts(crowd: Crowd) -> None:
    crowd.fill()
    crowd.toys.timeouts = Timeouts(statement=0.05)
    queued = crowd.client()
    queued.say(query("compute later"))
    assert said(queued) == ["E:57014", "Z:I"]
    assert "compute later ends=True" not in crowd.toys.log
    at, end = crowd.toys.clients[-1].received_at
    assert at is not None
    assert end is None


@pytest.mark.invariant("gone-ends-statement")
def test_a_queued_statement_never_runs_when_its_client_is_gone(crowd: Crowd) -> None:
    crowd.fill()
    with Socket(crowd.server).log_in(user="anna") as queued:
        queued.say(query("compute later"))
        gone = crowd.toys.clients[-1]
    _await(lambda: gone.is_closed)
    crowd.toys.released.set()
    assert "compute later ends=True" not in crowd.toys.log


@pytest.mark.invariant("gone-ends-statement")
@pytest.mark.parametrize("statement", ["wait", "compute"])
def test_a_client_that_has_sent_more_than_is_read_and_is_gone_ends_its_statement(
    crowd: Crowd, statement: str
) -> None:
    with Socket(crowd.server).log_in(user="anna") as busy:
        busy.say(query(statement))
        assert crowd.toys.waiting.wait(10)
        busy.say(query("select 1") * 7_000)  # more than the door reads while it is busy
        gone = crowd.toys.clients[-1]
    _await(lambda: gone.is_closed)


def test_one_user_has_no_more_connections_than_allowed(crowd: Crowd) -> None:
    crowd.limits = UserLimits(connections=2)
    crowd.client(), crowd.client()
    refused = Socket(crowd.server)
    refused.say(startup(user="anna"))
    answers = refused.hear("E")
    assert answers[-1].fields["M"] == 'too many connections for role "anna"'
    assert answers[-1].fields["C"] == "53300"
    refused.__exit__()
    crowd.client("bert"), crowd.client("root"), crowd.client("root"), crowd.client("root")


def test_one_user_has_no_more_under_way_than_allowed(crowd: Crowd) -> None:
    crowd.limits = UserLimits(statements=1)
    crowd.client().say(query("wait"))
    assert crowd.toys.waiting.wait(10)
    queued, inside, other = crowd.client(), crowd.client(), crowd.client("bert")
    queued.say(query("select slowly"))
    inside.say(query("begin"))
    inside.hear("Z")
    for client in (inside, other):
        client.say(query("select slowly"))
        assert said(client)[-2] == "C:SELECT 1"
    crowd.toys.released.set()
    assert said(queued)[-2] == "C:SELECT 1"


def test_a_session_with_locks_is_not_kept_back_by_those_who_may_wait_for_it(crowd: Crowd) -> None:
    crowd.limits = UserLimits(statements=1)
    crowd.client().say(query("wait"))
    assert crowd.toys.waiting.wait(10)
    holder = crowd.client()
    crowd.toys.clients[-1].holds_locks = True
    holder.say(query("select slowly"))
    assert said(holder)[-2] == "C:SELECT 1"


def test_a_flood_of_silent_connections_lets_those_who_speak_in() -> None:
    toys = Toys()
    server = Server(toys, LetIn(), toys.env, limits=DoorLimits(starting_max=5, pass_seconds=0.02))
    server.start()
    try:
        with ExitStack() as all:
            for _ in range(40):
                all.enter_context(socket.create_connection(server.address))
            for user in ("anna", "root"):
                all.enter_context(Socket(server)).log_in(user=user)
    finally:
        server.stop()


def _await(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1000):
        if holds():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")
