"""`tenure.connect()`: two lines to a database in this process, or to a running node."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import tenure
from tenure.base.errors import InvalidParameter


def test_two_lines_are_enough() -> None:
    with tenure.connect() as connection:
        assert connection.execute("SELECT 6 * 7").fetchall() == [(42,)]


def test_other_clients_reach_the_node_while_it_is_open() -> None:
    connection = tenure.connect(autocommit=True)
    connection.execute("CREATE TABLE t (a int)")
    address = connection.info.dsn
    with tenure.connect(address) as other, psycopg.connect(address) as third:
        other.execute("INSERT INTO t VALUES (1)")
        other.commit()
        assert third.execute("SELECT a FROM t").fetchall() == [(1,)]
    connection.close()
    connection.close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address, connect_timeout=5)


def test_a_store_of_its_own_stays(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store.db"
    with tenure.connect(store=store) as connection:
        connection.execute("CREATE TABLE kept (a int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    with tenure.connect(store=store) as connection:
        assert connection.execute("SELECT a FROM kept").fetchall() == [(7,)]


def test_options_are_those_of_psycopg() -> None:
    with tenure.connect(autocommit=True, application_name="notebook") as connection:
        assert connection.autocommit
        assert connection.execute("SHOW application_name").fetchall() == [("notebook",)]


def test_a_connection_that_fails_leaves_no_node() -> None:
    with pytest.raises(psycopg.OperationalError, match='database "absent" does not exist'):
        tenure.connect(dbname="absent")


def test_an_address_and_a_store_exclude_each_other() -> None:
    with pytest.raises(InvalidParameter, match="connect takes"):
        tenure.connect("postgresql://localhost/x", store="sqlite:x.db")


def test_a_process_that_ends_without_closing_ends_well(tmp_path: Path) -> None:
    text = "import tenure; c = tenure.connect(); print(c.execute('SELECT 1').fetchone())"
    environ = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env=environ
    )
    assert (done.returncode, done.stdout) == (0, "(1,)\n"), done.stderr
    assert list(tmp_path.glob("tenure-*")) == []
