"""How a script is judged: answers that differ are found; what the page on differences says is not one."""

from collections.abc import Iterator

import pytest

from tests.differential.sides import Answer, Statement
from tests.differential.transactions.cluster import Cluster, Peer, quiet
from tests.differential.transactions.play import Kind, Record, played, recorded
from tests.differential.transactions.steps import IN_ERROR, Reply, Step
from tests.postgres_server import Server

ROWS = ("CREATE TABLE t (id integer PRIMARY KEY, a integer)", "INSERT INTO t VALUES (1, 1), (2, 1)")
LATE = (*ROWS, "BEGIN", "ALTER TABLE t ADD UNIQUE (a)", "SELECT count(*) FROM t", "COMMIT", "SELECT a FROM t")


@pytest.fixture(scope="module")
def peer(postgres: Server) -> Peer:
    return Peer(postgres)


@pytest.fixture(scope="module", params=[1, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster(request.param)
    with quiet():
        yield cluster
    cluster.stop()


def steps(*texts: str) -> list[Step]:
    return [Step(0, Statement(each, kind="write")) for each in texts]


def with_reply(record: Record, at: int, answer: Answer) -> Record:
    replies = [*record.replies]
    replies[at] = Reply(answer, IN_ERROR if answer.sqlstate else replies[at].status)
    return record._replace(replies=replies)


def test_rows_that_differ_are_found(peer: Peer, cluster: Cluster) -> None:
    script = steps(*ROWS, "SELECT a FROM t WHERE id = 1")
    record = recorded(peer, script)
    assert played(cluster, script, record).kind is Kind.SAME
    other = record.replies[2].answer._replace(rows=((b"2",),))
    found = played(cluster, script, with_reply(record, 2, other))
    assert (found.kind, found.at) == (Kind.DIFFERENT, 2)


def test_what_is_stored_is_compared(peer: Peer, cluster: Cluster) -> None:
    record = recorded(peer, steps(*ROWS, "UPDATE t SET a = 5 WHERE id = 1"))
    silent = steps(*ROWS, "SELECT 1 WHERE false")
    found = played(cluster, silent, record._replace(replies=recorded(peer, silent).replies))
    assert (found.kind, found.about) == (Kind.DIFFERENT, "stored rows")


def test_definitions_are_compared(peer: Peer, cluster: Cluster) -> None:
    record = recorded(peer, steps(*ROWS, "ALTER TABLE t ALTER COLUMN a SET NOT NULL"))
    silent = steps(*ROWS, "SELECT 1 WHERE false")
    found = played(cluster, silent, record._replace(replies=recorded(peer, silent).replies))
    assert (found.kind, found.about) == (Kind.DIFFERENT, "stored column")


def test_a_constraint_that_rows_break_may_fail_at_commit(peer: Peer, cluster: Cluster) -> None:
    script = steps(*LATE)
    assert played(cluster, script, recorded(peer, script)).kind is Kind.SAME


def test_commit_has_to_give_the_error_that_it_owes(peer: Peer, cluster: Cluster) -> None:
    script = steps(*LATE)
    record = with_reply(recorded(peer, script), 3, Answer("23514", "another constraint"))
    found = played(cluster, script, record)
    assert (found.kind, found.at, found.states) == (Kind.DIFFERENT, 5, ("23505", "23514"))


def test_a_refusal_is_told_apart(peer: Peer, cluster: Cluster) -> None:
    script = steps(*ROWS, "ALTER TABLE t DROP COLUMN id")
    found = played(cluster, script, recorded(peer, script))
    assert (found.kind, found.ours) == (Kind.REFUSED, 'column "id" is in a primary key')
