"""SELECTs of every shape: joins, subqueries, WITH, set operations, DISTINCT, VALUES, slices of arrays.

Walk: `run` takes statements from `Shapes` in turn with those of `queries`.
"""

from random import Random

from tests.differential.expressions import COMPARABLE, Maker, numbered
from tests.differential.queries import scope_of
from tests.differential.sides import Statement
from tests.differential.world import KEYS

SYNTAX = (
    *("({int4[]})[{int4}]", "({int4[]})[{int4}:{int4}]", "({text[]})[1]", "ARRAY(SELECT a.i4 ORDER BY 1)"),
    *("ARRAY[[1, {int4}], [3, 4]]", "extract(year FROM {date})", "extract(epoch FROM {interval})"),
    *("position({text} IN {text})", "substring({text} FROM 2)", "substring({text} FROM 1 FOR 2)"),
    *(
        "trim(BOTH 'a' FROM {text})",
        "trim({text})",
        "overlay({text} PLACING 'x' FROM 1)",
        "{timestamp} AT TIME ZONE 'UTC'",
    ),
    *("{timestamptz} AT TIME ZONE 'Europe/Berlin'", "({date}, {interval}) OVERLAPS ({date}, {interval})"),
    *(
        "{text} SIMILAR TO '%(a|b)%'",
        "{text} LIKE 'a!%' ESCAPE '!'",
        "{int4} = ALL ({int4[]})",
        "{text} < ANY ({text[]})",
    ),
    *(
        "({int4}, {text}) = ({int4}, {text})",
        "({int4}, {int8}) < ({int4}, {int8})",
        "ROW({int4}, {text}) IS NULL",
    ),
    *("{jsonb} IS JSON", "{text} IS NFC NORMALIZED", "{bool} IS NOT UNKNOWN", "{int4} IN (1, 2, NULL)"),
    *(
        "({int4}, {text}) IN ((1, 'a'), (2, 'b'))",
        "interval '1' day + {interval}",
        "date '2024-01-01' + {int4}",
    ),
    *(
        "cast({text} AS varchar(2))",
        "{int4}::text::varchar(1)",
        '{text} COLLATE "C"',
        "{mood} < 'happy'",
        "-{float8}",
    ),
    *("json_build_object('a', {int4}, 'b', {text})", "{jsonb} -> 'a' -> 'b' ->> 0", "({jsonb})['a']"),
    *("current_date = now()::date", "NOT {bool} AND {bool} OR {bool}", "coalesce(NULL, {numeric}, 1)"),
    *(
        "CASE WHEN {bool} THEN 1 WHEN {bool} THEN 2.5 ELSE {int8} END",
        "greatest({int4}, {numeric}, {float8})",
    ),
)
COPY_OPTIONS = (
    *("", "", " WITH (FORMAT csv)", " WITH (FORMAT csv, HEADER)", " WITH (FORMAT csv, FORCE_QUOTE *)"),
    *(" WITH (DELIMITER '|')", " WITH (NULL 'none')", " CSV DELIMITER ';' NULL 'NULL'", " (HEADER)"),
    *(" WITH (FORMAT csv, QUOTE '$', ESCAPE '~')", " WITH (FORMAT nope)", " WITH (DELIMITER 'xx')"),
)


class Shapes:
    def __init__(self, random: Random) -> None:
        self._random = random

    def syntax(self) -> Statement:
        """What SQL writes in its own way, rather than as a call."""
        maker = Maker(self._random, scope_of("a"))
        made = maker.filled(self._random.choice(SYNTAX), 1)
        return self._statement(
            f"SELECT a.id, {made} AS x FROM a WHERE a.id < 12 ORDER BY a.id", maker, is_ordered=True
        )

    def join(self) -> Statement:
        random = self._random
        maker = Maker(random, [*scope_of("a", "x"), *scope_of("b", "y")])
        kind = random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","))
        on = random.choice(
            [
                "x.id = y.a_id",
                "x.i4 = y.i4",
                "x.t = y.v",
                "x.n = y.n2",
                "x.i8 = y.f8",
                "x.c = y.c AND x.b = y.b",
            ]
        )
        source = f"a AS x {kind} b AS y"
        where = f" WHERE {maker.condition()}" if random.random() < 0.6 else ""
        if kind not in ("CROSS JOIN", ","):
            extra = f" AND {maker.condition(0)}" if random.random() < 0.2 and kind != "FULL JOIN" else ""
            source += f" ON {on}{extra}"
        else:
            where = f" WHERE {on}" + where.replace(" WHERE", " AND")
        if random.random() < 0.25:
            source += f" {random.choice(('JOIN', 'LEFT JOIN'))} p ON p.x = x.i4"
            maker.scope += scope_of("p")
        made = ", ".join(maker.of(maker.some_type(), 1) + f" AS o{at}" for at in range(random.randint(1, 3)))
        return self._statement(f"SELECT x.id, y.id, {made} FROM {source}{where}", maker)

    def using(self) -> Statement:
        random = self._random
        kind = random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        columns = random.choice(("i4", "t", "id", "i4, b", "d", "e", "u", "n", "c", "iv", "f8", "ai", "jb"))
        maker = Maker(random, [(each.strip(), "int4") for each in columns.split(",") if each.strip() == "i4"])
        return self._statement(
            f"SELECT {columns}, x.id, y.id FROM a x {kind} b y USING ({columns}) WHERE {maker.condition(1)}",
            maker,
        )

    def subquery(self) -> Statement:
        random = self._random
        maker = Maker(random, scope_of("a"))
        inner = Maker(random, [*scope_of("b", "s"), *scope_of("a")])
        inner.parameters = maker.parameters
        kind = maker.some_type(COMPARABLE)
        value, within = maker.of(kind, 1), f"SELECT {inner.of(kind, 1)} FROM b s WHERE {inner.condition(1)}"
        other = maker.some_type(COMPARABLE)
        row = f"({value}, {maker.of(other, 1)})"
        rows = f"SELECT {inner.of(kind, 1)}, {inner.of(other, 1)} FROM b s WHERE {inner.condition(1)}"
        sign = random.choice(("=", "<>", "<", "<=", ">", ">="))
        form = random.randrange(11)
        test = {
            0: f"EXISTS ({within})",
            1: f"{value} IN ({within})",
            2: f"{value} NOT IN ({within})",
            3: f"{value} {random.choice(('=', '<', '>='))} ANY ({within})",
            4: f"{value} {random.choice(('<>', '>', '<='))} ALL ({within})",
            5: f"(SELECT count(*) FROM b s WHERE {inner.condition(1)}) > 2",
            6: f"(SELECT max({inner.of('int4', 1)}) FROM b s WHERE s.a_id = a.id) IS NOT NULL",
            7: f"EXISTS (SELECT FROM b s WHERE s.a_id = a.id AND {inner.condition(1)})",
            8: f"{row} {random.choice(('IN', 'NOT IN'))} ({rows})",
            9: f"{row} {sign} {random.choice(('ANY', 'ALL'))} ({rows})",
            10: f"{row} {sign} {random.choice(('ANY', 'ALL'))} ({rows} AND s.a_id = a.id)",
        }[form]
        if random.random() < 0.35:
            value = random.choice(("count(*)", "min(s.t)", "sum(s.i4)", "bool_or(s.b)"))
            made = f"(SELECT {value} FROM b s WHERE s.a_id = a.id)"
            return self._statement(
                f"SELECT id, {made} AS x, {test} AS y FROM a ORDER BY id", maker, is_ordered=True
            )
        return self._statement(f"SELECT id FROM a WHERE {test}", maker)

    def derived(self) -> Statement:
        random = self._random
        maker = Maker(random, scope_of("a"))
        kinds = [maker.some_type(COMPARABLE) for _ in range(2)]
        columns = f"{maker.of(kinds[0])} AS c0, {maker.of(kinds[1])} AS c1"
        inner = f"SELECT id, {columns} FROM a WHERE {maker.condition(1)}"
        outer = Maker(random, [("q.id", "int4"), ("q.c0", kinds[0]), ("q.c1", kinds[1])])
        outer.parameters = maker.parameters
        limited = f"{inner} ORDER BY id LIMIT {random.randint(0, 20)} OFFSET {random.randint(0, 5)}"
        source = random.choice([inner, limited])
        materialized = random.choice(("AS", "AS MATERIALIZED", "AS NOT MATERIALIZED"))
        prefix, place = random.choice([("", f"({source}) AS q"), (f"WITH q {materialized} ({source}) ", "q")])
        if random.random() < 0.4:
            key = random.choice(("q.c0", "q.c1"))
            text = f"{prefix}SELECT {key}, count(*), min(q.id) FROM {place} GROUP BY {key}"
        else:
            made = f"q.id, {outer.of(kinds[0], 1)} AS z, q.c1"
            text = f"{prefix}SELECT {made} FROM {place} WHERE {outer.condition(1)}"
        return self._statement(text, maker)

    def combined(self) -> Statement:
        random = self._random
        maker = Maker(random, scope_of("a"))
        other = Maker(random, scope_of("b"))
        other.parameters = maker.parameters
        kinds = [maker.some_type(COMPARABLE) for _ in range(random.randint(1, 2))]
        theirs = [
            random.choice(("int8", "numeric", "int4")) if each in ("int4", "int8", "int2") else each
            for each in kinds
        ]

        def part(which: Maker, table: str, types: list[str]) -> str:
            made = ", ".join(f"{which.of(each, 1)} AS k{at}" for at, each in enumerate(types))
            return f"SELECT {made} FROM {table} WHERE {which.condition(1)}"

        sign = random.choice(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
        text = f"{part(maker, 'a', kinds)} {sign} {part(other, 'b', theirs)}"
        if random.random() < 0.25:
            text = f"({text}) {random.choice(('UNION', 'EXCEPT'))} {part(maker, 'a', kinds)}"
        return self._statement(text, maker)

    def distinct(self) -> Statement:
        random = self._random
        maker = Maker(random, scope_of("a"))
        key = maker.some_type(COMPARABLE)
        column = maker.of(key, 1)
        if random.random() < 0.5:
            return self._statement(f"SELECT DISTINCT {column} AS k FROM a", maker)
        way = random.choice(("", " DESC"))
        text = f"SELECT DISTINCT ON ({column}) {column} AS k, id FROM a ORDER BY {column}{way}, id DESC"
        if "§" in text:
            text, maker.parameters = "SELECT DISTINCT ON (t) t, id FROM a ORDER BY t, id", []
        return self._statement(text, maker, is_ordered=True)

    def ordered(self) -> Statement:
        random = self._random
        table = random.choice(("a", "b", "p", "w"))
        maker = Maker(random, scope_of(table), is_nasty=False)
        ways = ("", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        keys = [
            maker.of(maker.some_type(COMPARABLE), 1) + random.choice(ways)
            for _ in range(random.randint(1, 2))
        ]
        keys += [f"{table}.{each}" for each in KEYS[table]]
        bounds = (
            ""
            if random.random() < 0.4
            else random.choice(
                (" LIMIT 3", " LIMIT 0", " LIMIT NULL OFFSET 2", " LIMIT ALL", " LIMIT 10 OFFSET 2")
            )
        )
        ties = " FETCH FIRST 3 ROWS WITH TIES" if not bounds and random.random() < 0.2 else bounds
        where = f" WHERE {maker.condition(1)}" if random.random() < 0.4 else ""
        columns = random.choice(("*", ", ".join(f"{table}.{each}" for each in KEYS[table])))
        return self._statement(
            f"SELECT {columns} FROM {table}{where} ORDER BY {', '.join(keys)}{ties}", maker, is_ordered=True
        )

    def recursive(self) -> Statement:
        random = self._random
        maker = Maker(random, [("r.n", "int4")])
        union = random.choice(("UNION", "UNION ALL"))
        step = random.choice(("n + 1", "n * 2 + 1", "(n + 3) % 40"))
        if union == "UNION ALL":
            step = step.replace("(n + 3) % 40", "n + 3")
        text = f"WITH RECURSIVE r(n) AS (SELECT 1 {union} SELECT {step} FROM r WHERE n < 30)"
        if random.random() < 0.5:
            text += f" SELECT n, {maker.of('text', 1)} AS x FROM r WHERE {maker.condition(1)}"
        else:
            text += " SELECT r.n, a.id FROM r JOIN a ON a.i4 = r.n"
        return self._statement(text, maker)

    def values(self) -> Statement:
        random = self._random
        maker = Maker(random, [], is_nasty=True)
        kinds = [random.choice(COMPARABLE) for _ in range(random.randint(1, 3))]
        rows = ", ".join(
            "("
            + ", ".join(maker.literal(each) if at == 0 or random.random() < 0.8 else "NULL" for each in kinds)
            + ")"
            for at in range(random.randint(1, 4))
        )
        if random.random() < 0.5:
            return self._statement(f"VALUES {rows} ORDER BY 1", maker, is_ordered=False)
        return self._statement(f"SELECT * FROM (VALUES {rows}) AS v WHERE v.column1 IS NOT NULL", maker)

    def lateral(self) -> Statement:
        random = self._random
        maker = Maker(random, [*scope_of("b", "s"), *scope_of("a")])
        source = "FROM b s WHERE s.a_id = a.id ORDER BY s.id LIMIT 2"
        inner = f"SELECT s.id AS sid, {maker.of('text', 1)} AS x {source}"
        form = random.choice(
            (", LATERAL ({}) q", " LEFT JOIN LATERAL ({}) q ON true", " CROSS JOIN LATERAL ({}) q")
        )
        return self._statement(f"SELECT a.id, q.* FROM a{form.format(inner)}", maker)

    def point(self) -> Statement:
        """By keys and indexes."""
        random = self._random
        table, condition = random.choice(
            [
                ("a", "id = {int4}"),
                ("a", "id IN ({int4}, {int4}, 5)"),
                ("a", "id BETWEEN {int4} AND 9"),
                ("a", "i4 = {int4}"),
                ("a", "i4 > {int4} AND i4 <= {int8}"),
                ("a", "t = {text} AND i8 > {int8}"),
                ("a", "t = {varchar(10)}"),
                ("a", "i4 > 0 AND n = {numeric}"),
                ("b", "a_id = {int4}"),
                ("b", "e = {mood} AND d >= {date}"),
                ("b", "id = {float8}"),
                ("p", "k = {text}"),
                ("p", "k = 'k1' AND m >= {int2}"),
                ("p", "(k, m) > ('k1', {int4})"),
                ("p", "x = {numeric}"),
                ("p", "x IS NULL AND k > {text}"),
            ]
        )
        maker = Maker(random, [])
        made = maker.filled(condition, 1)
        rest = f" AND {Maker(random, scope_of(table)).condition(0)}" if random.random() < 0.2 else ""
        if "§" in rest:
            rest = ""
        order = " ORDER BY " + ", ".join(KEYS[table])
        return self._statement(f"SELECT * FROM {table} WHERE {made}{rest}{order}", maker, is_ordered=True)

    def locked(self) -> Statement:
        """FOR UPDATE and its like; nobody else holds anything, so all that counts is what is refused."""
        random = self._random
        maker = Maker(random, [*scope_of("a", "x"), *scope_of("b", "y")])
        strength = random.choice(("UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE"))
        which = random.choice(("", "", " OF x", " OF y", " OF nope"))
        wait = random.choice(("", "", " NOWAIT", " SKIP LOCKED"))
        source = random.choice(
            ("a x JOIN b y ON x.id = y.a_id", "a x LEFT JOIN b y ON x.id = y.a_id", "a x, b y")
        )
        tail = random.choice(("", "", "", "", " LIMIT 3", " GROUP BY x.id, y.id"))
        distinct = "DISTINCT " if random.random() < 0.1 else ""
        text = f"SELECT {distinct}x.id, y.id FROM {source} WHERE {maker.condition(1)} AND x.id < 9{tail}"
        if "LIMIT" in tail:
            text = text.replace(tail, f" ORDER BY 1, 2{tail}")
        return self._statement(f"{text} FOR {strength}{which}{wait}", maker)

    def copied(self) -> Statement:
        """COPY ... TO STDOUT."""
        random = self._random
        table = random.choice(("a", "b", "w", "p"))
        keys = ", ".join(KEYS[table])
        options = random.choice(COPY_OPTIONS)
        what = random.choice((f"(SELECT * FROM {table} ORDER BY {keys})", f"{table} ({keys})", table))
        return Statement(f"COPY {what} TO STDOUT{options}", kind="copy")

    def _statement(self, text: str, maker: Maker, *, is_ordered: bool = False) -> Statement:
        text, given = numbered(text, maker.parameters)
        return Statement(
            text,
            given,
            is_ordered=is_ordered,
            has_close_floats=True,
            has_one_error=False,
            is_binary=self._random.random() < 0.1,
        )
