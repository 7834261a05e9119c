"""What a dump may do, and what it must not."""

import pytest

from tenure.base.errors import BadDump
from tenure.bulk.dumps.scan import CopiedRows, DumpStatement, InsertedRows
from tenure.sql.statements.jobs.dump_rules import Ruling, judge

REFUSED = """
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE PROCEDURE f() LANGUAGE sql AS 'SELECT 1'
CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()
CREATE EVENT TRIGGER t ON ddl_command_start EXECUTE FUNCTION f()
CREATE RULE r AS ON INSERT TO t DO NOTHING
CREATE POLICY p ON t
DO $$ BEGIN PERFORM 1; END $$
CALL f()
COPY t FROM '/etc/passwd'
COPY t FROM PROGRAM 'id'
COPY t TO '/tmp/x'
COPY t TO PROGRAM 'sh'
COPY t TO stdout
COPY (SELECT 1) TO '/tmp/x'
COPY t FROM stdin
CREATE ROLE r SUPERUSER
ALTER ROLE r SUPERUSER
DROP ROLE r
GRANT admin TO r
ALTER SYSTEM SET x = 1
ALTER DATABASE d SET x = 1
CREATE DATABASE d
DROP DATABASE d
DELETE FROM t
UPDATE t SET a = 1
TRUNCATE t
DROP TABLE t
DROP SCHEMA s CASCADE
ALTER TABLE t DROP COLUMN a
ALTER TABLE t DROP CONSTRAINT c
ALTER TABLE t RENAME TO u
ALTER TABLE t SET SCHEMA s
ALTER TABLE t ENABLE ROW LEVEL SECURITY
ALTER TABLE t ADD CONSTRAINT c EXCLUDE USING gist (a WITH =)
ALTER TABLE t ATTACH PARTITION p FOR VALUES IN (1)
ALTER SEQUENCE s RESTART
ALTER SEQUENCE s INCREMENT BY 2
ALTER TYPE m ADD VALUE 'x'
CREATE TYPE c AS (a int)
CREATE DOMAIN d AS int
CREATE AGGREGATE a (int) (SFUNC = f, STYPE = int)
CREATE CAST (int AS text) WITH FUNCTION f(int)
CREATE OPERATOR + (FUNCTION = f)
CREATE EXTENSION dblink
CREATE SERVER s FOREIGN DATA WRAPPER w
CREATE FOREIGN TABLE t (a int) SERVER s
CREATE PUBLICATION p
CREATE SUBSCRIPTION s CONNECTION 'x' PUBLICATION p
CREATE TABLE t AS SELECT 1
CREATE MATERIALIZED VIEW v AS SELECT 1
CREATE SCHEMA s CREATE TABLE t (a int)
REFRESH MATERIALIZED VIEW v
SELECT 1
SELECT pg_sleep(10)
SELECT pg_catalog.pg_read_file('/etc/passwd')
SELECT pg_catalog.set_config('role', 'root', false)
SELECT pg_catalog.set_config('search_path', pg_sleep(1)::text, false)
SELECT pg_catalog.setval('s', 1, true), pg_sleep(1)
SELECT pg_catalog.setval('s', (SELECT 1), true)
SELECT pg_catalog.setval('s', 1, true) FROM t
SELECT pg_catalog.setval('s', 1, true) WHERE pg_sleep(1) IS NULL
SELECT evil.setval('s', 1, true)
SELECT setval('s', 1.5, true)
SELECT * INTO t FROM u
WITH x AS (DELETE FROM t RETURNING *) SELECT pg_catalog.setval('s', 1, true)
INSERT INTO t VALUES (pg_sleep(1))
INSERT INTO t SELECT 1
SET ROLE root
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
SET client_encoding = 'LATIN1'
SET standard_conforming_strings = off
SET session_replication_role = replica
SET tenure.x = 1
BEGIN
COMMIT
LOCK TABLE t
LISTEN x
NOTIFY x
PREPARE x AS SELECT 1
EXECUTE x
DECLARE c CURSOR FOR SELECT 1
VACUUM
ANALYZE
CHECKPOINT
LOAD 'x'
SECURITY LABEL ON TABLE t IS 'x'
IMPORT FOREIGN SCHEMA s FROM SERVER t INTO u
MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE
EXPLAIN ANALYZE DELETE FROM t
REASSIGN OWNED BY a TO b
"""

ALLOWED = {
    "SET statement_timeout = 0": Ruling.NOTHING,
    "SET client_encoding = 'UTF8'": Ruling.NOTHING,
    "SET standard_conforming_strings = on": Ruling.NOTHING,
    "SET search_path = app, pg_catalog": Ruling.PATH,
    "SELECT pg_catalog.set_config('search_path', '', false)": Ruling.PATH,
    "SELECT pg_catalog.setval('app.s', 9223372036854775807, true)": Ruling.VALUE,
    "SELECT pg_catalog.setval('app.s', -5, false)": Ruling.VALUE,
    "CREATE SCHEMA app": Ruling.DEFINE,
    "CREATE TYPE m AS ENUM ('a')": Ruling.DEFINE,
    "CREATE SEQUENCE s": Ruling.DEFINE,
    "ALTER SEQUENCE s OWNED BY t.a": Ruling.DEFINE,
    "CREATE TABLE t (a int)": Ruling.DEFINE,
    "ALTER TABLE ONLY t ADD CONSTRAINT c PRIMARY KEY (a)": Ruling.DEFINE,
    "ALTER TABLE ONLY t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u": Ruling.DEFINE,
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID": Ruling.DEFINE,
    "ALTER TABLE ONLY t ALTER COLUMN a SET DEFAULT 1": Ruling.DEFINE,
    "ALTER TABLE t ALTER COLUMN a ADD GENERATED ALWAYS AS IDENTITY": Ruling.DEFINE,
    "CREATE UNIQUE INDEX i ON t USING btree (a)": Ruling.DEFINE,
    "CREATE VIEW v AS SELECT 1": Ruling.DEFINE,
    "COMMENT ON TABLE t IS 'x'": Ruling.DEFINE,
    "COMMENT ON EXTENSION plpgsql IS 'x'": Ruling.SKIP,
    "COMMENT ON SCHEMA public IS 'x'": Ruling.SKIP,
    "CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog": Ruling.SKIP,
    "ALTER TABLE t OWNER TO x": Ruling.SKIP,
    "ALTER SCHEMA s OWNER TO x": Ruling.SKIP,
    "ALTER TABLE ONLY t ALTER COLUMN a SET STATISTICS 5": Ruling.SKIP,
    "GRANT SELECT ON TABLE t TO x": Ruling.SKIP,
    "REVOKE ALL ON SCHEMA public FROM PUBLIC": Ruling.SKIP,
    "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b": Ruling.SKIP,
}


@pytest.mark.invariant("dump-listed")
@pytest.mark.parametrize("text", REFUSED.strip().splitlines())
def test_what_is_not_on_the_list_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(BadDump) as caught:
        judge(DumpStatement(f"{text};", 7), "f")
    assert caught.value.sqlstate == "0A000"
    assert caught.value.detail == 'file "f", line 7'
    assert text[:20] in str(caught.value)


@pytest.mark.parametrize("text", ALLOWED)
def test_what_is_on_the_list_is_allowed(text: str) -> None:
    step = judge(DumpStatement(f"{text};", 1), "f")
    assert step is not None
    assert step.ruling is ALLOWED[text]


def test_rows_come_with_where_they_are() -> None:
    copied = judge(CopiedRows("COPY app.t (a, b) FROM stdin;", 1, ()), "f")
    inserted = judge(InsertedRows("INSERT INTO t (a) OVERRIDING SYSTEM VALUE VALUES", 1, ()), "f")
    assert copied is not None and copied.ruling is Ruling.ROWS
    assert inserted is not None and inserted.ruling is Ruling.ROWS


def test_copy_with_options_is_refused() -> None:
    with pytest.raises(BadDump):
        judge(CopiedRows("COPY t FROM stdin WITH (FORMAT binary);", 1, ()), "f")


def test_two_statements_are_not_taken_for_one() -> None:
    with pytest.raises(BadDump) as caught:
        judge(DumpStatement("CREATE SCHEMA a; DROP SCHEMA b;", 3), "f")
    assert caught.value.detail == 'file "f", line 3'
