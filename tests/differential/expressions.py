"""Typed expressions over the columns in scope: literals, parameters, operators, CASE and its like.

    Maker(random, scope).of("int4")      an expression of that type
    Maker(random, scope).condition()     one that may stand in WHERE

A scope is what columns there are, as (SQL, type). Expressions here seldom fail; `calls` makes those that do.

Walk: `queries`, `shapes` and `writes` make all their expressions with a Maker.
"""

import re
from random import Random

from tests.differential.values import ENUM, NASTY, TAME, TYPES, UNORDERED, pick, quoted, typed

Scope = list[tuple[str, str]]

NUMBERS = ("int2", "int4", "int8", "float4", "float8", "numeric", "numeric(10,2)")
STRINGS = ("text", "varchar(10)", "char(5)")
COMPARABLE = tuple(each for each in TYPES if each not in UNORDERED)
SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")

_CASTS = {
    "int2": ("int4", "bool", "text"),
    "int4": ("int2", "int8", "bool", "numeric"),
    "int8": ("int4", "int2", "numeric"),
    "float4": ("int4", "numeric"),
    "float8": ("int4", "int8", "float4", "numeric"),
    "numeric": ("int4", "int8", "numeric(10,2)"),
    "numeric(10,2)": ("int2", "numeric"),
    "text": (
        "int4",
        "bool",
        "date",
        "numeric",
        "uuid",
        "interval",
        ENUM,
        "jsonb",
        "int4[]",
        "char(5)",
        "bytea",
    ),
    "varchar(10)": ("int2", "text", "char(5)"),
    "char(5)": ("text", "bool"),
    "date": ("timestamp", "timestamptz"),
    "timestamp": ("date", "timestamptz"),
    "timestamptz": ("date", "timestamp"),
    "time": ("timestamp", "interval"),
    "interval": ("time",),
    "json": ("jsonb",),
    "jsonb": ("json",),
    "text[]": ("int4[]", f"{ENUM}[]"),
    "bool": ("int4",),
}
_MAKING = {
    "int2": ["({int2} / 2::int2)", "(- {int2})"],
    "int4": [
        "({int4} + {int2})",
        "({int4} * 2)",
        "length({text})",
        "abs({int4})",
        "({date} - {date})",
        "cardinality({int4[]})",
    ],
    "int8": ["({int8} + {int4})", "({int8} % 7)", "(- {int8})"],
    "float8": ["({float8} * 0.5)", "({float8} + {float4})", "({float8} - {int4})"],
    "float4": ["(- {float4})", "({float4} + {float4})"],
    "numeric": [
        "({numeric} + {int4})",
        "({numeric} * {numeric(10,2)})",
        "round({numeric}, 1)",
        "({numeric} / 4)",
    ],
    "text": [
        "({text} || {text})",
        "upper({text})",
        "substr({text}, 1, 2)",
        "({int4} || {text})",
        "({jsonb} ->> 'a')",
    ],
    "bool": [
        "({int4} > {int8})",
        "({text} LIKE 'a%')",
        "({jsonb} ? 'a')",
        "({int4} = ANY ({int4[]}))",
        "(NOT {bool})",
    ],
    "date": ["({date} + 1)", "({timestamp})::date"],
    "timestamp": ["({timestamp} + {interval})", "({date} + {time})", "date_trunc('month', {timestamp})"],
    "timestamptz": ["({timestamptz} - {interval})", "date_trunc('day', {timestamptz})"],
    "interval": ["({interval} * 2)", "({timestamp} - {timestamp})", "({interval} + {interval})"],
    "jsonb": ["to_jsonb({int4})", "({jsonb} -> 'a')", "jsonb_build_object('k', {text})"],
    "int4[]": ["array_append({int4[]}, {int4})", "ARRAY[{int4}, {int2}]", "({int4[]} || {int4[]})"],
    "text[]": ["string_to_array({text}, 'a')", "ARRAY[{text}]"],
    "bytea": ["({bytea} || {bytea})", "decode('00ff', 'hex')"],
}


_PARAMETER = re.compile(r"§(\d+)§")


def numbered(text: str, parameters: list[str | None]) -> tuple[str, tuple[str | None, ...]]:
    """Writes $1, $2 ... for the parameters that the text has; returns it, and their values."""
    used: list[int] = []

    def renumber(found: re.Match[str]) -> str:
        number = int(found[1])
        if number not in used:
            used.append(number)
        return f"${used.index(number) + 1}"

    changed = _PARAMETER.sub(renumber, text)
    return changed, tuple(parameters[each - 1] for each in used)


class Maker:
    def __init__(self, random: Random, scope: Scope, *, is_nasty: bool = False) -> None:
        self.random = random
        self.scope = scope
        self.pools = NASTY if is_nasty else {**NASTY, **TAME}
        self.parameters: list[str | None] = []

    def of(self, kind: str, depth: int = 2) -> str:
        """An expression of the type; a modifier may be missing."""
        choice = self.random.random()
        if depth <= 0 or choice < 0.35:
            return self.leaf(kind)
        if choice < 0.55 and kind in _MAKING:
            return self.filled(self.random.choice(_MAKING[kind]), depth)
        if choice < 0.62 and kind in _CASTS and depth < 2:
            source = self.random.choice(_CASTS[kind])
            return f"({self.of(source, depth - 1)})::{kind}"
        if choice < 0.72:
            return self._chosen(kind, depth)
        return self.leaf(kind)

    def leaf(self, kind: str) -> str:
        columns = [name for name, each in self.scope if each == kind]
        choice = self.random.random()
        if columns and choice < 0.7:
            return self.random.choice(columns)
        if choice < 0.9:
            return self.literal(kind)
        return self.parameter(kind)

    def literal(self, kind: str) -> str:
        text = pick(self.random, self.pools[kind])
        if (
            kind in ("int4", "numeric")
            and text is not None
            and self.random.random() < 0.5
            and text.lstrip("-").replace(".", "").isdigit()
        ):
            return f"({text})"
        return typed(text, kind)

    def parameter(self, kind: str) -> str:
        self.parameters.append(pick(self.random, self.pools[kind]))
        mark = f"§{len(self.parameters)}§"
        return mark if self.random.random() < 0.3 else f"{mark}::{kind}"

    def filled(self, template: str, depth: int) -> str:
        parts = template.split("{")
        made = parts[0]
        for part in parts[1:]:
            kind, _, rest = part.partition("}")
            if kind in self.pools:
                made += self.of(kind, depth - 1) + rest
            else:
                made += "{" + part
        return made

    def _chosen(self, kind: str, depth: int) -> str:
        first, second = self.of(kind, depth - 1), self.of(kind, depth - 1)
        if kind in UNORDERED:
            return f"coalesce({first}, {second})"
        form = self.random.randrange(6)
        if form == 0:
            return f"coalesce({first}, {second})"
        if form == 1:
            return f"CASE WHEN {self.condition(depth - 1)} THEN {first} ELSE {second} END"
        if form == 2:
            return f"nullif({first}, {second})"
        if form == 3:
            return f"greatest({first}, {second})"
        if form == 4:
            return f"least({first}, {second})"
        return f"CASE {self.leaf('int4')} WHEN 1 THEN {first} WHEN 2 THEN {second} END"

    def condition(self, depth: int = 2) -> str:
        choice = self.random.random()
        if depth > 0 and choice < 0.25:
            sign = self.random.choice(("AND", "OR"))
            return f"({self.condition(depth - 1)} {sign} {self.condition(depth - 1)})"
        if depth > 0 and choice < 0.3:
            return f"(NOT {self.condition(depth - 1)})"
        return f"({self._test(depth)})"

    def _test(self, depth: int) -> str:
        kind = self.some_type(COMPARABLE)
        value = self.of(kind, depth - 1)
        match self.random.randrange(9):
            case 0:
                return f"{value} IS {self.random.choice(('', 'NOT '))}NULL"
            case 1:
                several = ", ".join(self.of(kind, 0) for _ in range(self.random.randint(1, 3)))
                return f"{value} {self.random.choice(('', 'NOT '))}IN ({several})"
            case 2:
                symmetric = self.random.choice(("", "SYMMETRIC "))
                return f"{value} BETWEEN {symmetric}{self.of(kind, 0)} AND {self.of(kind, 0)}"
            case 3:
                pattern = quoted(self.random.choice(["a%", "%b%", "_", "%", "A_"]))
                like = self.random.choice(("LIKE", "NOT LIKE", "ILIKE"))
                return f"{self.of(self.random.choice(STRINGS), depth - 1)} {like} {pattern}"
            case 4:
                return (
                    f"{self.of('bool', 1)} IS {self.random.choice(('TRUE', 'NOT TRUE', 'FALSE', 'UNKNOWN'))}"
                )
            case 5 if kind in NUMBERS:
                other = self.random.choice(NUMBERS)
                return f"{value} {self.random.choice(SIGNS)} {self.of(other, 0)}"
            case _:
                untyped = self.random.random() < 0.2
                right = quoted(self.random.choice(self.pools[kind])) if untyped else self.of(kind, depth - 1)
                return f"{value} {self.random.choice(SIGNS)} {right}"

    def some_type(self, among: tuple[str, ...] = TYPES) -> str:
        """Rather one that there are columns of."""
        there = [kind for _, kind in self.scope if kind in among]
        return (
            self.random.choice(there) if there and self.random.random() < 0.8 else self.random.choice(among)
        )
