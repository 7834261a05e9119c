"""SELECTs of one idea each: a call over nasty values, a cast, an aggregate, a window, rows of a function.

Walk: `run` takes statements from `Queries` in turn with those of `shapes`, `writes` and `mistakes`.
"""

import re
from random import Random

from tenure.expr.aggregates.window_functions import WINDOW_FUNCTIONS
from tenure.expr.set_function_table import SET_FUNCTIONS
from tests.differential.calls import Callable, Deck, aggregates, arguments, asked_functions, call_text
from tests.differential.expressions import COMPARABLE, Maker, Scope, numbered
from tests.differential.sides import Statement
from tests.differential.values import INEXACT, NASTY, TYPES
from tests.differential.world import READ_TABLES

FRAMES = (
    *("", "", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
    *("ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"),
    *("RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE CURRENT ROW"),
    *(
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
        "GROUPS 1 PRECEDING EXCLUDE TIES",
    ),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
)
COLLECTING = (
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
    "any_value",
)
"""Their results depend on the order of the rows, so they are given one."""


def scope_of(table: str, alias: str | None = None) -> Scope:
    return [(f"{alias or table}.{name}", kind) for name, kind in READ_TABLES[table].items()]


class Queries:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._functions = Deck(random, asked_functions())
        self._aggregates = Deck(random, aggregates())
        self._windows = Deck(random, WINDOW_FUNCTIONS)
        self._sets = Deck(random, [each for each in SET_FUNCTIONS if not each.name.startswith(("_", "pg_"))])
        kinds = sorted({*NASTY, *TYPES})
        pairs = [(source, target) for source in kinds for target in kinds]
        random.shuffle(pairs)
        self._pairs = pairs * 40

    def call(self) -> Statement:
        """One function, of constants or of the columns of `w`."""
        random, function = self._random, self._functions.next()
        is_constant = random.random() < 0.5
        maker = Maker(random, [] if is_constant else scope_of("w"), is_nasty=True)
        text = call_text(function.name, arguments(maker, function))
        if is_constant:
            return self._statement(f"SELECT {text}", maker, is_ordered=True)
        limit = random.randint(1, 24)
        if random.random() < 0.6:
            where = f"w.id <= {limit}" if random.random() < 0.3 else f"w.id = {limit}"
            return self._statement(
                f"SELECT w.id, {text} FROM w WHERE {where} ORDER BY w.id", maker, is_ordered=True
            )
        return self._statement(f"SELECT {text} AS x, w.id FROM w ORDER BY 2", maker, is_ordered=True)

    def nested(self) -> Statement:
        """A call of calls, over one tame row each: types pass from one to the next."""
        random = self._random
        maker = Maker(random, scope_of("a"))
        made = ", ".join(f"{maker.of(maker.some_type(), 3)} AS x{at}" for at in range(random.randint(1, 3)))
        where = f" WHERE {maker.condition()}" if random.random() < 0.5 else ""
        return self._statement(
            f"SELECT id, {made} FROM a{where} ORDER BY id", maker, is_ordered=True, one_error=False
        )

    def cast(self) -> Statement:
        random, (source, target) = self._random, self._pairs.pop()
        if random.random() < 0.3 and source in TYPES:
            maker = Maker(random, scope_of("w"), is_nasty=True)
            text = (
                f"SELECT id, ({maker.leaf(source)})::{target} AS x FROM w WHERE id = {random.randint(1, 24)}"
            )
            return self._statement(text, maker, is_ordered=True)
        maker = Maker(random, [], is_nasty=True)
        given = maker.literal(source) if random.random() < 0.8 else maker.parameter(source)
        form = random.choice([f"CAST({given} AS {target})", f"({given})::{target}"])
        return self._statement(f"SELECT {form} AS x", maker, is_ordered=True)

    def aggregate(self) -> Statement:
        random = self._random
        table = random.choice(("a", "a", "a", "w", "b"))
        maker = Maker(random, scope_of(table), is_nasty=table == "w")
        made = [self._aggregated(maker, self._aggregates.next(), table) for _ in range(random.randint(1, 2))]
        where = f" WHERE {maker.condition(1)}" if random.random() < 0.3 else ""
        if random.random() < 0.35:
            text = f"SELECT {', '.join(made)} FROM {table}{where}"
            return self._statement(text, maker, close=True, one_error=False)
        among = tuple(each for each in COMPARABLE if table != "w" or each not in INEXACT)
        keys = [maker.leaf(maker.some_type(among)) for _ in range(random.randint(1, 2))]
        keys = [each for each in keys if "." in each and "§" not in each and "'" not in each] or [
            f"{table}.b"
        ]
        group = self._grouping(keys)
        having = (
            f" HAVING count(*) {random.choice(('>', '<', '='))} {random.randint(1, 4)}"
            if random.random() < 0.2
            else ""
        )
        text = f"SELECT {', '.join([*keys, *made])} FROM {table}{where} GROUP BY {group}{having}"
        return self._statement(text, maker, close=True, one_error=False)

    def _grouping(self, keys: list[str]) -> str:
        plain = ", ".join(keys)
        return self._random.choice(
            [plain, plain, plain, f"ROLLUP ({plain})", f"CUBE ({plain})", f"GROUPING SETS (({plain}), ())"]
        )

    def _aggregated(self, maker: Maker, aggregate: Callable, table: str) -> str:
        random, name = self._random, aggregate.name
        given = arguments(maker, aggregate, are_strange=0.05)
        is_ordered_set = getattr(aggregate, "is_ordered_set", False)
        if is_ordered_set:
            direct = getattr(aggregate, "direct_count", 0)
            within = ", ".join(given[direct:])
            return f"{name}({', '.join(given[:direct])}) WITHIN GROUP (ORDER BY {within})"
        if not given:
            return f"{name}(*){self._filter(maker)}"
        distinct = (
            "DISTINCT "
            if random.random() < 0.15 and len(given) == 1 and not name.startswith(COLLECTING)
            else ""
        )
        order = f" ORDER BY {table}.id" if name.startswith(COLLECTING) else ""
        return f"{name}({distinct}{', '.join(given)}{order}){self._filter(maker)}"

    def _filter(self, maker: Maker) -> str:
        return f" FILTER (WHERE {maker.condition(0)})" if self._random.random() < 0.15 else ""

    def window(self) -> Statement:
        random = self._random
        maker = Maker(random, scope_of("a"))
        if random.random() < 0.6:
            function = self._windows.next()
            text = call_text(function.name, arguments(maker, function, are_strange=0.03))
        else:
            aggregate = self._aggregates.next()
            while getattr(aggregate, "is_ordered_set", False):
                aggregate = self._aggregates.next()
            given = arguments(maker, aggregate, are_strange=0.03)
            text = f"{aggregate.name}({', '.join(given) or '*'}){self._filter(maker)}"
        partition = (
            f"PARTITION BY {maker.leaf(maker.some_type(COMPARABLE))} " if random.random() < 0.5 else ""
        )
        key = maker.leaf(maker.some_type(COMPARABLE))
        way = random.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
        frame = random.choice(FRAMES)
        # GROUPS and RANGE need an order of peers; the id makes the others determined.
        order = f"ORDER BY {key}{way}, a.id"
        if random.random() < 0.15:
            order, frame = f"ORDER BY a.i4{way}, a.id", frame
        if random.random() < 0.12:
            order = f"ORDER BY a.id{random.choice(('', ' DESC'))}"
            frame = "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING"
        text = f"SELECT a.id, {text} OVER ({partition}{order} {frame}) FROM a ORDER BY a.id"
        return self._statement(text, maker, is_ordered=True, close=True, one_error=False)

    def rows(self) -> Statement:
        """A function that gives rows, in FROM or as a column."""
        random, function = self._random, self._sets.next()
        is_constant = random.random() < 0.7
        maker = Maker(random, [] if is_constant else scope_of("a"), is_nasty=is_constant)
        text = call_text(function.name, arguments(maker, function, are_strange=0.05))
        if is_constant:
            ordinality = random.choice(("", "", " WITH ORDINALITY"))
            form = random.choice([f"SELECT * FROM {text}{ordinality} AS f", f"SELECT {text}"])
            return self._statement(f"{form} LIMIT 50", maker, is_ordered=True)
        way = random.choice((", LATERAL", " LEFT JOIN LATERAL", " CROSS JOIN"))
        form = f"SELECT a.id, f.* FROM a{way} {text} AS f"
        form += " ON true" if "LEFT" in form else ""
        return self._statement(f"{form} WHERE a.id < 9", maker, one_error=False)

    def _statement(
        self,
        text: str,
        maker: Maker,
        *,
        is_ordered: bool = False,
        close: bool = False,
        one_error: bool = True,
    ) -> Statement:
        # Of equal numbers that look different, either may come: they are told by their texts.
        is_binary = self._random.random() < 0.15 and not re.search("percentile|mode", text)
        text, given = numbered(text, maker.parameters)
        return Statement(
            text,
            given,
            is_ordered=is_ordered,
            has_close_floats=close,
            has_one_error=one_error,
            is_binary=is_binary,
        )
