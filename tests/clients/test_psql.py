"""psql as people use it in scripts. What it asks of the catalog (\\d) belongs to pg_catalog's own tests."""

import subprocess
from pathlib import Path

from tenure.node import Node
from tests.postgres_server import BIN

PSQL = BIN / "psql"

SCRIPT = r"""
\set ON_ERROR_STOP on
\set answer 42
CREATE TABLE notes (id SERIAL PRIMARY KEY, body TEXT NOT NULL, at TIMESTAMPTZ DEFAULT now());
INSERT INTO notes (body) VALUES ('first'), ('it''s :answer'), (:'answer');
BEGIN;
UPDATE notes SET body = upper(body) WHERE id = 1;
SAVEPOINT s;
DELETE FROM notes;
ROLLBACK TO s;
COMMIT;
\copy notes (id, body) FROM PSTDIN
\copy (SELECT id, body FROM notes ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER)
SELECT id, body FROM notes WHERE id = :answer \gset
\echo got :body
SELECT count(*) AS n FROM notes;
\if :{?answer}
SELECT 'yes' AS branch;
\endif
"""


def _psql(node: Node, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    assert node.front is not None
    where = ["-h", node.front.host, "-p", str(node.front.port), "-U", "root", "-d", "defaultdb"]
    return subprocess.run(
        [PSQL, "-X", "-q", "-A", "-t", *where, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_script_runs_from_top_to_bottom(lone: Node, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    done = _psql(lone, "-f", str(script), given="42\tcopied\\tin\n\\.\n")
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "id,body",
        "1,FIRST",
        "2,it's :answer",
        "3,42",
        "42,copied\tin",
        "got copied\tin",
        "4",
        "yes",
    ]


def test_an_error_names_its_place_and_stops_the_script(lone: Node) -> None:
    done = _psql(lone, "-v", "ON_ERROR_STOP=1", "-c", "SELECT 1; SELECT nope; SELECT 2")
    assert done.returncode != 0
    assert 'column "nope" does not exist' in done.stderr
    assert "LINE 1: SELECT 1; SELECT nope; SELECT 2" in done.stderr
    assert "2" not in done.stdout.split()


def test_a_query_string_that_makes_a_table_and_fills_it_is_run_once(lone: Node) -> None:
    done = _psql(lone, "-c", "CREATE TABLE filled (a int); INSERT INTO filled VALUES (1), (2) RETURNING a")
    assert (done.stderr, done.stdout.split()) == ("", ["1", "2"])
    done = _psql(lone, "-c", "CREATE TABLE other (a int); INSERT INTO filled VALUES (3)")
    assert (done.stderr, done.returncode) == ("", 0)
    assert _psql(lone, "-c", "SELECT count(*) FROM filled").stdout.strip() == "3"
