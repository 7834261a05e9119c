"""The command line: what it accepts, what it shows, what it keeps to itself."""

import pytest

from tenure import __version__, cli
from tenure.base.env import ManualEnv
from tenure.base.errors import DiskFull, InvalidParameter, TenureError
from tenure.storage.addresses import open_engine, redacted


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"tenure {__version__}\n"


def test_a_command_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_unknown_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["start", "--no-such-option"])
    assert ended.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_the_store_has_a_default() -> None:
    assert cli._parser().parse_args(["start"]).store == "sqlite:tenure-data/store.db"


@pytest.mark.parametrize("address", ["", "sqlite:", "sqlite::memory:", "mysql://host/db", "store.db"])
def test_what_is_no_store_is_refused(address: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        open_engine(address, ManualEnv())
    assert "postgresql://" in refused.value.hint


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sqlite:data/store.db", "sqlite:data/store.db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://ann:secret@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://:secret@host/db", "postgresql://:***@host/db"),
        ("postgresql://ann:se@cr:et/x@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://host/db?user=ann&password=secret", "postgresql://host/db?user=ann&password=***"),
        ("postgresql://host/db?sslpassword=secret&x=1", "postgresql://host/db?sslpassword=***&x=1"),
        ("mysql://ann:secret@host/db", "mysql://ann:***@host/db"),
    ],
)
def test_passwords_are_not_shown(address: str, shown: str) -> None:
    assert redacted(address) == shown


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DiskFull("disk is full", hint="Free some space."), "disk is full. Free some space."),
        (TenureError("two\nlines"), "two lines"),
    ],
)
def test_an_error_is_told_in_one_line(error: TenureError, line: str) -> None:
    assert cli._one_line(error) == line
