"""Changefeeds into files: what readers find there, also when runs of the job end at any point."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.base.timestamp import add_seconds, parse, to_text
from tenure.changefeed import job as feed_job
from tenure.changefeed.job import changefeed_kind
from tenure.changefeed.records import FeedPosition
from tenure.kv.records import unpack
from tests.seeds import seeds
from tests.unit.bulk.crashes import NOBODY_HAS, ByHand
from tests.unit.changefeed.feeding import Feeding, Rebuilt
from tests.unit.changefeed.random_work import RandomWork

PATIENCE_STEPS = 1500


class FileFeed:
    """A feed of table t into files."""

    def __init__(self, feeding: Feeding, directory: Path, options: str = "", *, job: int = 0) -> None:
        self.feeding = feeding
        self.job = job or self._create(options)
        self.files = directory / "files" / feeding.schema / str(self.job)

    def _create(self, options: str) -> int:
        (((id,),)) = self.feeding.rows(
            f"CREATE CHANGEFEED FOR t INTO '{self.feeding.schema}' WITH updated, resolved = '50ms'{options}"
        )
        return int(id or 0)

    def manifests(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.files.glob("*.json"))]

    def batches(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Each manifest, and the lines of its files."""
        for manifest in self.manifests():
            lines = []
            for file in manifest["files"]:
                text = (self.files.parent / file["name"]).read_text()
                assert len(text.encode()) == file["bytes"]
                lines += [json.loads(line) for line in text.splitlines()]
            assert len(lines) == sum(file["rows"] for file in manifest["files"])
            yield manifest, lines

    def check(self) -> None:
        """Rebuilds the table batch by batch, and compares it at each resolved timestamp."""
        rebuilt, numbers, once = Rebuilt(), [], set()
        for manifest, lines in self.batches():
            numbers.append(manifest["batch"])
            for line in lines:
                rebuilt.take(line)
                once.add((json.dumps(line["key"]), line["updated"], json.dumps(line["after"])))
            if manifest["resolved"] is None:
                continue
            at = parse(manifest["resolved"])
            rebuilt.resolve(at)
            if self.feeding.is_offline("t", at):
                continue  # SQL cannot tell
            self.feeding.compare("t", rebuilt, at)
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(once) == sum(len(lines) for _, lines in self.batches()), "a change is there twice"

    def wait_for(self, at: int) -> None:
        """Until a checkpoint says that all up to a time is there."""
        self._wait(lambda position: position.resolved_at >= at)

    def wait_for_alteration(self, number: int) -> None:
        """Until it goes by an alteration."""
        self._wait(lambda position: position.altered >= number)

    def _wait(self, is_so: Callable[[FeedPosition], bool]) -> None:
        node = self.feeding.node
        for _ in range(PATIENCE_STEPS):
            data = node.jobs.progress(node.store.snapshot(), self.job).data
            if data and is_so(unpack(data, FeedPosition)):
                return
            node.store.env.sleep(0.02)
        raise AssertionError(self.feeding.rows("SHOW CHANGEFEED JOBS"))


def test_files_have_every_change_once(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feeding.done("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    feed = FileFeed(feeding, directory)
    feeding.done("UPDATE t SET b = 'z' WHERE a = 1")
    feeding.done("ALTER TABLE t ADD COLUMN c int DEFAULT 5")
    feeding.done("DELETE FROM t WHERE a = 2")
    feed.wait_for(feeding.now())
    feed.check()
    ((_, state, _, _, high, lag, rows, size, _, sink, tables, error),) = [
        row[2:] for row in feeding.rows("SHOW CHANGEFEED JOBS") if row[0] == str(feed.job)
    ]
    full_name = f"{{defaultdb.{feeding.schema}.t}}"
    assert (state, sink, tables, error) == ("running", feeding.schema, full_name, None)
    assert high is not None and lag is not None and int(rows or 0) >= 4 and int(size or 0) > 100
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
    protections = feeding.node.job_protections
    assert protections.ids(feeding.node.store.snapshot(), feed.job) == ()


def test_a_paused_feed_goes_on_where_it_was(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feed = FileFeed(feeding, directory)
    feeding.done("INSERT INTO t VALUES (1, 'x')")
    feed.wait_for(feeding.now())
    feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
    feeding.done("INSERT INTO t VALUES (2, 'y')")
    feeding.done("ALTER TABLE t RENAME COLUMN b TO c")
    feeding.done("TRUNCATE t")
    feeding.done("INSERT INTO t VALUES (3, 'z')")
    feeding.done(f"RESUME JOB {feed.job}")
    feed.wait_for(feeding.now())
    feed.check()
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")


def test_tables_of_one_name_in_two_schemas_have_files_of_their_own(feeding: Feeding, directory: Path) -> None:
    other = f"{feeding.schema}_other"
    feeding.done(f"CREATE SCHEMA {other}")
    for number, table in enumerate(("t", f"{other}.t")):
        feeding.done(f"CREATE TABLE {table} (a int PRIMARY KEY)")
        feeding.done(f"INSERT INTO {table} VALUES ({number})")
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR t, {other}.t INTO '{feeding.schema}' WITH initial_scan = 'only'"
    )
    feeding.done(f"SHOW JOB WHEN COMPLETE {job}")
    feed = FileFeed(feeding, directory, job=int(job or 0))
    found = {
        file["table"]: (feed.files.parent / file["name"]).read_text()
        for manifest in feed.manifests()
        for file in manifest["files"]
    }
    assert found == {
        f"defaultdb.{feeding.schema}.t": '{"after":{"a":0},"key":[0]}\n',
        f"defaultdb.{other}.t": '{"after":{"a":1},"key":[1]}\n',
    }


def test_a_feed_with_an_end_succeeds(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1), (2)")
    feed = FileFeed(feeding, directory, ", initial_scan = 'only'")
    feeding.done(f"SHOW JOB WHEN COMPLETE {feed.job}")
    feed.check()
    assert sum(len(lines) for _, lines in feed.batches()) == 2


def test_a_dropped_table_ends_its_feed(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed = FileFeed(feeding, directory)
    feeding.done("INSERT INTO t VALUES (1)")
    feeding.done("DROP TABLE t")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert "was dropped" in str(error)
    row, event = [line for _, lines in feed.batches() for line in lines]
    assert (row["key"], event["ddl"]["events"]) == ([1], ["drop"])


def test_a_feed_that_is_idle_meets_a_schema_change(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("INSERT INTO t VALUES (1)")
    feed = FileFeed(feeding, directory)
    feed.wait_for(feeding.now())
    feeding.done("ALTER TABLE t ADD COLUMN b int DEFAULT 7")
    feed.wait_for(feeding.now())
    after = [line["after"] for _, lines in feed.batches() for line in lines]
    assert after == [{"a": 1}, {"a": 1, "b": 7}]
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")


def test_a_dropped_table_does_not_end_a_feed_of_two(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY)")
    ((job,),) = feeding.rows(
        f"CREATE CHANGEFEED FOR t, u INTO '{feeding.schema}' WITH updated, resolved = '50ms'"
    )
    feed = FileFeed(feeding, directory, job=int(job or 0))
    feeding.done("DROP TABLE t")
    feeding.done("INSERT INTO u VALUES (1)")
    feed.wait_for(feeding.now())
    lines = [line for _, lines in feed.batches() for line in lines]
    assert [line.get("after", "ddl") for line in lines] == ["ddl", {"a": 1}]
    feeding.done(f"PAUSE JOB {job} AND WAIT")
    feeding.done("INSERT INTO u VALUES (2)")
    feeding.done(f"RESUME JOB {job}")
    feed.wait_for(feeding.now())
    assert [line.get("key") for _, lines in feed.batches() for line in lines] == [None, [1], [2]]
    feeding.done("DROP TABLE u")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {job}")
    assert "was dropped" in str(error)


@pytest.mark.invariant("batch-once")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_run_that_ends_at_any_commit_repeats_and_loses_nothing(
    feeding: Feeding, directory: Path, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    monkeypatch.setattr(feed_job, "SQL", NOBODY_HAS)
    monkeypatch.setattr(feed_job, "COMMIT_BYTES", 1)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    feed = FileFeed(feeding, directory)
    job = feeding.node.jobs.get(feeding.node.store.snapshot(), feed.job)
    assert job is not None
    by_hand = ByHand(feeding.node, changefeed_kind(feeding.node.feeds), job)
    for commit in range(1, 9):
        feeding.done(f"UPDATE t SET b = b + 1 WHERE a <= {commit % 3 + 1}")
        if commit == 4:
            feeding.done("ALTER TABLE t ADD COLUMN c int DEFAULT 3")
        assert by_hand.crash(commit % 4 + 1, is_after=is_after)
    feed.check()
    assert feed.manifests()[-1]["batch"] >= 3


@pytest.mark.setting("changefeed.min_checkpoint_frequency")
def test_progress_is_saved_as_often_as_the_setting_says(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done("SET CLUSTER SETTING changefeed.min_checkpoint_frequency = '50ms'")
    (((job,),)) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{feeding.schema}' WITH no_initial_scan")
    FileFeed(feeding, directory, job=int(job or 0)).wait_for(feeding.now())
    feeding.done("RESET CLUSTER SETTING changefeed.min_checkpoint_frequency")
    feeding.done(f"CANCEL JOB {job} AND WAIT")


def test_history_that_a_feed_has_still_to_read_is_kept(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done("ALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds = 1")
    feeding.done("CREATE TABLE u (a int PRIMARY KEY, b int)")
    feeding.done("ALTER TABLE u CONFIGURE ZONE USING gc.ttlseconds = 1")
    feed = FileFeed(feeding, directory)
    feed.wait_for(feeding.now())
    feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
    for number in range(5):
        feeding.done(f"UPSERT INTO t VALUES (1, {number})")
        feeding.done(f"UPSERT INTO u VALUES (1, {number})")
    then_at = feeding.now()
    feeding.done("ALTER TABLE t ADD COLUMN c int")
    while feeding.talk.say(f"SELECT * FROM u AS OF SYSTEM TIME '{to_text(then_at)}'").sqlstate != "72000":
        feeding.done("RUN GC NOW")
    feeding.done(f"RESUME JOB {feed.job}")
    feed.wait_for(feeding.now())
    values = [line["after"]["b"] for _, lines in feed.batches() for line in lines]
    assert values == list(range(5))
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")


def test_a_feed_that_is_paused_too_long_is_canceled_with_the_reason(
    feeding: Feeding, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feed = FileFeed(feeding, directory, ", gc_protect_expires_after = '1h'")
    feed.wait_for(feeding.now())
    feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
    node, clock = feeding.node, feeding.node.store.clock
    node.reconciler.step()
    ((state,),) = feeding.rows(f"SELECT state FROM system.jobs WHERE id = {feed.job}")
    assert state == "paused"
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: add_seconds(now(), 3_601))
    node.reconciler.step()
    monkeypatch.undo()
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert str(error).startswith("72000 its protection of") and str(error).endswith("has expired")
    assert node.job_protections.ids(node.store.snapshot(), feed.job) == ()


def test_the_expiry_of_history_is_not_too_short(feeding: Feeding, directory: Path) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    answer = feeding.talk.say("CREATE CHANGEFEED FOR t INTO 'x' WITH gc_protect_expires_after = '5s'")
    assert (answer.sqlstate, answer.message) == (
        "22023",
        'option "gc_protect_expires_after" is at least 1m',
    )


def test_a_feed_whose_creator_loses_the_right_ends(feeding: Feeding, directory: Path) -> None:
    reader = f"loser_{feeding.schema}"
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b int)")
    feeding.done(f"CREATE ROLE {reader}")
    feeding.done(f"GRANT pg_write_server_files TO {reader}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO {reader}")
    feeding.done(f"GRANT CHANGEFEED ON t TO {reader}")
    feeding.done(f"SET ROLE {reader}")
    feed = FileFeed(feeding, directory)
    feeding.done("RESET ROLE")
    feeding.done(f"ALTER ROLE {reader} RENAME TO {reader}_2")
    feed.wait_for(feeding.node.store.snapshot().at)
    feeding.done(f"REVOKE CHANGEFEED ON t FROM {reader}_2")
    feeding.done("INSERT INTO t VALUES (1, 1)")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {feed.job}")
    assert str(error) == "42501 permission denied for table t"
    assert [lines for _, lines in feed.batches() if lines] == []


def test_a_feed_whose_creator_lost_the_right_fails_when_it_is_resumed(
    feeding: Feeding, directory: Path
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    feeding.done(f"CREATE ROLE reader_{feeding.schema}")
    feeding.done(f"GRANT pg_write_server_files TO reader_{feeding.schema}")
    feeding.done(f"GRANT USAGE ON SCHEMA {feeding.schema} TO reader_{feeding.schema}")
    feeding.done(f"GRANT CHANGEFEED ON t TO reader_{feeding.schema}")
    feeding.done(f"SET ROLE reader_{feeding.schema}")
    (((job,),)) = feeding.rows(f"CREATE CHANGEFEED FOR t INTO '{feeding.schema}'")
    feeding.done("RESET ROLE")
    feeding.done(f"PAUSE JOB {job} AND WAIT")
    feeding.done(f"REVOKE CHANGEFEED ON t FROM reader_{feeding.schema}")
    feeding.done(f"RESUME JOB {job}")
    ((*_, error, _),) = feeding.rows(f"SHOW JOB WHEN COMPLETE {job}")
    assert str(error) == "42501 permission denied for table t"


@pytest.mark.parametrize("seed", seeds(10, few=2))
def test_files_rebuild_the_table_at_every_resolved_timestamp(
    feeding: Feeding, directory: Path, seed: int
) -> None:
    rng = random.Random(seed)
    work = RandomWork(feeding, rng)
    feed = FileFeed(feeding, directory)
    for _ in range(30):
        work.step()
        if rng.random() < 0.15:
            feeding.done(f"PAUSE JOB {feed.job} AND WAIT")
            for _ in range(rng.randrange(4)):
                work.step()
            feeding.done(f"RESUME JOB {feed.job}")
    feed.wait_for(feeding.now())
    feed.check()
    feeding.done(f"CANCEL JOB {feed.job} AND WAIT")
