"""The texts of defaults, CHECKs and indexes: those of PostgreSQL, to the letter."""

import pytest

from tests.clients.catalogs.world import Side

TABLE = """
CREATE TABLE texts (
    i int DEFAULT 5, ni int DEFAULT -5, b bigint DEFAULT 7, nb bigint DEFAULT -7, s smallint DEFAULT 3,
    f double precision DEFAULT 1.5, f2 double precision DEFAULT 2, n numeric DEFAULT 3,
    n2 numeric(10,2) DEFAULT 12.50, n3 numeric DEFAULT -1.5, t text DEFAULT 'it''s', v varchar(10) DEFAULT
    'v', c char(5) DEFAULT 'c', ts timestamp DEFAULT CURRENT_TIMESTAMP, tz timestamptz DEFAULT now(),
    d date DEFAULT CURRENT_DATE, d2 date DEFAULT '2020-01-01', bo bool DEFAULT true, j jsonb DEFAULT '{}',
    a int[] DEFAULT '{}', a2 text[] DEFAULT ARRAY['a','b'], u uuid DEFAULT gen_random_uuid(),
    cat text DEFAULT ('a' || 'b'), up text DEFAULT upper('x'), cu text DEFAULT current_user,
    iv interval DEFAULT '1 day', nn text DEFAULT NULL,
    CHECK (i > 0), CHECK (i > 0 AND b < 10), CHECK (t IN ('a','b')), CHECK (v = 'x' OR v IS NULL),
    CHECK (i + b * 2 > 3), CHECK (length(t) > 2), CHECK (NOT bo), CHECK (n BETWEEN 1 AND 5), CHECK (f >= 0),
    CHECK (t <> ''), CHECK (t LIKE 'a%'), CHECK (COALESCE(i,0) > 1),
    CHECK (CASE WHEN i > 0 THEN true ELSE false END), CHECK (i = ANY (ARRAY[1,2])), CHECK (b > 0),
    CHECK (d > '2020-01-01'), CHECK (v <> 'y'), CHECK (t ~ '^a'), CHECK (i::text = '5'), CHECK (n > 0.5),
    CHECK (i % 2 = 0), CHECK (-i < 3), CHECK (lower(v) = v), CHECK (i IS DISTINCT FROM b),
    CHECK ((i > 1 OR b > 2) AND NOT (i > 3 AND b > 4)), CHECK (i NOT IN (1, 2)), CHECK (bo IS TRUE)
)
"""
DEFAULTS = """
SELECT attname, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true)
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = 'texts'::regclass AND attnum > 0 ORDER BY attnum
"""
CHECKS = """
SELECT conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true)
FROM pg_constraint WHERE conrelid = 'texts'::regclass ORDER BY conname
"""
INDEXES = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true),
       pg_get_indexdef(indexrelid, 1, false)
FROM pg_index JOIN pg_class c ON c.oid = indrelid
WHERE c.relname IN ('users', 'pair', 'orders', 'Odd name') ORDER BY 1
"""


@pytest.fixture(scope="module", autouse=True)
def _tables(ours: Side, theirs: Side) -> None:
    for side in (ours, theirs):
        side.run(TABLE)


@pytest.mark.parametrize("query", [DEFAULTS, CHECKS, INDEXES], ids=["defaults", "checks", "indexes"])
def test_texts_are_postgresqls(ours: Side, theirs: Side, query: str) -> None:
    assert ours.rows(query) == theirs.rows(query)
