"""Conversations that once went wrong: what is said, piece by piece. Both sides have to answer alike.

Each begins with the table `w` as `conversations.SETUP` makes it.

Walk: `test_conversations` says each of them to both sides.
"""

from tests.unit.pgwire.wire import FLUSH, SYNC, bind, close, describe, execute, message, parse, query

ROWS = "SELECT id, v FROM w ORDER BY id"
FAILS_LATE = "SELECT 6 / (4 - id) AS q FROM w ORDER BY id"
BEGIN, COMMIT = query("BEGIN"), query("COMMIT")
CHAR_OID = 18
TYPE_NAMES = (
    *('"text"', '"char"', "char", '"TEXT"', '"integer"', 'pg_catalog."int4"', '"text"[]', "_int4", " TEXT "),
    *("numeric(10,2)", "timestamp with time zone", "nope"),
)
STALE = [query("DROP TABLE IF EXISTS s"), query("CREATE TABLE s (id int PRIMARY KEY, v int)")]
ADD_COLUMN = query("ALTER TABLE s ADD COLUMN added int DEFAULT 3")

SCRIPTS: dict[str, list[bytes]] = {
    # Portals
    "MOVE in a portal that was not executed": [
        BEGIN,
        *(parse(ROWS), bind(portal="p"), SYNC, query("MOVE 2 IN p"), execute(2, "p"), SYNC),
        *(query("FETCH 1 FROM p"), execute(0, "p"), SYNC),
    ],
    "FETCH from a portal in binary": [
        BEGIN,
        *(parse(ROWS), bind(portal="p", results=[1]), SYNC, query("FETCH 1 FROM p"), execute(1, "p"), SYNC),
    ],
    "FETCH from a portal without rows": [
        *(BEGIN, parse("DELETE FROM w"), bind(portal="p"), SYNC, query("FETCH 1 FROM p")),
    ],
    "a portal after its error": [
        *(BEGIN, parse(FAILS_LATE), bind(portal="p"), execute(2, "p"), SYNC),
        *(execute(0, "p"), SYNC, execute(0, "p"), SYNC, query("MOVE 1 IN p")),
    ],
    "a portal after its error and ROLLBACK TO": [
        *(BEGIN, parse(FAILS_LATE), bind(portal="p"), parse(ROWS), bind(portal="q", results=[1]), SYNC),
        *(query("SAVEPOINT a"), execute(0, "p"), SYNC, query("ROLLBACK TO a")),
        *(execute(1, "p"), SYNC, query("ROLLBACK TO a"), describe("P", "q"), execute(2, "q"), SYNC),
    ],
    "a portal bound after a savepoint": [
        *(BEGIN, query("SAVEPOINT a"), parse(ROWS), bind(portal="p"), execute(1, "p"), SYNC),
        *(query("ROLLBACK TO a"), execute(1, "p"), SYNC),
    ],
    "a portal after a failure of another": [
        *(BEGIN, parse(ROWS), bind(portal="p"), execute(1, "p"), SYNC, query("SELECT nothing")),
        *(execute(1, "p"), SYNC, describe("P", "p"), SYNC, query("COMMIT"), execute(1, "p"), SYNC),
    ],
    "named portals end with Sync": [
        *(parse(ROWS), bind(portal="p"), SYNC, execute(0, "p"), SYNC, describe("P", "p"), SYNC),
        *(bind(portal="p"), execute(2, "p"), SYNC, execute(2, "p"), SYNC),
    ],
    "statements run once": [
        *(parse("UPDATE w SET v = v || 'x' WHERE id = 1"), bind(), execute(), execute(), SYNC, query(ROWS)),
        *(parse("BEGIN"), bind(), execute(), execute(), SYNC),
    ],
    "queries give no more rows": [
        *(parse(ROWS), bind(), execute(), FLUSH, execute(), execute(1), SYNC),
        *(parse("SHOW statement_timeout"), bind(), execute(1), execute(1), execute(), SYNC),
    ],
    "a query string leaves no statement and no portal": [
        *(BEGIN, parse(ROWS), SYNC, query("SELECT 1"), bind(), SYNC),
    ],
    "a portal that closes itself": [
        *(BEGIN, parse("CLOSE p"), bind(portal="p"), execute(0, "p"), SYNC),
    ],
    "CLOSE ALL closes portals": [
        *(BEGIN, parse(ROWS), bind(portal="p"), SYNC, query("CLOSE ALL"), execute(0, "p"), SYNC),
    ],
    "FETCH prepared before its cursor": [
        *(
            BEGIN,
            parse("FETCH 1 FROM c", "f"),
            SYNC,
            query("DECLARE c CURSOR FOR SELECT id, v FROM w ORDER BY id"),
        ),
        *(bind(statement="f"), describe("P"), execute(), SYNC, query("CLOSE c")),
        *(query("DECLARE c CURSOR FOR SELECT 'other'"), bind(statement="f"), describe("P"), execute(), SYNC),
    ],
    "EXECUTE prepared before its statement": [
        *(parse("EXECUTE s", "e"), SYNC, parse("SELECT 7 AS seven", "s"), SYNC),
        *(bind(statement="e"), describe("P"), execute(), SYNC, close("S", "s"), SYNC),
        *(parse("SELECT 'eight' AS eight", "s"), bind(statement="e"), describe("P"), execute(), SYNC),
    ],
    "a cursor is executed": [
        *(BEGIN, query("DECLARE c CURSOR FOR SELECT id FROM w ORDER BY id"), execute(2, "c"), SYNC),
        *(query("FETCH 1 FROM c"), execute(0, "c"), SYNC),
    ],
    "rows returned in parts": [
        *(parse("INSERT INTO w SELECT n, 'x' FROM generate_series(11, 15) AS g (n) RETURNING id"), bind()),
        *(execute(2), execute(2), execute(2), execute(2), SYNC),
        *(
            BEGIN,
            parse("DELETE FROM w WHERE id = 11 RETURNING id"),
            bind(),
            execute(1),
            FLUSH,
            execute(1),
            SYNC,
        ),
    ],
    # Blocks
    "a failed block": [
        *(BEGIN, query("SELECT nothing"), parse("nonsense"), SYNC, parse(""), SYNC, parse("SELECT 1"), SYNC),
        *(parse("ROLLBACK", "r"), describe("S", "r"), bind(statement="r"), execute(), SYNC),
    ],
    "a failed block takes back what was set": [
        *(BEGIN, query("SET application_name = 'here'"), query("SELECT nothing"), COMMIT),
        *(
            query("SET application_name = 'kept'"),
            BEGIN,
            query("SET LOCAL application_name = 'local'"),
            COMMIT,
        ),
    ],
    "a syntax error runs nothing": [
        *(query("INSERT INTO w VALUES (51, 'x'); COMMIT; nonsense"), query(ROWS)),
    ],
    "several statements are a block": [
        query("DECLARE c CURSOR FOR SELECT id FROM w ORDER BY id; FETCH 2 FROM c"),
        query("SET LOCAL application_name = 'here'; SHOW application_name"),
        query("SET application_name = 'here'; SELECT nothing"),
        query("SELECT 1; DISCARD ALL"),
        query("SAVEPOINT a; SELECT 1"),
        *(
            parse("SELECT 1"),
            bind(),
            execute(),
            parse("DECLARE c CURSOR FOR SELECT 1"),
            bind(),
            execute(),
            SYNC,
        ),
    ],
    # Errors and notices
    "constraints are named": [
        query("INSERT INTO w VALUES (1, 'taken')"),
        query("INSERT INTO w VALUES (NULL, 'taken')"),
        query("DROP TABLE IF EXISTS k"),
        query("CREATE TABLE k (id int PRIMARY KEY REFERENCES w (id), n int CHECK (n > 0))"),
        query("INSERT INTO k VALUES (1, -1)"),
        query("INSERT INTO k VALUES (99, 1)"),
        query("DROP TABLE k"),
    ],
    "client_min_messages": [
        query("SET client_min_messages = warning; DROP TABLE IF EXISTS nothing"),
        *(query("SET client_min_messages = error"), COMMIT, query("SET client_min_messages = fatal")),
        *(query("RESET client_min_messages"), query("DROP TABLE IF EXISTS nothing")),
        query("SET client_min_messages = log; SHOW client_min_messages"),
    ],
    # COPY
    "COPY in binary": [
        query("COPY (SELECT id, v FROM w ORDER BY id) TO STDOUT (FORMAT binary)"),
        query("COPY (SELECT id FROM w WHERE id < 0) TO STDOUT (FORMAT binary)"),
    ],
    "FORCE_QUOTE leaves the header alone": [
        query("COPY (SELECT id, v FROM w ORDER BY id) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *)"),
        query(
            'COPY (SELECT id AS "a,b", v FROM w ORDER BY id) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (v))'
        ),
    ],
    "COPY that is given up in a block": [
        *(
            BEGIN,
            query("COPY w FROM STDIN"),
            message("f", b"no\0"),
            execute(portal="p"),
            SYNC,
            query("ROLLBACK"),
        ),
    ],
    # Types and settings
    '"char" is a byte': [
        parse('SELECT $1::"char"', "s", [CHAR_OID]),
        *(bind(b"\0", statement="s", formats=[1], results=[1]), execute(), SYNC),
        *(bind(b"\xff", statement="s", formats=[1], results=[0]), execute(), SYNC),
        *(bind(b"\xff", statement="s", formats=[1], results=[1]), execute(), SYNC),
        *(
            bind(b"", statement="s", formats=[1]),
            execute(),
            SYNC,
            bind(b"ab", statement="s", formats=[1]),
            SYNC,
        ),
        *(
            bind(b"", statement="s", results=[1]),
            execute(),
            SYNC,
            bind(b"\\101", statement="s"),
            execute(),
            SYNC,
        ),
        query('SELECT \'abc\'::"char", \'é\'::"char", \'é\'::"char"::text, (-1)::"char", \'\'::"char"::int'),
    ],
    "types by name": [
        *(query(f"SELECT to_regtype('{each}')") for each in TYPE_NAMES),
        query("SELECT to_regtype('text text')"),
        query("SELECT '\"bigint\"'::regtype"),
        query("SELECT '\"text\"'::regtype"),
    ],
    "SET ROLE NONE": [
        *(query("SET ROLE NONE"), query("SET SESSION ROLE NONE"), query("SHOW role"), query("RESET ROLE")),
        *(
            query("SET ROLE TO DEFAULT"),
            query("SET SESSION AUTHORIZATION DEFAULT"),
            query("RESET SESSION AUTHORIZATION"),
        ),
    ],
    "what pools say to a session that they take back": [
        query("SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;"),
        query("DISCARD ALL"),
    ],
    # Plans that are stale
    "a stale plan is known by its routine": [
        *STALE,
        *(
            query("INSERT INTO s VALUES (1, 2)"),
            parse("SELECT * FROM s", "q"),
            bind(statement="q"),
            execute(),
            SYNC,
        ),
        *(
            ADD_COLUMN,
            bind(statement="q"),
            execute(),
            SYNC,
            bind(statement="q"),
            describe("P"),
            execute(),
            SYNC,
        ),
        *(close("S", "q"), parse("SELECT * FROM s", "q"), bind(statement="q"), execute(), SYNC),
    ],
    "a stale plan in a block, with a savepoint": [
        *STALE,
        *(
            query("INSERT INTO s VALUES (1, 2)"),
            parse("SELECT * FROM s WHERE id = $1", "q"),
            SYNC,
            ADD_COLUMN,
        ),
        *(BEGIN, query("SAVEPOINT a"), bind(b"1", statement="q"), execute(), SYNC, query("ROLLBACK TO a")),
        *(parse("SELECT * FROM s WHERE id = $1", "r"), bind(b"1", statement="r"), execute(), SYNC, COMMIT),
    ],
    "a stale plan of EXECUTE and of RETURNING": [
        *STALE,
        *(
            query("PREPARE q AS SELECT * FROM s"),
            parse("INSERT INTO s VALUES ($1, 2) RETURNING *", "i"),
            SYNC,
        ),
        *(ADD_COLUMN, query("EXECUTE q"), bind(b"1", statement="i"), execute(), SYNC),
    ],
    "parameters keep their types": [
        *STALE,
        *(
            parse("INSERT INTO s (id, v) VALUES ($1, $2)", "i"),
            bind(b"1", b"5", statement="i"),
            execute(),
            SYNC,
        ),
        query("ALTER TABLE s ALTER COLUMN v TYPE text USING v::text"),
        *(
            bind(b"2", b"6", statement="i"),
            execute(),
            SYNC,
            query("SELECT id, v, length(v) FROM s ORDER BY id"),
        ),
    ],
    "parameters know labels that came later": [
        *(query("DROP TABLE IF EXISTS e"), query("DROP TYPE IF EXISTS mood")),
        *(query("CREATE TYPE mood AS ENUM ('a', 'b')"), query("CREATE TABLE e (id int PRIMARY KEY, m mood)")),
        *(parse("INSERT INTO e VALUES ($1, $2)", "i"), parse("SELECT id FROM e WHERE m = $1", "q"), SYNC),
        *(query("ALTER TYPE mood ADD VALUE 'c'"), bind(b"1", b"c", statement="i"), execute(), SYNC),
        *(bind(b"c", statement="q"), execute(), SYNC, query("ALTER TYPE mood RENAME VALUE 'c' TO 'd'")),
        *(bind(b"2", b"d", statement="i"), execute(), SYNC, bind(b"d", statement="q"), execute(), SYNC),
        *(bind(b"c", statement="q"), SYNC, query("DROP TABLE e"), query("DROP TYPE mood")),
    ],
}
