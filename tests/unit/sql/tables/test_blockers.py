"""SHOW BLOCKERS: who holds up a schema change, on whichever node."""

from pathlib import Path
from threading import Thread

from tests.unit.sql.served import Served, serving


def _waited_for(served: Served) -> list[tuple[object, ...]]:
    while True:
        rows = served.rows(
            "SELECT waiting_node_id, descriptor_name, node_id, transaction IS NOT NULL, statement, job_id, "
            "hint, session_id FROM tenure_internal.blockers"
        )
        if any(row[3] for row in rows):
            return rows


def test_the_transaction_of_another_node_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as one, serving(tmp_path) as two:
        one.tag("CREATE TABLE t (a int)")
        with one.connect() as holder, two.connect() as changer:
            pid = holder.info.backend_pid
            holder.execute("BEGIN")
            holder.execute("SELECT * FROM t")
            change = Thread(target=lambda: changer.execute("ALTER TABLE t ADD COLUMN b int"))
            change.start()
            (blocker,) = _waited_for(two)
            shown = two.rows(f"SHOW BLOCKERS FOR JOB {blocker[5]}")
            job = f"FROM tenure_internal.jobs WHERE job_id = {blocker[5]}"
            ((status,),) = two.rows(f"SELECT running_status {job}")
            holder.execute("COMMIT")
            change.join()
        assert blocker[1:5] == ("t", 1, True, "SELECT * FROM t")
        assert len(shown) == 1
        assert str(blocker[6]).startswith(f"SHOW SESSIONS tells what session {pid} on node 1 does; ")
        assert blocker[7] == pid
        assert two.rows("SHOW BLOCKERS") == []
        assert status == "waits for transactions that use the former version of t: see SHOW BLOCKERS"
        assert two.rows(f"SELECT status, fraction_completed {job}") == [("succeeded", 1.0)]


def test_an_idle_transaction_is_named_as_such(tmp_path: Path) -> None:
    with serving(tmp_path) as one:
        one.tag("CREATE TABLE t (a int)")
        one.tag("CREATE USER plain")
        with one.connect() as holder, one.connect() as changer, one.connect("plain") as plain:
            holder.execute("BEGIN")
            holder.execute("SELECT * FROM t")
            change = Thread(target=lambda: changer.execute("ALTER TABLE t ADD COLUMN b int"))
            change.start()
            (blocker,) = _waited_for(one)
            told = plain.execute("SELECT hint FROM tenure_internal.blockers").fetchall()
            holder.execute("COMMIT")
            change.join()
    assert "of user root is idle in transaction: have it COMMIT or ROLLBACK" in str(blocker[6])
    assert "sql.idle_in_transaction_session_timeout" in str(blocker[6])
    assert [str(hint).split(":")[0] for (hint,) in told] == ["its session is idle in transaction"]
