"""Nothing succeeds by a right that was revoked, on any node and by any route, once REVOKE has returned."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.base.errors import InsufficientPrivilege
from tests.unit.sql.sessions import Saying, Talk, running
from tests.unit.sql.statements.ddl.test_roles import do, refused


class Two(NamedTuple):
    root: Talk
    """Of one node."""
    user: Talk
    """`ann`, of another."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    directory = tmp_path_factory.mktemp("two")
    with running(directory) as here, running(directory) as there:
        root = Talk(here)
        do(root, "CREATE USER ann", "CREATE ROLE club", "CREATE ROLE former", "CREATE SCHEMA s")
        do(root, "CREATE TABLE s.t (a int PRIMARY KEY, b int)", "INSERT INTO s.t VALUES (1, 2)")
        do(root, "CREATE VIEW s.v AS SELECT b FROM s.t", "ALTER VIEW s.v OWNER TO former")
        do(root, "CREATE SEQUENCE s.q", "GRANT USAGE ON SCHEMA s TO former")
        user = Talk(there, user="ann")
        yield Two(root, user)
        user.close()
        root.close()


class Loss(NamedTuple):
    """How somebody who could run a query cannot any more."""

    grants: tuple[str, ...]
    revoke: str
    query: str = "SELECT b FROM s.t WHERE a = 1"


USAGE = "GRANT USAGE ON SCHEMA s TO ann"
LOSSES = {
    "table": Loss((USAGE, "GRANT SELECT ON s.t TO ann"), "REVOKE SELECT ON s.t FROM ann"),
    "columns": Loss((USAGE, "GRANT SELECT (a, b) ON s.t TO ann"), "REVOKE SELECT (a) ON s.t FROM ann"),
    "schema": Loss((USAGE, "GRANT SELECT ON s.t TO ann"), "REVOKE USAGE ON SCHEMA s FROM ann"),
    "all tables": Loss(
        (USAGE, "GRANT SELECT ON ALL TABLES IN SCHEMA s TO ann"),
        "REVOKE SELECT ON ALL TABLES IN SCHEMA s FROM ann",
    ),
    "everybody": Loss((USAGE, "GRANT SELECT ON s.t TO PUBLIC"), "REVOKE SELECT ON s.t FROM PUBLIC"),
    "membership": Loss(
        ("GRANT USAGE ON SCHEMA s TO club", "GRANT SELECT ON s.t TO club", "GRANT club TO ann"),
        "REVOKE club FROM ann",
    ),
    "inheritance": Loss(
        ("GRANT USAGE ON SCHEMA s TO club", "GRANT SELECT ON s.t TO club", "GRANT club TO ann"),
        "GRANT club TO ann WITH INHERIT FALSE",
    ),
    "superuser": Loss(("ALTER ROLE ann SUPERUSER",), "ALTER ROLE ann NOSUPERUSER"),
    "owner": Loss(
        (USAGE, "GRANT CREATE ON SCHEMA s TO ann", "ALTER TABLE s.t OWNER TO ann"),
        "ALTER TABLE s.t OWNER TO root",
    ),
    "view": Loss(
        (USAGE, "GRANT SELECT ON s.v TO ann", "GRANT SELECT ON s.t TO former"),
        "REVOKE SELECT ON s.v FROM ann",
        "SELECT b FROM s.v",
    ),
    "view's owner": Loss(
        (USAGE, "GRANT SELECT ON s.v TO ann", "GRANT SELECT ON s.t TO former"),
        "REVOKE SELECT ON s.t FROM former",
        "SELECT b FROM s.v",
    ),
    "sequence": Loss(
        (USAGE, "GRANT USAGE ON s.q TO ann"), "REVOKE USAGE ON s.q FROM ann", "SELECT nextval('s.q')"
    ),
    "by cascade": Loss(
        (
            USAGE,
            "GRANT SELECT ON s.t TO club WITH GRANT OPTION",
            "SET ROLE club",
            "GRANT SELECT ON s.t TO ann",
            "RESET ROLE",
        ),
        "REVOKE SELECT ON s.t FROM club CASCADE",
    ),
}
RESET = (
    "REVOKE ALL ON ALL TABLES IN SCHEMA s FROM ann, club, former, PUBLIC CASCADE",
    "REVOKE ALL ON ALL SEQUENCES IN SCHEMA s FROM ann",
    "REVOKE ALL ON SCHEMA s FROM ann, club",
    "REVOKE club FROM ann",
    "GRANT USAGE ON SCHEMA s TO club",
)


def _prepared(user: Talk, query: str) -> Callable[[], str]:
    do(user, f"PREPARE q AS {query}", "EXECUTE q")
    return lambda: user.say("EXECUTE q").sqlstate


def _by_protocol(user: Talk, query: str) -> Callable[[], str]:
    session = user.session
    session.prepare("point", query, ())

    def run() -> str:
        try:
            session.bind("", "point", ())
            session.execute("", ends=True)
            session.sync()
        except InsufficientPrivilege as error:
            session.failed()
            return error.sqlstate
        return ""

    assert run() == ""
    return run


def _in_a_block(user: Talk, query: str) -> Callable[[], str]:
    do(user, "BEGIN", query)
    return lambda: user.say(query).sqlstate


def _prepared_in_a_block(user: Talk, query: str) -> Callable[[], str]:
    do(user, f"PREPARE q AS {query}", "BEGIN", "EXECUTE q")
    return lambda: user.say("EXECUTE q").sqlstate


def _of_the_past(user: Talk, query: str) -> Callable[[], str]:
    """At a time when the right was there."""
    at = user.say("SELECT cluster_logical_timestamp()").rows[0][0]
    if "nextval" in query:
        query = "SELECT last_value FROM s.q"
    return lambda: user.say(f"{query} AS OF SYSTEM TIME '{at}'").sqlstate


def _in_a_block_of_the_past(user: Talk, query: str) -> Callable[[], str]:
    if "nextval" in query:
        return _in_a_block(user, query)
    do(user, "BEGIN AS OF SYSTEM TIME '-1us'", query)
    return lambda: user.say(query).sqlstate


def _by_a_cursor(user: Talk, query: str) -> Callable[[], str]:
    do(user, "BEGIN", f"DECLARE before CURSOR FOR {query}", "FETCH before")
    return lambda: user.say(f"DECLARE after CURSOR FOR {query}").sqlstate


def _by_an_open_cursor(user: Talk, query: str) -> Callable[[], str]:
    do(user, "BEGIN", f"DECLARE open CURSOR FOR {query}", "FETCH 0 FROM open")
    return lambda: user.say("FETCH open").sqlstate


def _by_a_suspended_portal(user: Talk, query: str) -> Callable[[], str]:
    session = user.session
    do(user, "BEGIN")
    session.prepare("point", query, ())
    session.bind("begun", "point", ())
    session.execute("begun", 1, ends=False)
    session.sync()

    def run() -> str:
        try:
            session.execute("begun", 1, ends=True)
        except InsufficientPrivilege as error:
            session.failed()
            return error.sqlstate
        return ""

    return run


def _copied(user: Talk, query: str) -> Callable[[], str]:
    do(user, f"COPY ({query}) TO STDOUT")
    return lambda: user.say(f"COPY ({query}) TO STDOUT").sqlstate


def _explained(user: Talk, query: str) -> Callable[[], str]:
    do(user, f"EXPLAIN {query}")
    return lambda: user.say(f"EXPLAIN {query}").sqlstate


ROUTES = {
    "prepared": _prepared,
    "by protocol": _by_protocol,
    "block": _in_a_block,
    "prepared in a block": _prepared_in_a_block,
    "past": _of_the_past,
    "block of the past": _in_a_block_of_the_past,
    "cursor": _by_a_cursor,
    "open cursor": _by_an_open_cursor,
    "suspended portal": _by_a_suspended_portal,
    "copied": _copied,
    "explained": _explained,
}


@pytest.mark.invariant("needs-newest")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_right_is_gone_on_the_other_node(two: Two, loss: str, route: str) -> None:
    root, user = two
    grants, revoke, query = LOSSES[loss]
    do(root, *RESET, *grants)
    try:
        again = ROUTES[route](user, query)
        do(root, revoke)
        assert again() == "42501"
    finally:
        user.say("ROLLBACK")
        user.say("DEALLOCATE ALL")


def test_a_draft_that_is_older_than_a_revoke_does_not_grant_again(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root, other, user = Talk(here), Talk(there), Talk(there)
        do(root, "CREATE USER ann", "CREATE SCHEMA s", "CREATE TABLE s.t (a int PRIMARY KEY, b int)")
        do(
            root,
            "GRANT USAGE ON SCHEMA s TO ann",
            "GRANT SELECT ON s.t TO ann",
            "GRANT UPDATE (b) ON s.t TO ann",
        )
        do(other, "BEGIN", "ALTER TABLE s.t ADD COLUMN c int", "CREATE TABLE s.u (a int)")
        do(root, "REVOKE SELECT ON s.t FROM ann", "REVOKE UPDATE (b) ON s.t FROM ann")
        do(root, "GRANT INSERT ON s.t TO ann", "GRANT CREATE ON SCHEMA s TO ann")
        do(other, "COMMIT")
        do(user, "SET ROLE ann")
        assert refused(user, "SELECT c FROM s.t") == "42501"
        assert refused(user, "UPDATE s.t SET b = 1") == "42501"
        do(user, "INSERT INTO s.t VALUES (1)", "CREATE TABLE s.own (a int)")
        for each in (root, other, user):
            each.close()


def test_a_grant_on_a_schema_restarts_nobody_who_creates_in_it(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root, other = Talk(here), Talk(there)
        do(root, "CREATE ROLE ann", "CREATE SCHEMA s")
        do(other, "BEGIN", "CREATE TABLE s.t (a int)")
        do(root, "GRANT USAGE ON SCHEMA s TO ann", "GRANT CREATE ON DATABASE defaultdb TO ann")
        do(other, "INSERT INTO s.t VALUES (1)", "COMMIT", "SELECT * FROM s.t")
        root.close()
        other.close()


def test_a_grant_waits_for_no_change_that_is_under_way(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root, reader, changer = Talk(here), Talk(there), Talk(here)
        do(
            root,
            "CREATE ROLE ann",
            "CREATE TABLE t (a int PRIMARY KEY, b int)",
            "INSERT INTO t VALUES (1, 2)",
        )
        do(reader, "BEGIN", "SELECT * FROM t")
        changing = Saying(changer, "ALTER TABLE t ALTER COLUMN b TYPE text USING b::text")
        jobs = "SELECT 1 FROM tenure_internal.jobs WHERE finished IS NULL AND job_type LIKE 'schema%'"
        while not root.say(jobs).rows:
            assert changing.is_alive()
        do(root, "GRANT SELECT ON t TO ann", "REVOKE SELECT ON t FROM ann", "GRANT UPDATE ON t TO ann")
        assert changing.is_alive()
        do(reader, "ROLLBACK")
        assert changing.result().sqlstate == ""
        do(root, "SET ROLE ann", "UPDATE t SET b = 'x'")
        for each in (root, reader, changer):
            each.close()
