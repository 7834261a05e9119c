"""The command line: what it accepts, what it shows, what it keeps to itself."""

import socket
import subprocess
import sys

import pytest

from tenure import __version__, cli, processes, worker
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


def test_a_store_command_that_is_interrupted_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(options: object, env: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tenure.base.process_ending.signal.signal", lambda number, handler: None)
    monkeypatch.setattr("tenure.cli.store_commands.run", interrupted)
    assert cli.main(["store", "use-lake"]) == 1
    assert "interrupted" in capsys.readouterr().err


def test_unknown_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["start", "--no-such-option"])
    assert ended.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_the_store_has_a_default() -> None:
    assert cli._parser().parse_args(["start"]).store == "sqlite:tenure-data/store.db"


@pytest.mark.parametrize(
    ("arguments", "lake"),
    [
        ("start", "tenure-data/lake"),
        ("start --store sqlite:data/store.db", "data/lake"),
        ("worker --store sqlite:/srv/a.db", "/srv/lake"),
        ("start --store sqlite:store.db", "lake"),
        ("start --store postgresql://h/d", "tenure-data/lake"),
        ("start --store sqlite:data/store.db --lake s3://b/p", "s3://b/p"),
        ("store copy --store sqlite:data/store.db --to sqlite:b.db", "data/lake"),
        ("store use-lake --store sqlite:data/store.db --lake x", "x"),
    ],
)
def test_the_lake_lies_beside_its_store_unless_told_otherwise(arguments: str, lake: str) -> None:
    assert cli.command_options(arguments.split()).lake == lake


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


def test_a_node_needs_no_spark_to_start() -> None:
    program = "import sys, tenure.cli; sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("command", ["start", "worker"])
def test_a_spark_master_elsewhere_is_refused_for_a_sqlite_store(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([command, "--store", "sqlite:x.db", "--spark-master", "spark://10.1.1.1:7077"]) == 1
    assert "not on this machine" in capsys.readouterr().err


SECRETS = "--store postgresql://u:secret@h/d --lake s3://b/p?AWS_SECRET_ACCESS_KEY=secret"
SHARED = "--files f --spark-master local[1] --s3-endpoint https://a --s3-endpoint https://b --s3-implicit"
SHARED += " --drain-timeout 7"


def test_a_node_tells_its_worker_all_but_store_and_lake() -> None:
    options = cli._parser().parse_args(f"start {SECRETS} {SHARED}".split())
    command = worker.command(options)
    told = cli._parser().parse_args(command[command.index("worker") :])
    assert (told.files, told.spark_master) == ("f", "local[1]")
    assert (told.s3_endpoint, told.s3_implicit) == (["https://a", "https://b"], True)
    assert told.idle_seconds == worker.IDLE_SECONDS
    assert (told.with_parent, told.drain_timeout) == (True, 7.0)
    assert not any("secret" in word for word in command)


def test_the_processes_of_a_node_are_told_all_but_store_and_lake() -> None:
    options = cli._parser().parse_args(f"start {SECRETS} {SHARED}".split())
    with socket.create_server(("127.0.0.1", 0)) as port:
        command = processes._command(options, "127.0.0.1", port)
        told = cli._parser().parse_args(command[command.index("start") :])
        assert (told.inherited_port, told.with_parent) == (port.fileno(), True)
    assert (told.files, told.s3_endpoint, told.s3_implicit) == ("f", options.s3_endpoint, True)
    assert not any("secret" in word for word in command)


def test_store_and_lake_are_told_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    options = cli._parser().parse_args(f"start {SECRETS}".split())
    for name, value in processes.in_environment(options).items():
        monkeypatch.setenv(name, value)
    told = cli._parser().parse_args(["worker"])
    assert (told.store, told.lake) == (options.store, options.lake)


@pytest.mark.parametrize("count", ["0", "-1", "65"])
def test_a_number_of_processes_that_cannot_be_is_refused(
    count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", "--processes", count]) == 1
    assert "--processes takes a number from 1 to 64" in capsys.readouterr().err
