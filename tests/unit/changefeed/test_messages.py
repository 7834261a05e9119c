"""What messages look like in each envelope."""

import json
from typing import Any

import pytest

from tenure.base.errors import InvalidParameter
from tenure.base.timestamp import micros_of, parse, to_text
from tenure.changefeed.debezium import debezium_value
from tenure.changefeed.messages import METADATA, Message, line
from tenure.changefeed.options import Envelope, FeedOptions, InitialScan, SchemaPolicy, read_options
from tenure.changefeed.version_rows import RowChange
from tests.unit.changefeed.feeding import Feeding, SteppedFeed


def emitted(feeding: Feeding, **given: str | None) -> list[Message]:
    """The messages of an insert, an update and a deletion."""
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feed = SteppedFeed(feeding, ("t",), read_options({"no_initial_scan": None, **given}, parse))
    feeding.done("INSERT INTO t VALUES (1, 'x')")
    feeding.done("UPDATE t SET b = 'y\"' WHERE a = 1")
    feeding.done("DELETE FROM t WHERE a = 1")
    step_through(feeding, feed)
    feed.feed.close()
    assert [each.key for each in feed.sink.messages] == ["[1]"] * 3
    return feed.sink.messages


def step_through(feeding: Feeding, feed: SteppedFeed) -> None:
    until_at = feeding.now()
    while feed.feed.position.resolved_at < until_at:
        feed.feed.step()


def values(messages: list[Message]) -> list[Any]:
    return [None if each.value is None else json.loads(each.value) for each in messages]


def test_wrapped(feeding: Feeding) -> None:
    messages = emitted(feeding)
    assert values(messages) == [
        {"after": {"a": 1, "b": "x"}},
        {"after": {"a": 1, "b": 'y"'}},
        {"after": None},
    ]


def test_wrapped_with_everything(feeding: Feeding) -> None:
    messages = emitted(feeding, updated=None, mvcc_timestamp=None, diff=None, key_in_value=None)
    texts = [to_text(each.at) for each in messages]
    rows = [None, {"a": 1, "b": "x"}, {"a": 1, "b": 'y"'}, None]
    assert values(messages) == [
        {"after": rows[n + 1], "before": rows[n], "key": [1], "updated": at, "mvcc_timestamp": at}
        for n, at in enumerate(texts)
    ]


def test_bare(feeding: Feeding) -> None:
    messages = emitted(feeding, envelope="bare", key_in_value=None)
    assert values(messages) == [
        {"a": 1, "b": "x", METADATA: {"key": [1]}},
        {"a": 1, "b": 'y"', METADATA: {"key": [1]}},
        {METADATA: {"deleted": True, "key": [1]}},
    ]


def test_row_and_key_only(feeding: Feeding) -> None:
    messages = emitted(feeding, envelope="row")
    assert values(messages) == [{"a": 1, "b": "x"}, {"a": 1, "b": 'y"'}, None]
    of_row = line(messages[0], FeedOptions(Envelope.ROW))
    assert json.loads(of_row) == {"key": [1], "value": {"a": 1, "b": "x"}}
    feeding.done("DROP TABLE t")
    keys = emitted(feeding, envelope="key_only")
    assert values(keys) == [None] * 3
    assert line(keys[2], FeedOptions(Envelope.KEY_ONLY)) == '{"key":[1]}'


def test_a_table_without_a_primary_key_has_its_hidden_row_id_as_key(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (b text)")
    with feeding.feed(no_initial_scan=None) as feed:
        feeding.done("INSERT INTO t VALUES ('x')")
        feeding.done("UPDATE t SET b = 'y'")
        feeding.done("DELETE FROM t")
        changes = feed.catch_up()
        assert [each["after"] for each in changes] == [{"b": "x"}, {"b": "y"}, None]
        assert len({json.dumps(each["key"]) for each in changes}) == 1


def test_the_key_of_a_deletion_is_written_as_that_of_its_row(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (n numeric PRIMARY KEY, e text)")
    with feeding.feed(no_initial_scan=None) as feed:
        feeding.done("INSERT INTO t VALUES (1.50, 'x')")
        feeding.done("DELETE FROM t")
        feed.catch_up()
        texts = [message.key for message in feed.sink.messages]
        assert texts == ["[1.50]", "[1.50]"]


def test_options_are_read_once() -> None:
    assert read_options({}, parse) == FeedOptions()
    read = read_options({"resolved": "10s", "cursor": "5.0000000001", "schema_change_policy": "stop"}, parse)
    assert (read.resolved_seconds, read.cursor_at) == (10.0, parse("5.0000000001"))
    assert (read.initial_scan, read.policy) == (InitialScan.NO, SchemaPolicy.STOP)


@pytest.mark.parametrize(
    "values",
    [
        {"nonsense": None},
        {"envelope": "x"},
        {"envelope": None},
        {"updated": "x"},
        {"resolved": "1ms"},
        {"resolved": "soon"},
        {"initial_scan": "no", "initial_scan_only": None},
        {"initial_scan": "only", "end_time": "5"},
        {"envelope": "row", "diff": None},
        {"cursor": None},
        {"format": "xml"},
        {"format": "parquet", "envelope": "row"},
    ],
)
def test_bad_options_are_refused(values: dict[str, str | None]) -> None:
    with pytest.raises(InvalidParameter):
        read_options(values, parse)


def test_debezium(feeding: Feeding) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY, b text)")
    feeding.done("INSERT INTO t VALUES (1, 'x')")
    feed = SteppedFeed(feeding, ("t",), read_options({"envelope": "debezium"}, parse))
    step_through(feeding, feed)
    feeding.done("INSERT INTO t VALUES (2, 'y')")
    feeding.done("UPDATE t SET b = 'z' WHERE a = 2")
    feeding.done("DELETE FROM t WHERE a = 2")
    step_through(feeding, feed)
    feed.feed.close()
    messages = feed.sink.messages
    assert [each.key for each in messages] == ['{"a":1}', *['{"a":2}'] * 3]
    assert [each.is_deletion for each in messages] == [False, False, False, True]
    read = values(messages)
    y, z = {"a": 2, "b": "y"}, {"a": 2, "b": "z"}
    assert [(each["op"], each["before"], each["after"]) for each in read] == [
        ("r", None, {"a": 1, "b": "x"}),
        ("c", None, y),
        ("u", y, z),
        ("d", z, None),
    ]
    assert [each["source"]["snapshot"] for each in read] == ["true", "false", "false", "false"]
    for message, value in zip(messages, read, strict=True):
        milliseconds = micros_of(message.at) // 1000
        assert (value["ts_ms"], value["source"]["ts_ms"]) == (milliseconds, milliseconds)
        assert value["source"]["updated"] == to_text(message.at)
        assert value["source"]["connector"] == "tenure" and value["transaction"] is None
        assert line(message, FeedOptions(Envelope.DEBEZIUM)) == message.value


@pytest.mark.parametrize(
    ("topic", "parts"),
    [
        ("defaultdb.app.orders", ["defaultdb", "app", "orders"]),
        ('d."a.b"."say ""hi"""', ["d", "a.b", 'say "hi"']),
        ("t", ["", "", "t"]),
    ],
)
def test_debezium_names_database_schema_and_table(topic: str, parts: list[str]) -> None:
    change = RowChange(None, 1, (), None)  # type: ignore[arg-type]
    source = json.loads(debezium_value(topic, change, before="null", after="null"))["source"]
    assert [source[each] for each in ("db", "schema", "table")] == parts
