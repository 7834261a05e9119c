"""The tables and functions of the PostgreSQL engine.

Names are bare: every session has the engine's schema as its search path. The session's planner settings fix
the plans (see `postgres.session`): nested loops over index scans, which is the right plan for every statement
here, regardless of the statistics.

    heads(first, beyond)    the heads that exist in a span, one index probe each
    failures(...)           why the reads of some commits do not hold, set-based
    remove_garbage(...)     one batch of a removal of superseded revisions, and tombstones
    remove_flushed(...)     one batch of a removal of what the lake has
    commit_group(...)       the section
    settle(...), push_clock(...)

Three things are written for the planner:
* `substring(key for 10)` is the expression of the (head, at) indexes;
* `OFFSET 0` is a fence: the comparison of keys stays outside, so that the primary key is no
  candidate and the (head, at) index is used;
* STABLE functions read with the snapshot of the statement that calls them, so a read that calls
  `heads` is still of one snapshot. `commit_group` is VOLATILE: each of its statements has a
  snapshot of its own, taken after the clock row was locked.

Invariant (I2): a commit whose spans hold a revision newer than its `read_at` writes nothing.
Invariant (I4): the deadline is compared with the final commit timestamp, strictly.
Invariant (absent): a commit writes nothing if a key that it requires to be absent has a row.
Invariant (I8): exactly the revisions at the excused timestamps are excused; below an excused revision, `past`
is searched for a revision of another transaction.

Walk: `storage.postgres.postgres_engine` creates `TABLES` and `FUNCTIONS`, and calls the functions with
arrays.
"""

TABLES = """
CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL);

-- One row that every commit updates: room on its page keeps the updates in place (HOT).
CREATE TABLE IF NOT EXISTS clock (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO clock (at) VALUES (0) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS live (key bytea PRIMARY KEY, at bigint NOT NULL, value bytea);
CREATE INDEX IF NOT EXISTS live_head_at ON live (substring(key for 10), at);
-- Finds garbage without walking the living.
CREATE INDEX IF NOT EXISTS live_tombstone ON live (key) WHERE value IS NULL;

CREATE TABLE IF NOT EXISTS past (
    key bytea NOT NULL, at bigint NOT NULL, until bigint NOT NULL, value bytea,
    PRIMARY KEY (key, until)
);
CREATE INDEX IF NOT EXISTS past_head_at ON past (substring(key for 10), at);

-- Not indexed by time: its rows stay on their pages (HOT), and it has as many rows as there are indexes.
CREATE TABLE IF NOT EXISTS head_clock (
    head bytea PRIMARY KEY, at bigint NOT NULL, written_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS lane (id bytea PRIMARY KEY, seq bigint NOT NULL, outcomes bytea)
    WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS probe (id bytea, part text, value bigint NOT NULL, PRIMARY KEY (id, part));
"""

_PARTS = """
CREATE OR REPLACE FUNCTION wall_micros() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- Lays a commit timestamp over eight bytes; a negative offset means: no stamp.
CREATE OR REPLACE FUNCTION stamped(data bytea, start bigint, stamp_at bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN start < 0 THEN data
        ELSE overlay(data PLACING int8send(stamp_at) FROM start::int + 1 FOR 8) END
$$;

CREATE OR REPLACE FUNCTION heads(first bytea, beyond bytea) RETURNS SETOF bytea
LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE head bytea := first;
BEGIN
    WHILE head IS NOT NULL LOOP
        RETURN NEXT head;
        EXIT WHEN beyond = head || '\\x00'::bytea;
        SELECT substring(key for 10) INTO head FROM live
            WHERE substring(key for 10) > head AND substring(key for 10) < beyond
            ORDER BY substring(key for 10), at LIMIT 1;
    END LOOP;
END $$;
"""

_FAILURES = """
-- One row for each commit whose reads do not hold. Member numbers count from 1 over read_ats;
-- the excused timestamps of member m are excused_ats[excused_ends[m] + 1 : excused_ends[m + 1]].
-- That a key is taken (5) is said only if all reads hold, and of the first such key.
CREATE OR REPLACE FUNCTION failures(
    store_at bigint, read_ats bigint[], excused_ends bigint[], excused_ats bigint[],
    p_members bigint[], p_keys bytea[], a_members bigint[], a_keys bytea[],
    s_members bigint[], s_los bytea[], s_his bytea[], s_firsts bytea[], s_beyonds bytea[],
    g_members bigint[], g_thresholds bytea[], g_threshold_lasts bytea[],
    g_cleaneds bytea[], g_cleaned_lasts bytea[]
) RETURNS TABLE (member bigint, status bigint, at bigint, key bytea)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (f.member) f.member, f.status, f.at, f.key FROM (
        SELECT g.member, 2::bigint AS status,
            ('x' || encode(mark.value, 'hex'))::bit(64)::bigint AS at, ''::bytea AS key, 0::bigint AS nr
        FROM unnest(g_members, g_thresholds, g_threshold_lasts, g_cleaneds, g_cleaned_lasts)
            AS g(member, threshold, threshold_last, cleaned, cleaned_last)
        CROSS JOIN LATERAL (
            (SELECT l.value FROM live l WHERE l.key BETWEEN g.threshold AND g.threshold_last
                AND l.value IS NOT NULL ORDER BY l.value DESC LIMIT 1)
            UNION ALL
            (SELECT l.value FROM live l WHERE l.key BETWEEN g.cleaned AND g.cleaned_last
                AND l.value IS NOT NULL ORDER BY l.value DESC LIMIT 1)
        ) mark
        WHERE read_ats[g.member] < store_at AND mark.value > int8send(read_ats[g.member])
        UNION ALL
        SELECT a.member, 5, l.at, a.key, a.nr
        FROM unnest(a_members, a_keys) WITH ORDINALITY AS a(member, key, nr)
        JOIN live l ON l.key = a.key AND l.value IS NOT NULL
        UNION ALL
        SELECT p.member, 1, found.at, p.key, 0
        FROM unnest(p_members, p_keys) AS p(member, key)
        JOIN live l ON l.key = p.key AND l.at > read_ats[p.member]
        CROSS JOIN LATERAL stranger(l.key, l.at, read_ats[p.member],
            excused_ats[excused_ends[p.member] + 1 : excused_ends[p.member + 1]]) AS found(at)
        WHERE read_ats[p.member] < store_at AND found.at IS NOT NULL
        UNION ALL
        SELECT s.member, 1, found.at, found.key, 0
        FROM unnest(s_members, s_los, s_his, s_firsts, s_beyonds) AS s(member, lo, hi, first, beyond)
        CROSS JOIN LATERAL (
            SELECT newer.key, other.at
            FROM heads(s.first, s.beyond) AS h(head)
            CROSS JOIN LATERAL (
                SELECT l.key, l.at FROM live l
                WHERE substring(l.key for 10) = h.head AND l.at > read_ats[s.member] OFFSET 0
            ) newer
            CROSS JOIN LATERAL stranger(newer.key, newer.at, read_ats[s.member],
                excused_ats[excused_ends[s.member] + 1 : excused_ends[s.member + 1]]) AS other(at)
            WHERE newer.key >= s.lo AND newer.key < s.hi AND other.at IS NOT NULL
            LIMIT 1
        ) found
        WHERE read_ats[s.member] < store_at
    ) f ORDER BY f.member, f.status = 5, f.status DESC, f.nr, f.at DESC;
END $$;
"""

_STRANGER = """
-- The timestamp of a revision newer than read_at that is not excused, or NULL. A child's revision
-- can hide a stranger's, so beneath an excused one the past is searched.
CREATE OR REPLACE FUNCTION stranger(of_key bytea, live_at bigint, read_at bigint, excused bigint[])
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF live_at <> ALL (excused) THEN
        RETURN live_at;
    END IF;
    RETURN (SELECT p.at FROM past p WHERE p.key = of_key AND p.until > read_at
        AND p.at > read_at AND p.at <> ALL (excused) LIMIT 1);
END $$;
"""

_REMOVE = """
-- Places have the form of `storage.removals`. `phase` 0: begins in past, behind (start_key, start_until);
-- 1: begins with the tombstones, at start_key. A batch of past is a window of the primary key: one statement
-- finds its end, another deletes what may go in it. Both cost what they look at. width_bucket counts points
-- up to a time by binary search: a revision is visible at a point if there are more below its end than below
-- its start.
CREATE OR REPLACE FUNCTION remove_garbage(
    lo bytea, hi bytea, with_tombstones boolean, upto_at bigint, points bigint[], most bigint,
    phase bigint, start_key bytea, start_until bigint, OUT gone bigint, OUT place bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE looked_at bigint := 0; tombstones bigint; last_key bytea; last_until bigint;
BEGIN
    gone := 0;
    place := ''::bytea;
    IF phase = 0 THEN
        SELECT p.key, p.until INTO last_key, last_until FROM past p
            WHERE (p.key, p.until) > (start_key, start_until) AND p.key < hi
            ORDER BY p.key, p.until OFFSET most - 1 LIMIT 1;
        looked_at := most;
        IF NOT FOUND THEN
            SELECT count(*) INTO looked_at FROM past p
                WHERE (p.key, p.until) > (start_key, start_until) AND p.key < hi;
            last_key := hi;
            last_until := -1;
        END IF;
        DELETE FROM past p
            WHERE (p.key, p.until) > (start_key, start_until) AND (p.key, p.until) <= (last_key, last_until)
            AND p.until <= upto_at
            AND (points = '{}' OR width_bucket(p.until - 1, points) = width_bucket(p.at - 1, points));
        GET DIAGNOSTICS gone = ROW_COUNT;
        IF looked_at = most THEN
            place := 'p'::bytea || int8send(last_until) || last_key;
            RETURN;
        END IF;
        start_key := lo;
    END IF;
    IF NOT with_tombstones THEN
        RETURN;
    END IF;
    WITH batch AS MATERIALIZED (
        SELECT l.ctid AS row_place, l.key, l.at FROM live l
        WHERE l.value IS NULL AND l.key >= start_key AND l.key < hi
        ORDER BY l.key LIMIT most - looked_at
    ), removed AS (
        DELETE FROM live WHERE ctid = ANY (ARRAY(
            SELECT b.row_place FROM batch b
            WHERE b.at <= upto_at AND NOT EXISTS (SELECT 1 FROM past p WHERE p.key = b.key)))
        RETURNING 1
    )
    SELECT looked_at + (SELECT count(*) FROM batch), (SELECT count(*) FROM removed), b.key
        INTO looked_at, tombstones, last_key
        FROM (SELECT 1) AS one(row) LEFT JOIN LATERAL (
            SELECT b.key FROM batch b ORDER BY b.key DESC LIMIT 1
        ) b ON true;
    gone := gone + tombstones;
    IF looked_at = most THEN
        place := 't'::bytea || last_key || '\\x00'::bytea;
    END IF;
END $$;

-- The lake has every revision committed by then, whether it has ended or not.
CREATE OR REPLACE FUNCTION remove_flushed(
    lo bytea, hi bytea, first bytea, beyond bytea, upto_at bigint, most bigint,
    OUT gone bigint, OUT place bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE gone_live bigint;
BEGIN
    DELETE FROM past WHERE ctid = ANY (ARRAY(
        SELECT old.ctid FROM heads(first, beyond) AS h(head)
        CROSS JOIN LATERAL (
            SELECT p.ctid, p.key FROM past p
            WHERE substring(p.key for 10) = h.head AND p.at <= upto_at OFFSET 0
        ) old
        WHERE old.key >= lo AND old.key < hi
        LIMIT most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM live WHERE ctid = ANY (ARRAY(
        SELECT old.ctid FROM heads(first, beyond) AS h(head)
        CROSS JOIN LATERAL (
            SELECT l.ctid, l.key FROM live l
            WHERE substring(l.key for 10) = h.head AND l.at <= upto_at OFFSET 0
        ) old
        WHERE old.key >= lo AND old.key < hi
        LIMIT most - gone));
    GET DIAGNOSTICS gone_live = ROW_COUNT;
    gone := gone + gone_live;
    place := CASE WHEN gone = most THEN 'f'::bytea ELSE ''::bytea END;
END $$;
"""

VERDICT_DONE, VERDICT_REFUSED, VERDICT_LANE_GONE, VERDICT_CLOCK_AHEAD = 0, 1, 2, 3

_COMMIT_GROUP = """
-- Members come in waves, runs of members that do not touch one another: within a wave all is
-- set-based. The arrays *_ends hold, for each wave, how many entries it and its predecessors have.
CREATE OR REPLACE FUNCTION commit_group(
    lane_id bytea, lane_seq bigint, wall_at bigint, max_offset_micros bigint, heads_written text,
    read_ats bigint[], deadline_ats bigint[], not_before_ats bigint[],
    excused_ends bigint[], excused_ats bigint[],
    p_members bigint[], p_keys bytea[], a_members bigint[], a_keys bytea[],
    s_members bigint[], s_los bytea[], s_his bytea[], s_firsts bytea[], s_beyonds bytea[],
    g_members bigint[], g_thresholds bytea[], g_threshold_lasts bytea[],
    g_cleaneds bytea[], g_cleaned_lasts bytea[],
    w_members bigint[], w_keys bytea[], w_values bytea[],
    w_key_starts bigint[], w_key_pluses bigint[], w_value_starts bigint[], w_value_pluses bigint[],
    h_members bigint[], h_heads bytea[], h_writtens bigint[],
    r_members bigint[], r_los bytea[], r_his bytea[], r_firsts bytea[], r_beyonds bytea[],
    r_removes bigint[], r_ats bigint[], r_mosts bigint[],
    r_phases bigint[], r_start_keys bytea[], r_start_untils bigint[],
    r_point_ends bigint[], r_points bigint[],
    m_ends bigint[], p_ends bigint[], a_ends bigint[], s_ends bigint[], g_ends bigint[], w_ends bigint[],
    OUT verdict bigint, OUT engine_micros bigint, OUT outcomes bytea
) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    start_at bigint; clock_at bigint; next_at bigint; known_seq bigint;
    statuses bigint[]; ats bigint[]; keys bytea[]; removed bigint[]; counts bytea[]; removal record;
    p bigint := 0; a bigint := 0; s bigint := 0; g bigint := 0; w bigint := 0; m bigint := 0;
    wave bigint; i bigint; mark bigint;
    failure record; notified text; channel text := current_schema() || '.commit';
BEGIN
    SELECT c.at INTO clock_at FROM clock c FOR UPDATE;
    engine_micros := wall_micros();
    SELECT l.seq INTO known_seq FROM lane l WHERE l.id = lane_id FOR UPDATE;
    verdict := CASE WHEN known_seq IS NULL THEN 2 WHEN known_seq >= lane_seq THEN 1
        WHEN (wall_at >> 10) - engine_micros > max_offset_micros THEN 3 ELSE 0 END;
    IF verdict <> 0 THEN
        RETURN;
    END IF;
    start_at := clock_at;
    statuses := array_fill(0::bigint, ARRAY[cardinality(read_ats)]);
    ats := statuses; removed := statuses;
    keys := array_fill(''::bytea, ARRAY[cardinality(read_ats)]);
    counts := keys;

    FOR wave IN 1 .. cardinality(m_ends) LOOP
        IF p_ends[wave] > p OR a_ends[wave] > a OR s_ends[wave] > s OR g_ends[wave] > g THEN
            FOR failure IN SELECT f.member, f.status, f.at, f.key FROM failures(
                clock_at, read_ats, excused_ends, excused_ats,
                p_members[p + 1 : p_ends[wave]], p_keys[p + 1 : p_ends[wave]],
                a_members[a + 1 : a_ends[wave]], a_keys[a + 1 : a_ends[wave]],
                s_members[s + 1 : s_ends[wave]], s_los[s + 1 : s_ends[wave]], s_his[s + 1 : s_ends[wave]],
                s_firsts[s + 1 : s_ends[wave]], s_beyonds[s + 1 : s_ends[wave]],
                g_members[g + 1 : g_ends[wave]],
                g_thresholds[g + 1 : g_ends[wave]], g_threshold_lasts[g + 1 : g_ends[wave]],
                g_cleaneds[g + 1 : g_ends[wave]], g_cleaned_lasts[g + 1 : g_ends[wave]]) AS f
            LOOP
                statuses[failure.member] := failure.status;
                ats[failure.member] := failure.at;
                keys[failure.member] := failure.key;
            END LOOP;
        END IF;

        FOR i IN m + 1 .. m_ends[wave] LOOP
            IF statuses[i] IN (0, 5) THEN
                next_at := greatest(clock_at + 1, wall_at);
                IF next_at >= deadline_ats[i] OR next_at <= not_before_ats[i] THEN
                    statuses[i] := CASE WHEN next_at >= deadline_ats[i] THEN 3 ELSE 4 END;
                    ats[i] := next_at;
                    keys[i] := ''::bytea;
                ELSIF statuses[i] = 0 THEN
                    ats[i] := next_at;
                    clock_at := next_at;
                END IF;
            END IF;
        END LOOP;

        IF w_ends[wave] > w THEN
            INSERT INTO past (key, at, until, value)
            SELECT l.key, l.at, ats[t.member], l.value
            FROM unnest(w_members[w + 1 : w_ends[wave]], w_keys[w + 1 : w_ends[wave]],
                w_key_starts[w + 1 : w_ends[wave]], w_key_pluses[w + 1 : w_ends[wave]]
            ) AS t(member, key, start, plus)
            JOIN live l ON l.key = stamped(t.key, t.start, ats[t.member] + t.plus)
            WHERE statuses[t.member] = 0;

            INSERT INTO live AS l (key, at, value)
            SELECT stamped(t.key, t.key_start, ats[t.member] + t.key_plus), ats[t.member],
                stamped(t.value, t.value_start, ats[t.member] + t.value_plus)
            FROM unnest(w_members[w + 1 : w_ends[wave]],
                w_keys[w + 1 : w_ends[wave]], w_values[w + 1 : w_ends[wave]],
                w_key_starts[w + 1 : w_ends[wave]], w_key_pluses[w + 1 : w_ends[wave]],
                w_value_starts[w + 1 : w_ends[wave]], w_value_pluses[w + 1 : w_ends[wave]]
            ) AS t(member, key, value, key_start, key_plus, value_start, value_plus)
            WHERE statuses[t.member] = 0
            ON CONFLICT ON CONSTRAINT live_pkey DO UPDATE SET at = excluded.at, value = excluded.value;
        END IF;

        -- A member that removes has a wave to itself. Its removals end with the first that its limit cuts:
        -- `keys` has the place, as a member that removes has committed and has no key to tell.
        FOR i IN 1 .. cardinality(r_members) LOOP
            IF r_members[i] = m_ends[wave] AND statuses[r_members[i]] = 0 AND keys[r_members[i]] = '' THEN
                IF r_removes[i] = 2 THEN
                    SELECT * INTO removal FROM remove_flushed(
                        r_los[i], r_his[i], r_firsts[i], r_beyonds[i], r_ats[i], r_mosts[i]);
                ELSE
                    SELECT * INTO removal FROM remove_garbage(
                        r_los[i], r_his[i], r_removes[i] = 1, r_ats[i],
                        r_points[r_point_ends[i] + 1 : r_point_ends[i + 1]], r_mosts[i],
                        r_phases[i], r_start_keys[i], r_start_untils[i]);
                END IF;
                removed[r_members[i]] := removed[r_members[i]] + removal.gone;
                counts[r_members[i]] := counts[r_members[i]] || int4send(removal.gone::int);
                keys[r_members[i]] := removal.place;
            END IF;
        END LOOP;

        m := m_ends[wave]; p := p_ends[wave]; a := a_ends[wave];
        s := s_ends[wave]; g := g_ends[wave]; w := w_ends[wave];
    END LOOP;

    -- The form of `storage.outcomes`; in a loop, since one statement costs more than many of these.
    outcomes := ''::bytea;
    FOR i IN 1 .. cardinality(statuses) LOOP
        mark := CASE WHEN length(counts[i]) > 4 THEN 128 ELSE 0 END;
        IF mark > 0 THEN
            keys[i] := int2send((length(counts[i]) / 4)::int2) || counts[i] || keys[i];
        END IF;
        outcomes := outcomes || substring(int2send((statuses[i] + mark)::int2) from 2) || int8send(ats[i])
            || int4send(removed[i]::int) || int2send(length(keys[i])::int2) || keys[i];
    END LOOP;
    IF clock_at > start_at THEN
        notified := pg_notify(channel, heads_written);
        INSERT INTO head_clock AS h (head, at, written_at)
        SELECT t.head, max(ats[t.member]), max(ats[t.member] * t.written)
        FROM unnest(h_members, h_heads, h_writtens) AS t(member, head, written)
        WHERE statuses[t.member] = 0 GROUP BY t.head
        ON CONFLICT ON CONSTRAINT head_clock_pkey
        DO UPDATE SET at = excluded.at, written_at = greatest(h.written_at, excluded.written_at);
        IF 2 = ANY (h_writtens) THEN  -- heads that nobody reads or writes any more
            DELETE FROM head_clock h USING unnest(h_members, h_heads, h_writtens) AS t(member, head, written)
            WHERE h.head = t.head AND t.written = 2 AND statuses[t.member] = 0;
        END IF;
    END IF;
    WITH told AS (UPDATE lane l SET seq = lane_seq, outcomes = commit_group.outcomes WHERE l.id = lane_id)
    UPDATE clock SET at = clock_at;
END $$;
"""

_SMALL_SECTIONS = """
CREATE OR REPLACE FUNCTION settle(lane_id bytea, lane_seq bigint, OUT known_seq bigint, OUT known bytea)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM c.at FROM clock c FOR UPDATE;
    UPDATE lane l SET seq = lane_seq, outcomes = NULL WHERE l.id = lane_id AND l.seq < lane_seq;
    SELECT l.seq, l.outcomes INTO known_seq, known FROM lane l WHERE l.id = lane_id;
END $$;

-- Answers NULL if push_at lies above the wall clock.
CREATE OR REPLACE FUNCTION push_clock(push_at bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE clock_at bigint;
BEGIN
    SELECT c.at INTO clock_at FROM clock c FOR UPDATE;
    IF (push_at >> 10) > wall_micros() THEN
        RETURN NULL;
    END IF;
    IF push_at > clock_at THEN
        UPDATE clock SET at = push_at;
    END IF;
    RETURN greatest(clock_at, push_at);
END $$;

-- The rule that the section rests on: a statement after the lock sees what the lock waited for.
CREATE OR REPLACE FUNCTION probe_read(probe_id bytea) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM probe p WHERE p.id = probe_id AND p.part = 'lock' FOR UPDATE;
    RETURN (SELECT p.value FROM probe p WHERE p.id = probe_id AND p.part = 'value');
END $$;
"""

FUNCTIONS = _PARTS + _STRANGER + _FAILURES + _REMOVE + _COMMIT_GROUP + _SMALL_SECTIONS
