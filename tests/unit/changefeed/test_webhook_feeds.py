"""Changefeeds to webhooks: what a receiver has, while it fails, while runs end, and who may have one."""

import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.base.timestamp import ZERO_AT, add_seconds, parse
from tenure.changefeed import job as feed_job
from tenure.changefeed.job import changefeed_kind
from tenure.changefeed.records import FeedPosition
from tenure.changefeed.sinks import webhook
from tenure.changefeed.sinks.send_window import SendWindow
from tenure.cluster.jobs import attempts
from tenure.cluster.jobs.runs import Stopped
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.records import unpack
from tests.seeds import seeds
from tests.system_tables import described
from tests.unit.bulk.crashes import NOBODY_HAS, ByHand
from tests.unit.changefeed.feeding import Feeding, Rebuilt
from tests.unit.changefeed.random_work import RandomWork
from tests.webhook_server import Request, WebhookServer, answer

PATIENCE_STEPS = 1500
CANARY = "canary-7-of-a-secret"


@pytest.fixture
def server(directory: Path) -> Iterator[WebhookServer]:
    server = WebhookServer(directory / "certificates")
    yield server
    server.close()


@pytest.fixture(autouse=True)
def loopback(feeding: Feeding, monkeypatch: pytest.MonkeyPatch) -> None:
    feeding.done("SET CLUSTER SETTING changefeed.webhook.networks = '127.0.0.0/8, ::1/128'")
    feeding.done("SET CLUSTER SETTING changefeed.webhook.ports = '1-65535'")
    monkeypatch.setattr(attempts, "RETRY_SECONDS_MAX", 0.05)
    monkeypatch.setattr(webhook, "ATTEMPTS", 2)


class WebhookFeed:
    """A feed of table t to a receiver."""

    def __init__(self, feeding: Feeding, server: WebhookServer, options: str = "", **parameters: str) -> None:
        self.feeding = feeding
        self.server = server
        (((id,),)) = feeding.rows(
            f"CREATE CHANGEFEED FOR t INTO '{server.url(**parameters)}' "
            f"WITH updated, resolved = '50ms'{options}"
        )
        self.job = int(id or 0)

    def position(self) -> FeedPosition | None:
        node = self.feeding.node
        data = node.jobs.progress(node.store.snapshot(), self.job).data
        return unpack(data, FeedPosition) if data else None

    def wait_for(self, at: int) -> None:
        for _ in range(PATIENCE_STEPS):
            position = self.position()
            if position is not None and position.resolved_at >= at:
                return
            self.feeding.node.store.env.sleep(0.02)
        raise AssertionError(self.feeding.rows("SHOW CHANGEFEED JOBS"))

    def messages(self) -> list[dict[str, Any]]:
        return [each for request in self.server.requests for each in request.value.get("payload", ())]

    def check(self) -> None:
        """Rebuilds the table, and compares it at each resolved timestamp."""
        rebuilt, compared = Rebuilt(), 0
        for request in self.server.requests:
            for message in request.value.get("payload", ()):
                if (at := parse(message["updated"])) <= rebuilt.resolved_at:
                    assert self._is_repeated(message), f"a change of {at} comes after it was resolved"
                rebuilt.take(message)
            if "resolved" not in request.value:
                continue
            at = parse(request.value["resolved"])
            rebuilt.resolve(max(at, rebuilt.resolved_at))
            if at < rebuilt.resolved_at or self.feeding.is_offline("t", at):
                continue
            self.feeding.compare("t", rebuilt, at)
            compared += 1
        assert compared

    def _is_repeated(self, message: dict[str, Any]) -> bool:
        return self.messages().count(message) > 1

    def cancel(self) -> None:
        self.feeding.done(f"CANCEL JOB {self.job} AND WAIT")


def test_a_receiver_has_every_change_and_the_resolved_timestamps(
    feeding: Feeding, server: WebhookServer
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feeding.done("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    feed = WebhookFeed(feeding, server)
    feed.wait_for(feeding.now())
    feeding.done("UPDATE t SET b = 'z' WHERE a = 1")
    feeding.done("DELETE FROM t WHERE a = 2")
    feed.wait_for(feeding.now())
    feed.cancel()
    feed.check()
    topic = f"defaultdb.{feeding.schema}.t"
    assert [(each["key"], each["after"], each["topic"]) for each in feed.messages()] == [
        ([1], {"a": 1, "b": "x"}, topic),
        ([2], {"a": 2, "b": "y"}, topic),
        ([1], {"a": 1, "b": "z"}, topic),
        ([2], None, topic),
    ]
    assert {each.headers["Tenure-Job"] for each in server.requests} == {str(feed.job)}


def test_changes_leave_at_once_and_not_with_the_next_checkpoint(
    feeding: Feeding, server: WebhookServer
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR t INTO '{server.url()}' WITH min_checkpoint_frequency = '1h'"
    )
    feeding.done("INSERT INTO t VALUES (1)")
    for _ in range(PATIENCE_STEPS):
        if server.requests:
            break
        feeding.node.store.env.sleep(0.02)
    assert [each["key"] for each in server.requests[0].value["payload"]] == [[1]]
    feeding.done(f"CANCEL JOB {job} AND WAIT")


class Outage:
    """Fails some requests, each in another way."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng, self.share = rng, share
        self.failures = 0

    def __call__(self, handler: BaseHTTPRequestHandler, request: Request) -> bool:
        if self.failures and self._rng.random() >= self.share:
            return False
        self.failures += 1
        how = self._rng.randrange(3)
        if how == 0:
            answer(handler, self._rng.choice([400, 404, 429, 500, 503]))
        elif how == 1:
            handler.wfile.write(b"HTTP/1.1 2")
        handler.close_connection = True  # without an answer, or with half of one
        return True


@pytest.mark.parametrize("seed", seeds(10, few=2))
def test_messages_rebuild_the_table_at_every_resolved_timestamp(
    feeding: Feeding, server: WebhookServer, seed: int
) -> None:
    rng = random.Random(seed)
    work = RandomWork(feeding, rng)
    server.refuse = outage = Outage(rng, 0.3)
    feed = WebhookFeed(feeding, server)
    for _ in range(25):
        work.step()
        if rng.random() < 0.15:
            feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
            work.step()
            feeding.done(f"RESUME JOB {feed.job}")
    outage.share = 0.0
    feed.wait_for(feeding.now())
    feed.cancel()
    feed.check()
    assert outage.failures


def test_a_receiver_that_is_away_keeps_the_history_and_gets_everything_later(
    feeding: Feeding, server: WebhookServer
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 1")
    feed = WebhookFeed(feeding, server)
    feed.wait_for(feeding.now())
    server.refuse = outage = Outage(random.Random(1), 1.0)
    feeding.done("INSERT INTO t VALUES (1, 0)")
    for number in range(1, 6):
        feeding.done(f"UPDATE t SET b = {number}")
    while outage.failures < 4:
        feeding.done("RUN GC NOW")
    ((error,),) = feeding.rows(f"SELECT error FROM tenure_internal.changefeed_jobs WHERE job_id = {feed.job}")
    if error is not None:  # between two attempts
        assert "localhost" in error and "/in" not in error
    outage.share = 0.0
    feed.wait_for(feeding.now())
    feed.cancel()
    assert {each["after"]["b"] for each in feed.messages()} == set(range(6))


@pytest.mark.parametrize("is_after", [False, True])
def test_a_run_that_ends_at_any_commit_loses_nothing(
    feeding: Feeding, server: WebhookServer, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    monkeypatch.setattr(feed_job, "SQL", NOBODY_HAS)
    monkeypatch.setattr(feed_job, "COMMIT_BYTES", 1)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    feed = WebhookFeed(feeding, server)
    node = feeding.node
    job = node.jobs.get(node.store.snapshot(), feed.job)
    assert job is not None
    by_hand = ByHand(node, changefeed_kind(node.feeds), job)
    for commit in range(1, 7):
        feeding.done(f"UPDATE t SET b = b + 1 WHERE a <= {commit % 3 + 1}")
        assert by_hand.crash(commit % 4 + 1, is_after=is_after)
    feed.check()
    assert len({each.headers["Tenure-Run"] for each in server.requests}) > 1


# ── who may, and what is shown ─────────────────────────────────────────────────────────────────


def test_a_webhook_needs_the_role_for_connections(feeding: Feeding, server: WebhookServer) -> None:
    role = f"sender_{feeding.schema}"
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done(f"CREATE ROLE {role}")
    feeding.done(f"GRANT pg_write_server_files TO {role}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO {role}")
    feeding.done(f"GRANT CHANGEFEED ON t TO {role}")
    feeding.done(f"SET ROLE {role}")
    refused = feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{server.url()}'")
    assert (refused.sqlstate, server.connections) == ("42501", 0)
    feeding.done("RESET ROLE")
    feeding.done(f"GRANT pg_create_subscription TO {role}")
    feeding.done(f"SET ROLE {role}")
    ((job,),) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{server.url()}'")
    feeding.done("RESET ROLE")
    feeding.done(f"PAUSE JOB {job} AND WAIT")
    feeding.done(f"REVOKE pg_create_subscription FROM {role}")
    feeding.done(f"RESUME JOB {job}")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {job}")
    assert str(error).startswith("42501 permission denied to send a changefeed to a webhook")


def test_an_address_that_is_not_allowed_is_refused_when_the_feed_is_created(
    feeding: Feeding, server: WebhookServer
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("RESET CLUSTER SETTING changefeed.webhook.networks")
    refused = feeding.talk.say(f"CREATE CHANGEFEED FOR t INTO '{server.url()}'")
    assert (refused.sqlstate, server.connections) == ("42501", 0)
    assert feeding.talk.say("CREATE CHANGEFEED FOR t INTO 'https://nowhere.invalid/'").sqlstate == "08006"
    for name, text in (("networks", "10.0.0.0/99"), ("ports", "0-70000")):
        said = feeding.talk.say(f"SET CLUSTER SETTING changefeed.webhook.{name} = '{text}'")
        assert said.sqlstate == "22023"


@pytest.mark.invariant("S24-webhooks")
def test_the_secrets_of_a_webhook_are_shown_nowhere(feeding: Feeding, server: WebhookServer) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    server.refuse = Outage(random.Random(1), 1.0)
    text = server.url(f"/{CANARY}-path", hmac_secret=f"{CANARY}-hmac", auth_header=f"{CANARY}-auth", v=CANARY)
    ((job,),) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{text}'")
    feeding.done("INSERT INTO t VALUES (1)")
    front = feeding.node.front
    assert front is not None
    place = {"host": front.host, "port": front.port, "dbname": "defaultdb", "user": "root"}
    with psycopg.connect(**place, autocommit=True) as other:  # type: ignore[arg-type]
        statement = f"CREATE CHANGEFEED FOR {feeding.schema}.t INTO '{text}' WITH nonsense"
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            other.execute(statement.encode())
        tables = [f"SELECT * FROM {each.schema}.{each.name}" for each in described()]
        shown = [
            repr(feeding.rows(query))
            for query in ("SHOW CHANGEFEED JOBS", "SHOW JOBS", f"SHOW JOB {job}", "SHOW SESSIONS", *tables)
        ]
    node = feeding.node
    record = node.jobs.get(node.store.snapshot(), int(job or 0))
    assert record is not None and CANARY not in repr([*shown, record])
    assert f"https://localhost:{server.port}/..." in shown[0]
    feeding.done(f"CANCEL JOB {job} AND WAIT")


# ── when a send may start ──────────────────────────────────────────────────────────────────────


@pytest.mark.setting("changefeed.sink_timeout")
def test_a_send_starts_only_while_the_session_lasts_longer_than_it_may_take(
    feeding: Feeding, server: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_job, "SQL", NOBODY_HAS)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed, node = WebhookFeed(feeding, server), feeding.node
    job = node.jobs.get(node.store.snapshot(), feed.job)
    assert job is not None
    run = ByHand(node, changefeed_kind(node.feeds), job).claim()
    expires_at = add_seconds(node.store.clock.now(), 9.0)
    session = NodeSession(node.cluster.sessions, run.fence.session, expires_at, node.store.env)
    beats: list[float] = []

    def beat(seconds: float) -> None:
        """A heartbeat gets through while the run waits."""
        beats.append(seconds)
        session.acknowledged(add_seconds(expires_at, 3.0))

    monkeypatch.setattr(run, "sleep", beat)
    window = SendWindow(node.store, lambda: session, run)
    started = node.store.env.monotonic()
    assert window.wait() >= started + 10.0 and len(beats) == 1
    feeding.done("SET CLUSTER SETTING changefeed.sink_timeout = '2s'")
    assert window.wait() <= node.store.env.monotonic() + 2.0 and len(beats) == 1
    feeding.done("RESET CLUSTER SETTING changefeed.sink_timeout")
    session.done.set()
    assert session.expires_at == ZERO_AT
    run.stop()
    with pytest.raises(Stopped):
        window.wait()
