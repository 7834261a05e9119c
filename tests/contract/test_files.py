"""The contract of files: written once and whole, listed, read and deleted, wherever they lie."""

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tenure.base.errors import FileExists, FileMissing, InvalidParameter
from tenure.storage.files import Files, open_files

LARGE = bytes(range(256)) * 4 * 1024 * 12
"""Twelve megabytes: more than one part of an upload."""


def put(files: Files, name: str, data: bytes = b"x") -> None:
    with files.create(name) as output:
        output.write(data)


def write_and_fail(files: Files, name: str) -> None:
    with files.create(name) as output:
        output.write(LARGE)
        raise ZeroDivisionError


def names(files: Files, directory: str = "") -> list[str]:
    return [entry.name for page in files.list(directory) for entry in page]


def test_what_was_written_is_read(files: Files) -> None:
    put(files, "a/b", b"abc")
    assert files.read("a/b", bytes_max=10) == b"abc"
    assert files.size("a/b") == 3
    assert files.exists("a/b")


def test_an_empty_file_is_a_file(files: Files) -> None:
    put(files, "a", b"")
    assert (files.exists("a"), files.size("a"), files.read("a", bytes_max=1)) == (True, 0, b"")


def test_a_large_file_comes_back_as_it_was(files: Files) -> None:
    put(files, "a", LARGE)
    assert files.size("a") == len(LARGE)
    assert files.read("a", bytes_max=len(LARGE)) == LARGE


def test_a_file_larger_than_asked_for_is_refused(files: Files) -> None:
    put(files, "a", b"12345")
    with pytest.raises(InvalidParameter, match="larger than 4 bytes"):
        files.read("a", bytes_max=4)


def test_an_input_can_be_read_from_anywhere(files: Files) -> None:
    put(files, "a", b"0123456789")
    with files.open_input("a") as file:
        assert file.seek(4) == 4
        assert file.read(2) == b"45"
        file.seek(-1, 2)
        assert file.read() == b"9"


@pytest.mark.invariant("whole-files")
def test_a_file_appears_when_it_is_closed(files: Files) -> None:
    output = files.create("d/a")
    output.write(LARGE)
    assert not files.exists("d/a")
    assert names(files) == []
    output.close()
    assert names(files) == ["d/a"]


@pytest.mark.invariant("whole-files")
def test_a_file_whose_writer_fails_never_was(files: Files) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(files, "a")
    assert names(files) == []
    put(files, "a", b"again")
    assert files.read("a", bytes_max=10) == b"again"


@pytest.mark.invariant("whole-files")
def test_a_file_that_is_dropped_without_being_closed_never_was(files: Files) -> None:
    output = files.create("a")
    output.write(LARGE)
    del output
    assert names(files) == []


KILLED = """
import os, signal, sys
from tenure.storage.files import open_files
output = open_files(sys.argv[1]).create("d/a")
output.write(bytes(12_000_000))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.invariant("whole-files")
def test_a_file_whose_writer_is_killed_never_was(files: Files) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, files.address], check=False)
    assert done.returncode == -signal.SIGKILL
    assert names(files) == []
    put(files, "d/a", b"again")
    files.delete_unfinished(before_micros=1 << 62)
    assert files.read("d/a", bytes_max=10) == b"again"


def test_closing_after_giving_up_publishes_nothing(files: Files) -> None:
    output = files.create("a")
    output.write(b"x")
    output.abort()
    output.close()
    assert names(files) == []


@pytest.mark.invariant("written-once")
def test_a_name_that_is_taken_is_refused_at_once(files: Files) -> None:
    put(files, "a", b"first")
    with pytest.raises(FileExists, match='"a"'):
        files.create("a")
    assert files.read("a", bytes_max=10) == b"first"


@pytest.mark.invariant("written-once")
def test_of_two_writers_the_first_to_close_wins(files: Files) -> None:
    slow = files.create("a")
    slow.write(b"slow")
    put(files, "a", b"quick")
    with pytest.raises(FileExists):
        slow.close()
    assert files.read("a", bytes_max=10) == b"quick"


def test_a_missing_file_has_its_own_error(files: Files) -> None:
    put(files, "d/a")
    for name in ("no", "d/no", "no/no", "d"):
        assert not files.exists(name)
        with pytest.raises(FileMissing) as caught:
            files.size(name)
        assert caught.value.sqlstate == "58P01"
    for name in ("no", "d/no", "no/no"):
        with pytest.raises(FileMissing):
            files.open_input(name)


def test_a_listing_has_name_size_and_time(files: Files) -> None:
    put(files, "d/a", b"abc")
    put(files, "d/b", b"")
    assert [(entry.name, entry.bytes) for page in files.list() for entry in page] == [("d/a", 3), ("d/b", 0)]
    assert all(entry.modified_micros > 1_600_000_000_000_000 for page in files.list() for entry in page)


def test_a_listing_goes_below_one_directory_and_no_other_of_like_name(files: Files) -> None:
    for name in ("t1/a", "t1/d/b", "t12/c", "t1-x"):
        put(files, name)
    assert names(files, "t1") == ["t1/a", "t1/d/b"]
    assert names(files, "t") == []
    assert sorted(names(files)) == ["t1-x", "t1/a", "t1/d/b", "t12/c"]


def test_a_listing_comes_in_pages(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.storage.files.PAGE_ENTRIES", 2)
    for name in "abcde":
        put(files, f"d/{name}")
    assert [len(page) for page in files.list("d")] == [2, 2, 1]


def test_deleting_twice_is_deleting_once(files: Files) -> None:
    for name in ("d/a", "d/b", "c"):
        put(files, name)
    files.delete(["d/a", "c"])
    files.delete(["d/a", "c", "never/was"])
    assert names(files) == ["d/b"]


def test_what_a_writer_is_at_survives_the_removal_of_unfinished_files(files: Files) -> None:
    output = files.create("a")
    output.write(b"x")
    assert files.delete_unfinished(before_micros=1) == 0
    output.close()
    assert names(files) == ["a"]


def test_another_process_opens_the_same_files_by_their_address(files: Files) -> None:
    put(files, "d/a", b"abc")
    again = open_files(pickle.loads(pickle.dumps(files.address)))
    assert again.read("d/a", bytes_max=10) == b"abc"
    assert again.address == files.address


def test_parquet_is_written_and_read_by_pyarrow(files: Files) -> None:
    table = pa.table({"key": [b"a", b"b"], "c1": [1, None]})
    with files.create("d/t.parquet") as output:
        pq.write_table(table, output)
    with files.open_input("d/t.parquet") as file:
        assert pq.ParquetFile(file).read().equals(table)
    with files.arrow.open_input_file("d/t.parquet") as file:
        assert pq.read_table(file).equals(table)


def test_csv_is_written_and_read_by_pyarrow(files: Files) -> None:
    table = pa.table({"a": [1, 2]})
    with files.create("t.csv") as output:
        pa.csv.write_csv(table, output)
    with files.open_input("t.csv") as file:
        assert pa.csv.read_csv(file).equals(table)


def test_duckdb_reads_a_file(files: Files) -> None:
    with files.create("d/t.parquet") as output:
        pq.write_table(pa.table({"a": list(range(5000))}), output, row_group_size=1000)
    with duckdb.connect() as connection:
        files.let_duckdb_read(connection)
        query = "SELECT count(*), sum(a) FROM read_parquet($1) WHERE a >= 4000"
        assert connection.execute(query, [files.duck_path("d/t.parquet")]).fetchall() == [(1000, 4499500)]


def test_duckdb_can_be_held_to_these_files(files: Files, tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with files.create("t.parquet") as output:
        pq.write_table(table, output)
    pq.write_table(table, tmp_path / "other.parquet")
    with duckdb.connect() as connection:
        files.let_duckdb_read(connection)
        connection.execute("SET allowed_directories = $1", [[files.duck_root]])
        connection.execute("SET enable_external_access = false")
        query = "SELECT a FROM read_parquet($1)"
        assert connection.execute(query, [files.duck_path("t.parquet")]).fetchall() == [(1,)]
        with pytest.raises(duckdb.PermissionException):
            connection.execute(query, [str(tmp_path / "other.parquet")])


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "a/../b",
        ".a",
        "a\0b",
        "a\\b",
        "a*",
        "a b",
        "é",
        "a\n",
        "a" * 129,
        "a/" * 300,
    ],
)
@pytest.mark.invariant("own-names")
def test_names_outside_our_alphabet_are_refused_everywhere(files: Files, name: str) -> None:
    for use in (
        files.open_input,
        files.create,
        files.exists,
        files.size,
        files.duck_path,
        lambda n: files.delete([n]),
    ):
        with pytest.raises(InvalidParameter):
            use(name)
    if name:
        with pytest.raises(InvalidParameter):
            next(files.list(name))


def test_what_goes_wrong_with_pyarrow_is_one_of_our_errors(files: Files) -> None:
    with pytest.raises(FileMissing, match="none"), files.reading("none.parquet"):
        pq.read_table(files.arrow.open_input_file("none.parquet"))
