"""A local directory: what makes a file durable, what a crash leaves, and what the system's errors become."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.base.errors import DiskFull, FileExists, FileMissing, InputOutput, NoPermission, StoreError
from tenure.storage.directory import UNFINISHED, Directory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def directory(root: Path) -> Directory:
    return Directory(str(root))


def put(directory: Directory, name: str, data: bytes = b"x") -> None:
    with directory.create(name) as output:
        output.write(data)


@pytest.mark.invariant("whole-files")
def test_data_then_name_then_every_directory_are_made_durable(
    directory: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def path_of(file: int) -> str:
        path = os.readlink(f"/proc/self/fd/{file}")
        return os.path.relpath(path, root).replace(f"{os.getpid()}-", "")

    def spy(name: str, show: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*args: object, **options: object) -> object:
            calls.append(f"{name} {show(*args)}")
            return real(*args, **options)

        monkeypatch.setattr(os, name, call)

    output = directory.create("a/b/c")
    output.write(b"x")
    temporary = f"{UNFINISHED}/{os.listdir(root / UNFINISHED)[0]}".replace(f"{os.getpid()}-", "")
    spy("fsync", path_of)
    spy("link", lambda _, target: target)
    spy("mkdir", lambda name, *_: name)
    output.close()
    assert calls == [
        f"fsync {temporary}",
        "mkdir a",
        "fsync .",
        "mkdir b",
        "fsync a",
        "link c",
        "fsync a/b",
    ]


@pytest.mark.invariant("whole-files")
@pytest.mark.parametrize("failing_call", [1, 2, 3])
def test_a_file_that_could_not_be_made_durable_never_was(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    output = directory.create("a/b")
    output.write(b"x")
    calls = iter(range(1, 100))
    real = os.fsync

    def fsync(file: int) -> None:
        if next(calls) == failing_call:
            raise OSError(errno.EIO, "")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputOutput, match=r'could not write file "a/b": Input/output error'):
        output.close()
    assert list(directory.children("a")) == []
    assert list(directory.children(UNFINISHED)) == []


def test_what_a_crashed_writer_left_is_removed_when_it_is_old(directory: Directory, root: Path) -> None:
    left = root / UNFINISHED / "123-0"
    left.parent.mkdir()
    left.write_bytes(b"half")
    os.utime(left, ns=(0, 5_000_000))
    assert directory.delete_unfinished(before_micros=5000) == 0
    assert directory.delete_unfinished(before_micros=5001) == 1
    assert not left.exists()


def test_unfinished_files_are_not_listed(directory: Directory) -> None:
    output = directory.create("a")
    assert list(directory.children("")) == []
    output.abort()


def test_a_temporary_name_that_is_taken_is_left_alone(
    directory: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = root / UNFINISHED / f"{os.getpid()}-7"
    taken.parent.mkdir()
    taken.write_bytes(b"theirs")
    monkeypatch.setattr("tenure.storage.directory._numbers", iter([7, 8]))
    put(directory, "a", b"ours")
    assert (root / "a").read_bytes() == b"ours"
    assert taken.read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EACCES, NoPermission),
        (errno.EROFS, NoPermission),
        (errno.EIO, InputOutput),
        (errno.ENOENT, FileMissing),
        (errno.EEXIST, FileExists),
    ],
)
def test_the_systems_errors_have_their_sqlstate_and_show_no_path(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StoreError]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "x", directory.root)

    output = directory.create("a")
    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(kind) as caught:
        output.close()
    assert str(caught.value) == f'could not write file "a": {os.strerror(number)}'


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    output = Directory(str(tmp_path)).create("a")
    os.dup2(os.open("/dev/full", os.O_WRONLY), output._file.fileno())  # type: ignore[attr-defined]
    with pytest.raises(DiskFull) as caught:
        output.write(b"x" * 1_000_000)
    assert caught.value.sqlstate == "53100"
    output.abort()


def test_files_and_directories_are_for_the_nodes_user_alone(directory: Directory, root: Path) -> None:
    put(directory, "d/a")
    assert stat.S_IMODE((root / "d").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "d" / "a").stat().st_mode) == 0o600


@pytest.mark.invariant("no-way-out")
def test_symbolic_links_are_not_followed(directory: Directory, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside" / "secret")
    for name in ("link/secret", "file"):
        with pytest.raises(NoPermission, match="symbolic links are not followed"):
            directory.open_input(name)
    with pytest.raises(NoPermission):
        list(directory.children("link"))
    with pytest.raises(NoPermission):
        directory.create("link/new")
    with pytest.raises(NoPermission):
        directory.delete(["link/secret"])
    assert (tmp_path / "outside" / "secret").exists()


@pytest.mark.invariant("no-way-out")
@pytest.mark.parametrize("swapped", ["a", "a/b", "a/b/file"])
@pytest.mark.parametrize("before", range(1, 5))
def test_a_link_that_is_swapped_in_between_any_two_steps_leads_nowhere(
    directory: Directory,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    swapped: str,
    before: int,
) -> None:
    """Before the n-th open of root, a, b and file, one of them becomes a link to a twin outside."""
    outside = tmp_path / "outside"
    for place, content in ((root, b"inside"), (outside, b"secret")):
        (place / "a" / "b").mkdir(parents=True)
        (place / "a" / "b" / "file").write_bytes(content)
    calls = iter(range(1, 100))
    real = os.open

    def racing_open(*args: object, **options: object) -> int:
        if next(calls) == before:
            (root / swapped).rename(tmp_path / "moved")
            (root / swapped).symlink_to(outside / swapped)
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", racing_open)
    try:
        with directory.open_input("a/b/file") as file:
            assert file.read() == b"inside"
    except (NoPermission, InputOutput):
        pass


def test_a_pipe_is_refused_without_waiting_for_its_writer(directory: Directory, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(InputOutput, match="not a plain file"):
        directory.open_input("pipe")


def test_a_directory_is_no_file(directory: Directory, root: Path) -> None:
    (root / "d").mkdir()
    with pytest.raises(InputOutput, match="not a plain file"):
        directory.open_input("d")


def test_the_root_is_made_with_all_that_leads_to_it(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path / "x" / "y"))
    directory.make_root()
    directory.make_root()
    put(directory, "a")
    assert (tmp_path / "x" / "y" / "a").read_bytes() == b"x"
