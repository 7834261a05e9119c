"""The reads of the PostgreSQL engine: one statement for each kind, so each is of one snapshot.

The first row of every answer is (threshold mark, clock, cleaned mark), the rest are revisions;
without parallel plans, which sessions turn off, an Append runs its parts in order.

A read at T walks `live` in key order and looks into `past` only for keys that changed after T. Reads of
changes and histories use the (head, at) indexes; `postgres.section_sql` says how the planner is made to use
them.

Walk: `storage.postgres.postgres_engine` runs these on its pool.
"""

_POINT_HEADER = """
SELECT (SELECT m.value FROM live m WHERE m.key = %(threshold_first)b) AS key,
    (SELECT c.at FROM clock c) AS at,
    (SELECT m.value FROM live m WHERE m.key = %(cleaned_first)b) AS value
UNION ALL
"""

_HEADER = """
SELECT (SELECT m.value FROM live m WHERE m.key BETWEEN %(threshold_first)b AND %(threshold_last)b
            AND m.value IS NOT NULL ORDER BY m.value DESC LIMIT 1) AS key,
    (SELECT c.at FROM clock c) AS at,
    (SELECT m.value FROM live m WHERE m.key BETWEEN %(cleaned_first)b AND %(cleaned_last)b
            AND m.value IS NOT NULL ORDER BY m.value DESC LIMIT 1) AS value
UNION ALL
"""

# The revision of a key of `live` (here `l`) that was visible at a time before its newest one.
_BEFORE = """
LEFT JOIN LATERAL (
    SELECT f.at, f.value FROM (
        SELECT p.at, p.value FROM past p WHERE l.at > %(at)b AND p.key = l.key AND p.until > %(at)b
        ORDER BY p.until LIMIT 1
    ) f WHERE f.at <= %(at)b
) b ON true
"""
_VISIBLE = """
    l.key, CASE WHEN l.at <= %(at)b THEN l.at ELSE b.at END AS at,
    CASE WHEN l.at <= %(at)b THEN l.value ELSE b.value END AS value
"""

GET_NOW = _POINT_HEADER + "(SELECT l.key, l.at, l.value FROM live l WHERE l.key = %(key)b)"

GET_AT = f"""{_POINT_HEADER} (SELECT v.key, v.at, v.value FROM (
    SELECT {_VISIBLE} FROM live l {_BEFORE} WHERE l.key = %(key)b
) v WHERE v.at IS NOT NULL)"""


GET_MANY_NOW = _POINT_HEADER + "(SELECT l.key, l.at, l.value FROM live l WHERE l.key = ANY (%(keys)b))"

GET_MANY_AT = f"""{_POINT_HEADER} (SELECT v.key, v.at, v.value FROM (
    SELECT {_VISIBLE} FROM live l {_BEFORE} WHERE l.key = ANY (%(keys)b)
) v WHERE v.at IS NOT NULL)"""


def scan_now(order: str) -> str:
    return f"""{_HEADER} (SELECT l.key, l.at, l.value FROM live l
        WHERE l.key >= %(lo)b AND l.key < %(hi)b AND (%(tombstones)b OR l.value IS NOT NULL)
        ORDER BY l.key {order} LIMIT %(limit)b)"""


def scan_at(order: str) -> str:
    return f"""{_HEADER} (SELECT {_VISIBLE} FROM live l {_BEFORE}
        WHERE l.key >= %(lo)b AND l.key < %(hi)b
            AND (l.at <= %(at)b OR b.at IS NOT NULL)
            AND (%(tombstones)b OR CASE WHEN l.at <= %(at)b THEN l.value ELSE b.value END IS NOT NULL)
        ORDER BY l.key {order} LIMIT %(limit)b)"""


def diff(order: str) -> str:
    return f"""{_HEADER} (SELECT v.key, v.at, v.value FROM (
        SELECT {_VISIBLE}
        FROM heads(%(first)b, %(beyond)b) AS h(head)
        CROSS JOIN LATERAL (
            SELECT c.key, c.at, c.value FROM live c
            WHERE substring(c.key for 10) = h.head AND c.at > %(since)b OFFSET 0
        ) l
        {_BEFORE}
        WHERE l.key >= %(lo)b AND l.key < %(hi)b
    ) v WHERE v.at > %(since)b ORDER BY v.key {order} LIMIT %(limit)b)"""


def _of_head(table: str) -> str:
    """Revisions of one head in time order: the index gives the order, so a limit ends the walk."""
    return f"""(SELECT r.key, r.at, r.value FROM (
        SELECT t.key, t.at, t.value FROM {table} t
        WHERE substring(t.key for 10) = h.head AND t.at > %(since)b AND t.at <= %(until)b
        ORDER BY t.at OFFSET 0
    ) r WHERE r.key >= %(lo)b AND r.key < %(hi)b
    ORDER BY r.at FETCH FIRST (%(limit)b) ROWS WITH TIES)"""


# Every key that has a revision has a row in `live`, so `live` lists all keys.
REVISIONS = f"""{_HEADER} (
    WITH page AS MATERIALIZED (
        SELECT l.key, l.at, CASE WHEN l.at > %(since)b AND l.at <= %(until)b THEN l.value END AS value
        FROM live l WHERE l.key >= %(lo)b AND l.key < %(hi)b
        ORDER BY l.key LIMIT %(limit)b
    )
    SELECT g.key, g.at, g.value FROM page g
    UNION ALL
    SELECT p.key, p.at, p.value FROM past p
    WHERE p.key >= %(lo)b AND p.key <= (SELECT g.key FROM page g ORDER BY g.key DESC LIMIT 1)
        AND p.at > %(since)b AND p.at <= %(until)b)"""

SPREAD = """
SELECT count(*), coalesce(sum(length(key) + coalesce(length(value), 0)), 0)::bigint, NULL::bytea
FROM live WHERE key >= %(lo)b AND key < %(hi)b AND at > %(since)b
"""
CUTS = """
SELECT c.key FROM (
    SELECT key, row_number() OVER (ORDER BY key) AS number
    FROM live WHERE key >= %(lo)b AND key < %(hi)b AND at > %(since)b
) c WHERE c.number %% %(every)b = 0 ORDER BY c.key
"""

MOVED_HEADS = """
SELECT c.at, (SELECT h.at FROM head_clock h WHERE h.head = ''::bytea), NULL::bytea FROM clock c
UNION ALL
(SELECT h.at, NULL::bigint, h.head FROM head_clock h WHERE h.at > %(since)b)
"""

WRITTEN_HEADS = "SELECT h.written_at, NULL::bigint, h.head FROM head_clock h"

_SIZE = "(%(each)b + length({0}.key) + coalesce(length({0}.value), 0))"
PORTIONS = f"""
SELECT DISTINCT ON (n.number)
    n.key, count(*) OVER (PARTITION BY n.number), (sum(n.size) OVER (PARTITION BY n.number))::bigint
FROM (
    SELECT s.key, s.size, div(sum(s.size) OVER (ORDER BY s.key) - s.size, %(size_max)b) AS number
    FROM (
        SELECT l.key, (CASE WHEN l.at <= %(until)b THEN {_SIZE.format("l")} ELSE 0 END
            + coalesce((SELECT sum({_SIZE.format("p")}) FROM past p
                WHERE p.key = l.key AND p.at > %(since)b AND p.at <= %(until)b), 0))::bigint AS size
        FROM live l WHERE l.key >= %(lo)b AND l.key < %(hi)b AND l.at > %(since)b
    ) s WHERE s.size > 0
) n ORDER BY n.number, n.key
"""

HISTORY = f"""{_HEADER} (SELECT t.key, t.at, t.value FROM (
    SELECT u.key, u.at, u.value
    FROM heads(%(first)b, %(beyond)b) AS h(head)
    CROSS JOIN LATERAL ({_of_head("live")} UNION ALL {_of_head("past")}) u
    ORDER BY u.at FETCH FIRST (%(limit)b) ROWS WITH TIES
) t ORDER BY t.at, t.key)"""
