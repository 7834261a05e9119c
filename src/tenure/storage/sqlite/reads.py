"""How SQLite reads revisions: at a time, what changed, and everything in an interval.

Each function gets a bare `execute` whose statements see one snapshot. A read at T walks `live`
in key order; only where the newest revision is younger than T is the one visible at T looked
up in `past`, by its key. So the cost follows the keys returned and those changed after T, not
how much history there is.

Walk: `sqlite.sqlite_engine.SqliteEngine.get`, `.get_many`, `.scan`, `.history` -> here; its poller ->
`changed`.
"""

from collections.abc import Iterable

from tenure.base.timestamp import Timestamp, from_bytes
from tenure.storage.engine import (
    REVISION_BYTES,
    Guard,
    History,
    Portion,
    ReadResult,
    Revision,
    Revisions,
    Scan,
    Spread,
)
from tenure.storage.sqlite.head_clock import Execute, heads

UNLIMITED = 1 << 48

HEADS_MAX = 16
"""The most heads looked at in a subscribed span: a span with more counts as changed, which costs one needless
look.
"""

# Scalar subqueries throughout: joins cost SQLite three times as much.
_CLOCK_AND_MARKS = (
    "(SELECT at FROM clock), (SELECT value FROM live WHERE key = ?2), (SELECT value FROM live WHERE key = ?3)"
)
_CLOCK_AND_SPAN_MARKS = (
    "SELECT (SELECT at FROM clock), (SELECT max(value) FROM live WHERE key BETWEEN ? AND ?),"
    " (SELECT max(value) FROM live WHERE key BETWEEN ? AND ?)"
)
_GET_LIVE = f"SELECT {_CLOCK_AND_MARKS}, at, value FROM live WHERE key = ?1"
# The first revision that ends after a time is the only one that can be visible then. A search for one that
# also begins by then would walk all later revisions of a key that has none. Rows come by (key, until), as the
# primary key has them; an ORDER BY would make SQLite prepare the statement anew with every call.
_GET_PAST = f"SELECT {_CLOCK_AND_MARKS}, at, value FROM past WHERE key = ?1 AND until > ?4 LIMIT 1"
_GET_NOTHING = f"SELECT {_CLOCK_AND_MARKS}, 0, NULL WHERE NOT EXISTS (SELECT 1 FROM live WHERE key = ?1)"
_GET_NEITHER = f"SELECT {_CLOCK_AND_MARKS}, 0, NULL WHERE ?1 IS NOT NULL"
_GET_MANY = (
    "SELECT (SELECT value FROM live WHERE key = ?2), (SELECT at FROM clock),"
    " (SELECT value FROM live WHERE key = ?3)"
    " UNION ALL SELECT l.key, l.at, l.value FROM carray(?1) AS k CROSS JOIN live AS l ON l.key = k.value"
)
_SCAN_NOW = (
    "SELECT key, at, value FROM live WHERE key >= ? AND key < ? AND (value IS NOT NULL OR {})"
    " ORDER BY key {} LIMIT ?"
)
_ENDS_NEXT = "FROM past p WHERE p.key = l.key AND p.until > ?3 LIMIT 1"
_SCAN_AT = (
    f"SELECT key, CASE WHEN l.at <= ?3 THEN l.at ELSE (SELECT p.at {_ENDS_NEXT}) END,"
    f" CASE WHEN l.at <= ?3 THEN l.value ELSE (SELECT p.value {_ENDS_NEXT}) END"
    " FROM live l WHERE key >= ?1 AND key < ?2"
    " AND CASE WHEN l.at <= ?3 THEN (l.value IS NOT NULL OR {0})"
    f" ELSE (SELECT p.at <= ?3 AND (p.value IS NOT NULL OR {{0}}) {_ENDS_NEXT}) END"
    " ORDER BY key {1} LIMIT ?4"
)
_CHANGED = (
    "SELECT key, at, value FROM live INDEXED BY live_changes"
    " WHERE substr(key, 1, 10) = ? AND at > ? AND key >= ? AND key < ?"
)
_HAS_CHANGED = "SELECT 1 FROM live INDEXED BY live_changes WHERE substr(key, 1, 10) = ? AND at > ? LIMIT 1"
_ENDS_AFTER = "SELECT key, at, value FROM past WHERE key = ? AND until > ? LIMIT 1"
_HISTORY = (
    "SELECT key, at, value FROM live INDEXED BY live_changes"
    " WHERE substr(key, 1, 10) = ?1 AND at > ?2 AND at <= ?3 AND key >= ?4 AND key < ?5"
    " UNION ALL SELECT key, at, value FROM past INDEXED BY past_changes"
    " WHERE substr(key, 1, 10) = ?1 AND at > ?2 AND at <= ?3 AND key >= ?4 AND key < ?5"
    " ORDER BY 2, 1 LIMIT ?6"
)
_KEYS = (
    "SELECT key, at, iif(at > ?4 AND at <= ?5, value, NULL) FROM live"
    " WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3"
)
_PAST_OF_KEYS = "SELECT key, at, value FROM past WHERE key >= ?1 AND key <= ?2 AND at > ?3 AND at <= ?4"
_SPREAD = (
    "SELECT count(*), coalesce(sum(length(key) + coalesce(length(value), 0)), 0)"
    " FROM live WHERE key >= ?1 AND key < ?2 AND at > ?3"
)
_CUTS = (
    "SELECT key FROM (SELECT key, row_number() OVER (ORDER BY key) AS number"
    " FROM live WHERE key >= ?1 AND key < ?2 AND at > ?3) WHERE number % ?4 = 0 ORDER BY key"
)
_SIZE = "(?6 + length({0}.key) + coalesce(length({0}.value), 0))"
_PORTIONS = (
    "SELECT min(key), count(*), sum(size) FROM ("
    "SELECT key, size, (sum(size) OVER (ORDER BY key) - size) / ?5 AS number FROM ("
    f"SELECT l.key, (l.at <= ?4) * {_SIZE.format('l')}"
    f" + coalesce((SELECT sum({_SIZE.format('p')}) FROM past p"
    " WHERE p.key = l.key AND p.at > ?3 AND p.at <= ?4), 0) AS size"
    " FROM live l WHERE l.key >= ?1 AND l.key < ?2 AND l.at > ?3)"
    " WHERE size > 0) GROUP BY number ORDER BY number"
)


def clock_at(execute: Execute) -> Timestamp:
    ((at,),) = execute("SELECT at FROM clock", ())
    return int(at)


def _clock_and_marks(execute: Execute, guard: Guard) -> tuple[Timestamp, Timestamp, Timestamp]:
    ((clock, threshold, cleaned),) = execute(_CLOCK_AND_SPAN_MARKS, guard)
    return clock, from_bytes(threshold or b""), from_bytes(cleaned or b"")


def get(execute: Execute, key: bytes, guard: Guard, at: Timestamp | None) -> ReadResult:
    """Reads one key by statements each of which is a complete answer from one snapshot, or none.

    If the newest revision is younger than `at`, the one visible then, if any, is in `past`. It can leave
    there only below a mark, and the marks are read with it.
    """
    arguments = (key, guard.threshold_first, guard.cleaned_first)
    rows = execute(_GET_LIVE, arguments)
    while not rows:  # again if the key appeared or was cleaned between two statements
        rows = execute(_GET_NOTHING, arguments) or execute(_GET_LIVE, arguments)
    if at is not None and rows[0][3] > at:
        rows = execute(_GET_PAST, (*arguments, at)) or execute(_GET_NEITHER, arguments)
    clock, threshold, cleaned, revision_at, value = rows[0]
    is_visible = revision_at and (at is None or revision_at <= at)
    return ReadResult(
        clock,
        from_bytes(threshold) if threshold else 0,
        from_bytes(cleaned) if cleaned else 0,
        [Revision(key, revision_at, value)] if is_visible else [],
    )


def get_many(execute: Execute, keys: tuple[bytes, ...], guard: Guard, at: Timestamp | None) -> ReadResult:
    """Reads by one statement; keys that changed since `at` are read one by one, each with its marks."""
    first, *rows = execute(_GET_MANY, (keys, guard.threshold_first, guard.cleaned_first))
    threshold_at, clock, cleaned_at = from_bytes(first[0] or b""), first[1], from_bytes(first[2] or b"")
    if at is None:
        return ReadResult(clock, threshold_at, cleaned_at, [Revision(*row) for row in rows])
    revisions = [Revision(*row) for row in rows if row[1] <= at]
    for key in [row[0] for row in rows if row[1] > at]:
        older = get(execute, key, guard, at)
        threshold_at = max(threshold_at, older.threshold_at)
        cleaned_at = max(cleaned_at, older.cleaned_at)
        revisions += older.revisions
    return ReadResult(clock, threshold_at, cleaned_at, revisions)


def scan(execute: Execute, query: Scan) -> ReadResult:
    clock, threshold_at, cleaned_at = _clock_and_marks(execute, query.guard)
    if query.since_at is not None:
        revisions = _changed(execute, query, at=clock if query.at is None else query.at)
    else:
        revisions = _visible(execute, query, clock)
    return ReadResult(clock, threshold_at, cleaned_at, revisions)


def _visible(execute: Execute, query: Scan, clock: Timestamp) -> list[Revision]:
    order = "DESC" if query.reverse else "ASC"
    limit = -1 if query.limit is None else query.limit
    tombstones = "TRUE" if query.tombstones else "FALSE"
    if query.at is None or query.at >= clock:
        rows = execute(_SCAN_NOW.format(tombstones, order), (query.lo, query.hi, limit))
    else:
        rows = execute(_SCAN_AT.format(tombstones, order), (query.lo, query.hi, query.at, limit))
    return [Revision(*row) for row in rows]


def _changed(execute: Execute, query: Scan, at: Timestamp) -> list[Revision]:
    since_at = query.since_at or 0
    changed: list[Revision] = []
    for head in heads(execute, query.lo, query.hi):
        for row in execute(_CHANGED, (head, since_at, query.lo, query.hi)):
            # A revision younger than `at` hides the revision that was visible then.
            rows = [row] if row[1] <= at else execute(_ENDS_AFTER, (row[0], at))
            changed.extend(Revision(*each) for each in rows if since_at < each[1] <= at)
    changed.sort(reverse=query.reverse)
    return changed[: query.limit]


def history(execute: Execute, query: History) -> ReadResult:
    clock, threshold_at, cleaned_at = _clock_and_marks(execute, query.guard)
    until_at = clock if query.until_at is None else query.until_at
    limit = UNLIMITED if query.limit is None else query.limit
    revisions, through_at = _interval(execute, query, until_at, limit)
    if not revisions and through_at < until_at:
        # The first transaction alone is larger than the limit, and an answer contains it whole.
        revisions, through_at = _interval(execute, query, through_at + 1, UNLIMITED)
    return ReadResult(clock, threshold_at, cleaned_at, revisions, through_at)


def _interval(
    execute: Execute, query: History, until_at: Timestamp, limit: int
) -> tuple[list[Revision], Timestamp]:
    """Returns revisions in order, cut between timestamps, and the timestamp up to which they are complete."""
    gathered: list[Revision] = []
    through_at = until_at
    found = _history_heads(execute, query)
    for head in found:
        rows = execute(_HISTORY, (head, query.since_at, until_at, query.lo, query.hi, limit + 1))
        if len(rows) > limit:
            through_at = min(through_at, rows[-1][1] - 1)
        gathered.extend(Revision(*row) for row in rows)
    if len(found) > 1:
        gathered.sort(key=lambda revision: (revision.at, revision.key))
    if len(gathered) > limit:
        through_at = min(through_at, gathered[limit].at - 1)
    return [revision for revision in gathered if revision.at <= through_at], through_at


def revisions(execute: Execute, query: Revisions) -> ReadResult:
    """Every key that has a revision has a row in `live`, so `live` lists all keys."""
    clock, threshold_at, cleaned_at = _clock_and_marks(execute, query.guard)
    since_at, until_at = query.since_at, query.until_at
    keys = execute(_KEYS, (query.lo, query.hi, query.limit, since_at, until_at))
    if not keys:
        return ReadResult(clock, threshold_at, cleaned_at, [])
    last = keys[-1][0]
    found = [Revision(*row) for row in keys if since_at < row[1] <= until_at]
    found += [Revision(*row) for row in execute(_PAST_OF_KEYS, (query.lo, last, since_at, until_at))]
    found.sort(key=lambda revision: (revision.key, revision.at))
    is_cut = len(keys) == query.limit
    return ReadResult(clock, threshold_at, cleaned_at, found, last=last if is_cut else b"")


def spread(execute: Execute, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
    ((keys, size),) = execute(_SPREAD, (lo, hi, since_at))
    cuts = execute(_CUTS, (lo, hi, since_at, every)) if keys >= every else []
    return Spread(keys, size, [key for (key,) in cuts])


def portions(
    execute: Execute, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
) -> list[Portion]:
    arguments = (lo, hi, since_at, until_at, size_max, REVISION_BYTES)
    return [Portion(*row) for row in execute(_PORTIONS, arguments)]


def _history_heads(execute: Execute, query: History) -> list[bytes]:
    both = heads(execute, query.lo, query.hi) + heads(execute, query.lo, query.hi, table="past")
    return sorted(set(both))


def changed(execute: Execute, bounds: Iterable[tuple[bytes, bytes]], since_at: Timestamp) -> set[bytes]:
    """The heads within some spans, each given by its first head and its end, that were written to since."""
    found: set[bytes] = set()
    for first, end in bounds:
        within = heads(execute, first, end, heads_max=HEADS_MAX)
        if len(within) == HEADS_MAX:
            found.add(first)
        else:
            found.update(head for head in within if execute(_HAS_CHANGED, (head, since_at)))
    return found
