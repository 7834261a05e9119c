"""The sink of files by itself: batches, manifests, and two runs that believe to have the job."""

import json
from pathlib import Path

import pytest

from tenure.base.errors import RetryError
from tenure.changefeed.messages import Message
from tenure.changefeed.records import FeedPosition, TablePosition
from tenure.changefeed.sinks import files
from tenure.changefeed.sinks.files import FileSink
from tenure.storage.locations import Locations
from tests.contract.sink_rigs import JOB, START, sink_run


def sink(directory: Path, run: int) -> FileSink:
    return FileSink(Locations(str(directory)).resolve("feed"), sink_run(run))


def position(at: int, rows: int) -> FeedPosition:
    return FeedPosition((TablePosition(7, at),), rows=rows)


def message(number: int, topic: str = "t") -> Message:
    return Message(topic, f"[{number}]", json.dumps({"after": {"a": number}, "key": [number]}), number)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "feed" / str(JOB)).iterdir())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    Locations(str(tmp_path)).make_directory()
    return tmp_path


def test_files_count_when_their_manifest_is_there(directory: Path) -> None:
    feed = sink(directory, 1)
    assert feed.resume(START) == START
    feed.emit([message(1), message(2, "u")])
    assert not (directory / "feed").exists()
    assert feed.commit(position(5, 2)).batch == 1
    manifest = json.loads((directory / "feed" / str(JOB) / "000000000001.json").read_text())
    assert [(each["table"], each["rows"]) for each in manifest["files"]] == [("t", 1), ("u", 1)]


def test_large_batches_are_written_in_parts(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FILE_BYTES", 1)
    feed = sink(directory, 1)
    feed.resume(START)
    feed.emit([message(1)])
    feed.emit([message(2)])
    assert len(names(directory)) == 2
    feed.close()
    assert names(directory) == []


def test_of_two_runs_one_commits_a_batch(directory: Path) -> None:
    former, latter = sink(directory, 1), sink(directory, 2)
    former.resume(START)
    latter.resume(START)
    former.emit([message(1)])
    latter.emit([message(1)])
    committed = former.commit(position(5, 1))
    with pytest.raises(RetryError):
        latter.commit(position(6, 1))
    again = sink(directory, 3)
    assert again.resume(START) == committed
    again.emit([message(2)])
    assert again.commit(position(9, 2)).batch == 2
    assert names(directory) == [
        "000000000001-r1-1-t.ndjson",
        "000000000001-r2-1-t.ndjson",
        "000000000001.json",
        "000000000002-r3-1-t.ndjson",
        "000000000002.json",
    ]


def test_a_run_deletes_what_a_dead_one_has_left_of_its_batch(directory: Path) -> None:
    dead = sink(directory, 1)
    dead.resume(START)
    dead.emit([message(1)])
    dead._write("t")
    feed = sink(directory, 2)
    feed.resume(START)
    feed.emit([message(1)])
    feed.commit(position(5, 1))
    assert names(directory) == ["000000000001-r2-1-t.ndjson", "000000000001.json"]


@pytest.mark.parametrize("name", ["a/b", "..", "x" * 300, "ö" * 200, 'say "hi"'])
def test_any_name_of_a_table_makes_a_file(directory: Path, name: str) -> None:
    feed = sink(directory, 1)
    feed.resume(START)
    feed.emit([message(1, name)])
    feed.commit(position(5, 1))
    assert len(names(directory)) == 2
