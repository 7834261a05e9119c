"""S18, S19, S20, S26: what people write as locations leads nowhere but where they may go."""

import gzip
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.base.errors import (
    BadFile,
    FileMissing,
    InputOutput,
    InvalidParameter,
    LimitExceeded,
    NoPermission,
    TenureError,
)
from tenure.storage.decompression import DecompressionLimits
from tenure.storage.location_text import escaped
from tenure.storage.locations import Location, Locations

SECRET = b"root:x:0:0"
KEYS = "AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY=CANARY"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory for files, and beside it what must not be reached."""
    root = tmp_path / "files"
    (root / "data").mkdir(parents=True)
    (root / "data" / "a.csv").write_bytes(b"a")
    for outside in (tmp_path / "outside", tmp_path / "files-of-others"):
        outside.mkdir()
        (outside / "a.csv").write_bytes(SECRET)
    (tmp_path / "passwd").write_bytes(SECRET)
    return root


@pytest.fixture
def locations(root: Path) -> Locations:
    return Locations(str(root))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Whatever is opened, looked at or connected to."""
    calls: list[object] = []
    monkeypatch.setattr("pyarrow.fs.S3FileSystem", lambda **_: calls.append("S3FileSystem"))

    def spy(place: object, name: str) -> None:
        real = getattr(place, name)

        def call(*args: object, **options: object) -> object:
            calls.append((name, args))
            return real(*args, **options)

        monkeypatch.setattr(place, name, call)

    for name in ("open", "stat", "scandir", "mkdir", "unlink", "link"):
        spy(os, name)
    spy(socket.socket, "connect")
    return calls


REFUSED = [
    "../passwd",
    "data/../../passwd",
    "data/..",
    "..",
    ".",
    "./../passwd",
    "%2e%2e/passwd",
    "%2e%2e%2fpasswd",
    "%2E%2E%2Fpasswd",
    "..%2fpasswd",
    ".%2e/passwd",
    "data/%2e%2e/%2e%2e/passwd",
    "..\\passwd",
    "..%5cpasswd",
    "data\\..\\..\\passwd",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "file:/etc/passwd",
    "file:../passwd",
    "file:///../etc/passwd",
    "file:///%2e%2e/etc/passwd",
    "file:///proc/self/environ",
    "/dev/stdin",
    "data/a.csv\0.txt",
    "data/a%00.csv",
    "data/a\n.csv",
    "data/a%0a.csv",
    "data/\x1b[31m",
    "data//a.csv",
    "a" * 256,
    "a/" * 2000,
    "a" * 100_000,
    "%61" * 300,
    ".unfinished/1-1",
    "http://169.254.169.254/latest/meta-data",
    "https://example.com/a.csv",
    "ftp://example.com/a.csv",
    "gs://bucket/a.csv",
    "nodelocal://1/a.csv",
    "jar:file:///etc/passwd",
    "data:,x",
    f"s3://bucket/a?{KEYS}&AWS_ENDPOINT=http://169.254.169.254",
    f"s3://bucket/a?{KEYS}&AWS_ENDPOINT=http://127.0.0.1:1",
    f"s3://bucket/a?{KEYS}&AWS_ENDPOINT=file:///etc/passwd",
    f"s3://bucket/a?{KEYS}&AWS_ENDPOINT=https://evil.example",
    f"s3://bucket/a?{KEYS}&AWS_REGION=x.evil.example/",
    f"s3://bucket/a?{KEYS}&AWS_REGION=..",
    f"s3://169.254.169.254:80/a?{KEYS}",
    f"s3://bucket/../other/a?{KEYS}",
    f"s3://bucket@evil.example/a?{KEYS}",
    "s3://bucket/a",
    "s3://bucket/a?AUTH=implicit",
    f"s3://bucket/a?AUTH=implicit&{KEYS}",
    "s3://bucket/a?AWS_ACCESS_KEY_ID=key",
    "s3://bucket/a?AWS_SECRET_ACCESS_KEY=CANARY",
]


@pytest.mark.invariant("S18")
@pytest.mark.invariant("S19")
@pytest.mark.parametrize("text", REFUSED)
def test_what_leads_elsewhere_is_refused_before_anything_is_opened(
    locations: Locations, opened: list[object], text: str
) -> None:
    with pytest.raises(TenureError) as caught:
        locations.resolve(text)
    assert caught.value.sqlstate in ("22023", "42501")
    assert opened == []


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_shows_neither_secrets_nor_the_directory_nor_forged_lines(
    locations: Locations, root: Path, text: str
) -> None:
    with pytest.raises(TenureError) as caught:
        locations.resolve(text)
    shown = str(caught.value) + caught.value.hint + caught.value.detail
    assert "CANARY" not in shown
    assert str(root) not in shown
    assert shown.isprintable()
    assert len(shown) < 5000


@pytest.mark.invariant("S18")
def test_a_directory_whose_name_begins_like_ours_is_another(locations: Locations, root: Path) -> None:
    with pytest.raises(NoPermission, match="outside of the directory for files"):
        locations.resolve(f"{root}-of-others/a.csv")


def test_absolute_paths_into_the_directory_are_welcome(locations: Locations, root: Path) -> None:
    for text in (f"{root}/data/a.csv", f"file://{root}/data/a.csv", "data/a.csv", f"{root}/data/*.csv"):
        assert [found.bytes for found in locations.resolve(text).expand()] == [1]


def test_the_operators_directory_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    locations = Locations(str(tmp_path / "link"))
    for text in ("data/a.csv", f"{tmp_path}/link/data/a.csv", f"{root}/data/a.csv"):
        with locations.resolve(text).open_input() as file:
            assert file.read() == b"a"


def test_without_a_directory_there_are_no_local_files() -> None:
    for text in ("a.csv", "/etc/passwd", "file:///etc/passwd"):
        with pytest.raises(NoPermission, match="no directory for files"):
            Locations(None).resolve(text)


def test_a_scheme_can_be_switched_off(root: Path) -> None:
    with pytest.raises(NoPermission, match="switched off"):
        Locations(str(root), schemes=frozenset({"s3"})).resolve("data/a.csv")
    with pytest.raises(NoPermission, match="switched off"):
        Locations(str(root), schemes=frozenset({"file"})).resolve(f"s3://bucket/a?{KEYS}")


@pytest.mark.invariant("S18")
@pytest.mark.parametrize("link", ["data", "data/inner", "data/a.csv"])
def test_a_link_anywhere_on_the_way_is_refused(
    locations: Locations, root: Path, tmp_path: Path, link: str
) -> None:
    (root / "data" / "inner").mkdir()
    (root / "data" / "inner" / "a.csv").write_bytes(b"a")
    (root / link).rename(tmp_path / "moved")
    (root / link).symlink_to(tmp_path / "moved")
    text = "data/inner/a.csv" if link != "data/a.csv" else link
    with pytest.raises(NoPermission):
        locations.resolve(text)


@pytest.mark.parametrize("target", ["../../passwd", "a.csv", "/dev/zero", "missing"])
def test_wildcards_refuse_links_rather_than_leave_them_out(
    locations: Locations, root: Path, target: str
) -> None:
    (root / "data" / "link.csv").symlink_to(target)
    with pytest.raises(NoPermission, match="link"):
        locations.resolve("data/*.csv").expand()


def test_wildcards_refuse_links_to_directories(locations: Locations, root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(NoPermission, match="link"):
        locations.resolve("*/a.csv").expand()


def _read(location: Location) -> bytes:
    with location.open_input() as file:
        return file.read()


def _list(location: Location) -> bytes:
    return b"".join(entry.name.encode() for page in location.list() for entry in page)


def _write(location: Location) -> bytes:
    with location.create("new") as output:
        output.write(b"mine")
    return b""


def _delete(location: Location) -> bytes:
    location.delete(["a.csv"])
    return b""


@pytest.mark.invariant("no-way-out")
@pytest.mark.parametrize(
    ("use", "text"), [(_read, "data/a.csv"), (_list, "data"), (_write, "data"), (_delete, "data")]
)
@pytest.mark.parametrize("before", range(1, 9))
def test_a_link_swapped_in_after_the_check_leads_nowhere(
    locations: Locations,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Location], bytes],
    text: str,
    before: int,
) -> None:
    """The location was resolved; before the n-th open of its use, `data` becomes a link to the outside."""
    location = locations.resolve(text)
    calls = iter(range(1, 100))
    real = os.open

    def racing_open(*args: object, **options: object) -> int:
        if next(calls) == before:
            (root / "data").rename(tmp_path / "moved")
            (root / "data").symlink_to(tmp_path / "outside")
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", racing_open)
    try:
        assert use(location) in (b"a", b"a.csv", b"")
    except (NoPermission, InputOutput, FileMissing):
        pass
    monkeypatch.undo()
    assert os.listdir(tmp_path / "outside") == ["a.csv"]
    assert (tmp_path / "outside" / "a.csv").read_bytes() == SECRET


@pytest.mark.parametrize(
    "name", [b"line\nbreak.csv", b"\x1b[31mred.csv", b"not-utf8-\xff.csv", b"back\\slash.csv"]
)
def test_files_with_names_that_forge_lines_are_refused_and_not_shown_raw(
    locations: Locations, root: Path, name: bytes
) -> None:
    Path(os.fsdecode(os.fsencode(root / "data") + b"/" + name)).write_bytes(b"x")
    with pytest.raises(InvalidParameter) as caught:
        locations.resolve("data/*.csv").expand()
    assert str(caught.value).isprintable()
    assert [entry.name for page in locations.resolve("data").list() for entry in page] == ["a.csv"]


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: os.mkdir(path)])
def test_what_is_no_plain_file_is_not_waited_for(
    locations: Locations, root: Path, make: Callable[[Path], None]
) -> None:
    make(root / "odd")
    with pytest.raises((NoPermission, InputOutput)):
        locations.resolve("odd").open_input()


@pytest.mark.invariant("S20")
@pytest.mark.parametrize(
    "table", ["f*", "f?o", "f%6Fo", "..", "../foo", "a/b", "a\\b", "a\nb", "#", "'\"", ".hidden", "C:", "|x"]
)
def test_a_tables_name_in_a_location_means_that_table_alone(
    locations: Locations, root: Path, table: str
) -> None:
    """Table `f*` must not reach `foo`."""
    (root / "export").mkdir()
    (root / "export" / "foo.csv").write_bytes(b"foo")
    name = f"t-{escaped(table)}.csv"
    with locations.resolve("export").create(name) as output:
        output.write(b"mine")
    assert sorted(os.listdir(root / "export")) == ["foo.csv", name]
    assert locations.resolve(f"export/{escaped(name)}").expand() == [("", 4)]


@pytest.mark.invariant("S19")
def test_a_location_that_is_no_longer_allowed_does_not_arrive(root: Path, tmp_path: Path) -> None:
    data = pickle.dumps(Locations(str(root)).resolve("data/a.csv"))
    (root / "data").rename(tmp_path / "moved")
    (root / "data").symlink_to(tmp_path / "outside")
    with pytest.raises(NoPermission):
        pickle.loads(data)


def test_a_location_arrives_in_a_process_that_started_elsewhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    data = pickle.dumps(Locations("files").resolve("data/a.csv"))
    monkeypatch.chdir(tmp_path / "outside")
    assert _read(pickle.loads(data)) == b"a"


@pytest.mark.invariant("S19")
def test_a_job_that_resumes_under_other_rules_is_judged_by_them(root: Path) -> None:
    text = f"s3://bucket/a?{KEYS}&AWS_ENDPOINT=https://store.example"
    Locations(None, endpoints=("https://store.example",)).resolve(text)
    with pytest.raises(NoPermission, match="endpoint"):
        Locations(None).resolve(text)


def test_the_nodes_credentials_are_for_those_whom_the_operator_lets() -> None:
    text = "s3://bucket/a?AUTH=implicit"
    Locations(None, has_implicit_credentials=True).resolve(text)
    with pytest.raises(NoPermission, match="credentials of this node"):
        Locations(None).resolve(text)


@pytest.mark.invariant("S24-locations")
def test_a_store_that_refuses_shows_no_secret(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    locations = Locations(None, endpoints=(s3_endpoint, "http://127.0.0.1:1"))
    for endpoint in (s3_endpoint, "http://127.0.0.1:1"):
        location = locations.resolve(f"s3://no-such-bucket/a?{KEYS}&AWS_ENDPOINT={endpoint}")
        with pytest.raises(TenureError) as caught:
            location.open_input()
        assert "CANARY" not in f"{caught.value!r}{caught.value.__cause__!r}{location!r}"


@pytest.mark.invariant("S26")
def test_a_bomb_in_a_file_is_stopped_early(locations: Locations, root: Path) -> None:
    (root / "bomb.csv.gz").write_bytes(gzip.compress(bytes(64 << 20)))
    with locations.resolve("bomb.csv.gz").open_decompressed() as file, pytest.raises(LimitExceeded):
        file.read()
    limits = DecompressionLimits(bytes_max=1 << 20)
    with (
        locations.resolve("bomb.csv.gz").open_decompressed(limits=limits) as file,
        pytest.raises(LimitExceeded),
    ):
        file.read()


@pytest.mark.invariant("S26")
def test_a_bomb_takes_little_memory(locations: Locations, root: Path) -> None:
    """Four gigabytes in four megabytes of gzip, read to its refusal by a process with 400 MB."""
    (root / "bomb.gz").write_bytes(gzip.compress(bytes(64 << 20), 9) * 64)
    script = (
        "import resource, sys\n"
        "from tenure.storage.locations import Locations\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "file = Locations(sys.argv[1]).resolve('bomb.gz').open_decompressed()\n"
        "try:\n"
        "    while file.read(1 << 16): pass\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "LimitExceeded\n"


@pytest.mark.invariant("S26")
def test_an_archive_of_many_entries_costs_nothing(locations: Locations, root: Path) -> None:
    entry = b"PK\x03\x04" + bytes(26) + b"x"
    (root / "many.zip").write_bytes(entry * 100_000)
    with pytest.raises(BadFile, match="is an archive"):
        locations.resolve("many.zip").open_decompressed()
