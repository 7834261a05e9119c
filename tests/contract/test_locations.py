"""The contract of locations: what statements name is found, read, written and listed, wherever it lies."""

import gzip
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.base.errors import FileExists, FileMissing, InvalidParameter, LimitExceeded, TenureError
from tenure.storage.locations import Location, Locations

Resolve = Callable[[str], Location]


@pytest.fixture(params=["directory", "bucket"])
def resolve(request: pytest.FixtureRequest, tmp_path: Path) -> Resolve:
    """Resolves a path below a fresh place of either kind."""
    if request.param == "directory":
        (tmp_path / "files").mkdir()
        return Locations(str(tmp_path / "files")).resolve
    endpoint = request.getfixturevalue("s3_endpoint")
    bucket = request.getfixturevalue("bucket_address").removeprefix("s3://").partition("/")[0]
    locations = Locations(None, endpoints=(endpoint,))
    query = f"AWS_ACCESS_KEY_ID=a&AWS_SECRET_ACCESS_KEY=CANARY&AWS_ENDPOINT={endpoint}"
    return lambda path: locations.resolve(f"s3://{bucket}/{path}?{query}")


def put(location: Location, name: str, data: bytes = b"x") -> None:
    with location.create(name) as output:
        output.write(data)


def names(location: Location) -> list[str]:
    return [found.name for found in location.expand()]


def test_what_is_exported_is_imported(resolve: Resolve) -> None:
    put(resolve("out/daily"), "part-1.csv", b"a,b\n")
    with resolve("out/daily/part-1.csv").open_input() as file:
        assert file.read() == b"a,b\n"
    with resolve("out/daily/*.csv").open_input("part-1.csv") as file:
        assert file.read() == b"a,b\n"


def test_one_file_stands_for_itself(resolve: Resolve) -> None:
    put(resolve("data"), "a.csv", b"abc")
    assert resolve("data/a.csv").expand() == [("", 3)]
    assert resolve("data/a.csv").size() == 3


def test_wildcards_stand_for_the_files_they_match_in_order(resolve: Resolve) -> None:
    for name in ("b.csv", "a.csv", "a.txt", "sub/c.csv", ".hidden.csv"):
        put(resolve("data"), name)
    assert names(resolve("data/*.csv")) == ["a.csv", "b.csv"]
    assert names(resolve("data/?.*")) == ["a.csv", "a.txt", "b.csv"]
    assert names(resolve("data/*")) == ["a.csv", "a.txt", "b.csv"]


def test_wildcards_may_stand_for_directories(resolve: Resolve) -> None:
    for name in ("2025/01/a", "2025/02/a", "2026/01/a", "2026/01/b", "2026/x"):
        put(resolve("data"), name)
    assert names(resolve("data/*/01/a")) == ["2025/01/a", "2026/01/a"]
    assert names(resolve("data/2026/*/*")) == ["01/a", "01/b"]


@pytest.mark.invariant("S20")
def test_a_name_with_a_star_reaches_itself_and_no_other(resolve: Resolve) -> None:
    put(resolve("data"), "foo", b"foo")
    put(resolve("data"), "f*", b"star")
    assert names(resolve("data/f%2A")) == [""]
    with resolve("data/f%2A").open_input() as file:
        assert file.read() == b"star"
    with resolve("data").open_input("f*") as file:
        assert file.read() == b"star"
    resolve("data").delete(["f*"])
    assert names(resolve("data/*")) == ["foo"]


@pytest.mark.invariant("S20")
def test_a_directory_does_not_reach_its_neighbour_of_like_name(resolve: Resolve) -> None:
    put(resolve("t1"), "a")
    put(resolve("t12"), "b")
    assert [entry.name for page in resolve("t1").list() for entry in page] == ["a"]
    with pytest.raises(FileMissing):
        resolve("t").expand()


@pytest.mark.parametrize(
    "name",
    ["a b.csv", "naïve 名前 😀.csv", "a'b\"c.csv", "$(x)`y`;z.csv", "100%.csv", "a#b&c=d+e.csv", "-rf", "~"],
)
@pytest.mark.invariant("S20")
def test_odd_names_come_back_as_they_are(resolve: Resolve, name: str) -> None:
    put(resolve("data"), name, name.encode())
    assert names(resolve("data/*")) == [name]
    with resolve("data/*").open_input(name) as file:
        assert file.read() == name.encode()


def test_nothing_matching_is_an_error(resolve: Resolve) -> None:
    put(resolve("data"), "a.csv")
    for path in ("data/*.parquet", "none/*", "data/none", "data/a.csv/*"):
        with pytest.raises(TenureError) as caught:
            resolve(path).expand()
        assert caught.value.sqlstate in ("58P01", "58030")
        assert path in str(caught.value)


def test_a_directory_is_not_taken_for_a_file(resolve: Resolve) -> None:
    put(resolve("data"), "a.csv")
    with pytest.raises(InvalidParameter, match="is a directory"):
        resolve("data").expand()


def test_more_files_than_allowed_are_refused(resolve: Resolve) -> None:
    for name in "abc":
        put(resolve("data"), name)
    assert len(resolve("data/*").expand(files_max=3)) == 3
    with pytest.raises(LimitExceeded, match="more than 2 files"):
        resolve("data/*").expand(files_max=2)


def test_more_names_than_allowed_are_not_looked_through(
    resolve: Resolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.storage.locations.VISITED_MAX", 2)
    for name in "abc":
        put(resolve("data"), name)
    with pytest.raises(LimitExceeded, match="too many"):
        resolve("data/x*").expand()


def test_an_export_does_not_overwrite(resolve: Resolve) -> None:
    put(resolve("out"), "a", b"first")
    with pytest.raises(FileExists):
        resolve("out").create("a")


def test_nothing_is_written_to_wildcards(resolve: Resolve) -> None:
    with pytest.raises(InvalidParameter, match="wildcards"):
        resolve("out/*").create("a")


@pytest.mark.parametrize(
    "name", ["../a", "a/../b", "/a", "a\\b", "a\0", "a\nb", "", "..", "a//b", "x" * 256, ".unfinished/1"]
)
@pytest.mark.invariant("S18")
def test_names_below_a_location_are_checked(resolve: Resolve, name: str) -> None:
    location = resolve("out")
    uses: list[Callable[[], object]] = [lambda: location.create(name), lambda: location.delete([name])]
    for use in uses if name else []:
        with pytest.raises(InvalidParameter):
            use()
    if name:
        with pytest.raises(InvalidParameter):
            location.open_input(name)


def test_a_location_is_resolved_again_where_it_arrives(resolve: Resolve) -> None:
    put(resolve("out"), "a", b"abc")
    location = pickle.loads(pickle.dumps(resolve("out")))
    with location.open_input("a") as file:
        assert file.read() == b"abc"


def test_compressed_files_are_read(resolve: Resolve) -> None:
    put(resolve("data"), "a.csv.gz", gzip.compress(b"a,b\n"))
    with resolve("data/a.csv.gz").open_decompressed() as file:
        assert file.read() == b"a,b\n"


def test_a_text_is_written_through_a_wrapper(resolve: Resolve) -> None:
    with resolve("out").create("a.txt") as output:
        text = io.TextIOWrapper(output, encoding="utf-8", newline="\n")  # type: ignore[type-var]
        text.write("é\n")
        text.flush()
        text.detach()
    with resolve("out/a.txt").open_input() as file:
        assert file.read() == "é\n".encode()


def test_parquet_is_read_from_a_location(resolve: Resolve) -> None:
    table = pa.table({"a": list(range(1000))})
    with resolve("out").create("a.parquet") as output:
        pq.write_table(table, output)
    with resolve("out/a.parquet").open_input() as file:
        assert pq.ParquetFile(file).read().equals(table)


@pytest.mark.invariant("S24-locations")
def test_errors_name_the_location_as_it_was_written_without_its_secrets(resolve: Resolve) -> None:
    location = resolve("data/none.csv")
    with pytest.raises(FileMissing) as caught:
        location.open_input()
    assert "data/none.csv" in str(caught.value)
    assert "CANARY" not in f"{caught.value}{caught.value.__cause__}{location!r}{location.shown}"
