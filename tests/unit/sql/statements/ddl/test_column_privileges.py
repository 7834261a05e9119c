"""Privileges of columns and types: what becomes of them when their columns and grantors change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.node import Node
from tests.unit.sql.sessions import Talk, running
from tests.unit.sql.statements.ddl.test_roles import do, refused


@pytest.fixture
def ann(nodes: Node) -> Iterator[tuple[Talk, Talk]]:
    """The superuser, and a user who may read one of the columns of a table."""
    root = Talk(nodes)
    do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY, b int)", "INSERT INTO t VALUES (1, 2)")
    do(root, "GRANT SELECT (b) ON t TO ann")
    user = Talk(nodes, user="ann")
    yield root, user
    user.close()
    root.close()


def test_a_renamed_column_keeps_its_privileges(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "ALTER TABLE t RENAME COLUMN b TO c", "ALTER TABLE t RENAME COLUMN a TO b")
    do(user, "SELECT c FROM t")
    assert refused(user, "SELECT b FROM t") == "42501"


def test_a_dropped_column_takes_its_privileges_along(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    assert root.say("DROP ROLE ann").detail == "privileges for column b of table t"
    do(root, "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b int")
    assert refused(user, "SELECT b FROM t") == "42501"
    assert refused(user, "SELECT count(*) FROM t") == "42501"
    do(root, "DROP ROLE ann")


def test_a_column_dropped_and_made_again_in_one_transaction_is_another(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "BEGIN", "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN b int", "COMMIT")
    assert refused(user, "SELECT b FROM t") == "42501"
    do(root, "DROP ROLE ann")


def test_a_column_of_another_type_keeps_its_privileges(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "ALTER TABLE t ALTER COLUMN b TYPE text USING b::text")
    assert user.say("SELECT b FROM t").rows == (("2",),)
    assert refused(user, "SELECT a FROM t") == "42501"
    do(root, "REVOKE SELECT (b) ON t FROM ann", "DROP ROLE ann")


def test_what_a_block_grants_on_a_column_follows_its_new_type(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "BEGIN", "GRANT UPDATE (b) ON t TO ann")
    do(root, "ALTER TABLE t ALTER COLUMN b TYPE text USING b::text", "COMMIT")
    do(user, "UPDATE t SET b = 'x'")
    assert refused(user, "UPDATE t SET a = 3") == "42501"


def test_revoking_on_the_table_revokes_on_its_columns(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "GRANT UPDATE (b) ON t TO ann", "REVOKE SELECT ON t FROM ann")
    assert refused(user, "SELECT b FROM t") == "42501"
    do(user, "UPDATE t SET b = 3")
    do(root, "REVOKE ALL ON t FROM ann", "DROP ROLE ann")


def test_revoking_on_a_column_leaves_the_privilege_on_the_table(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "GRANT SELECT ON t TO ann", "REVOKE SELECT (b) ON t FROM ann")
    do(user, "SELECT b FROM t")


@pytest.mark.invariant("grant-chains")
def test_a_column_granted_by_an_option_for_its_table_goes_with_the_option(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "CREATE USER bob", "GRANT SELECT ON t TO ann WITH GRANT OPTION")
    do(user, "GRANT SELECT (a) ON t TO bob")
    assert refused(root, "REVOKE GRANT OPTION FOR SELECT ON t FROM ann") == "2BP01"
    do(root, "REVOKE GRANT OPTION FOR SELECT ON t FROM ann CASCADE")
    do(root, "SET ROLE bob")
    assert refused(root, "SELECT a FROM t") == "42501"
    do(root, "RESET ROLE", "DROP ROLE bob")


def test_a_savepoint_takes_back_what_was_granted_on_a_column(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "BEGIN", "SAVEPOINT s", "GRANT SELECT (a) ON t TO ann", "ROLLBACK TO s", "COMMIT")
    assert refused(user, "SELECT a FROM t") == "42501"


def test_a_view_is_read_with_its_owners_privileges_on_columns(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "CREATE SCHEMA hers AUTHORIZATION ann", "CREATE USER bob", "GRANT USAGE ON SCHEMA hers TO bob")
    do(user, "CREATE VIEW hers.some AS SELECT b FROM t", "CREATE VIEW hers.all AS SELECT * FROM t")
    do(user, "GRANT SELECT ON hers.some, hers.all TO bob")
    do(root, "SET ROLE bob", "SELECT b FROM hers.some")
    assert refused(root, "SELECT b FROM hers.all") == "42501"
    assert refused(user, "SELECT b FROM hers.all") == "42501"
    do(root, "RESET ROLE", "REVOKE SELECT (b) ON t FROM ann", "SET ROLE bob")
    assert refused(root, "SELECT b FROM hers.some") == "42501"


def test_a_revoke_on_a_column_counts_on_another_node_when_it_returns(tmp_path: Path) -> None:
    with running(tmp_path) as here, running(tmp_path) as there:
        root = Talk(here)
        do(root, "CREATE USER ann", "CREATE TABLE t (a int PRIMARY KEY, b int)")
        user = Talk(there, user="ann")
        do(root, "GRANT SELECT (b) ON t TO ann")
        do(user, "PREPARE q AS SELECT b FROM t", "EXECUTE q", "BEGIN", "SELECT b FROM t")
        do(root, "REVOKE SELECT (b) ON t FROM ann")
        assert refused(user, "SELECT b FROM t") == "42501"
        do(user, "ROLLBACK")
        assert refused(user, "EXECUTE q") == "42501"
        assert refused(user, "SELECT b FROM t AS OF SYSTEM TIME '-1us'") == "42501"
        user.close()
        root.close()


def test_new_types_get_the_default_privileges_of_their_owner(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "CREATE SCHEMA hers AUTHORIZATION ann", "CREATE TYPE open AS ENUM ('a')")
    do(root, "ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC", "CREATE TYPE closed AS ENUM ('a')")
    do(user, "CREATE TABLE hers.x (m open)")
    assert refused(user, "CREATE TABLE hers.y (m closed)") == "42501"
    assert refused(user, "ALTER TABLE hers.x ADD COLUMN n closed") == "42501"
    assert refused(user, "ALTER TABLE hers.x ALTER COLUMN m TYPE closed USING 'a'::closed") == "42501"
    do(root, "GRANT USAGE ON TYPE closed TO ann")
    do(user, "CREATE TABLE hers.y (m closed)")


def test_upsert_needs_to_change_every_column(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "GRANT SELECT, INSERT, UPDATE (a) ON t TO ann")
    assert refused(user, "UPSERT INTO t (a) VALUES (1)") == "42501"
    do(root, "GRANT UPDATE (b) ON t TO ann")
    do(user, "UPSERT INTO t (a) VALUES (1)")


def test_copy_in_needs_insert_on_its_columns(ann: tuple[Talk, Talk]) -> None:
    root, user = ann
    do(root, "GRANT INSERT (a) ON t TO ann")
    assert refused(user, "COPY t FROM STDIN") == "42501"
    assert refused(user, "COPY t (a, b) FROM STDIN") == "42501"
    do(user, "COPY t (a) FROM STDIN")
