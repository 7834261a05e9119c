"""PostgreSQL answers the same: values, types and SQLSTATEs, over thousands of expressions.

Where PostgreSQL has a value and Tenure refuses with 0A000, that is a gap it admits; `GAPS` bounds
how many there are. Everything else has to be equal.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest

from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions import catalog_functions, privilege_functions
from tenure.expr.functions.function import Function, Volatility
from tenure.expr.tree.build import cast
from tenure.expr.types.casts import ASSIGNMENT, EXPLICIT, IMPLICIT, can_cast
from tests.unit.expr.oracle import (
    Answer,
    Failure,
    Operand,
    Oracle,
    Value,
    named,
    our_call,
    ours,
    sql_call,
)
from tests.unit.expr.pools import INPUTS, POOLS

SEED = 20
COMBINATIONS_MAX = 25
MANGLED = 60
CHARACTERS = "0123456789+-.:/ eEtTzZ,{}[]\"\\'abPMYDHSnul_%xjf"
NOT_SUPPORTED = Failure("0A000")
GAPS = 0.03

Question = tuple[str, Callable[[], Answer]]


def test_text_is_read_and_written_as_postgres_does(oracle: Oracle) -> None:
    operands = [
        Operand(text, kind) for pool in (POOLS, INPUTS) for kind, texts in pool.items() for text in texts
    ]
    _compare(oracle, [(each.sql, _reads(each)) for each in operands])


def test_random_numbers_are_written_as_postgres_does(oracle: Oracle) -> None:
    chance = random.Random(SEED)
    floats = [repr(chance.uniform(-1, 1) * 10.0 ** chance.randint(-44, 38)) for _ in range(600)]
    powers = [repr(2.0**each) for each in range(-140, 120)]
    operands = [Operand(text, kind) for text in floats + powers for kind in ("float4", "float8")]
    _compare(oracle, [(each.sql, _reads(each)) for each in operands])


@pytest.mark.parametrize("kind", [*{**POOLS, **INPUTS}])
def test_mangled_text_gets_the_answer_of_postgres_or_none(oracle: Oracle, kind: str) -> None:
    chance = random.Random(SEED)
    texts = POOLS.get(kind, []) + INPUTS.get(kind, [])
    operands = [Operand(_mangled(chance, texts), kind) for _ in range(MANGLED)]
    theirs = oracle.ask([each.sql for each in operands])
    mine = [ours(lambda each=each: each.built) for each in operands]  # type: ignore[misc]
    triples = zip(operands, theirs, mine, strict=True)
    assert [each for each in triples if isinstance(each[2], Value) and each[1] != each[2]] == []


def _mangled(chance: random.Random, texts: list[str]) -> str:
    letters = list(chance.choice(texts))
    for _ in range(chance.randint(1, 2)):
        at = chance.randint(0, len(letters))
        piece = chance.choice([chance.choice(CHARACTERS), *chance.choice(texts).split(" ")])
        letters[at : at + chance.randint(0, 1)] = piece
    return "".join(letters)


def test_casts_give_what_postgres_gives(oracle: Oracle) -> None:
    targets = [*POOLS, "varchar(2)", "char(2)", "numeric(4,1)", "timestamp(0)", "int8[]", "varchar(2)[]"]
    questions = [
        (f"({operand.sql})::{target}", _casts(operand, target))
        for source, texts in POOLS.items()
        for target in targets
        for operand in (Operand(text, source) for text in texts)
    ]
    _compare(oracle, questions)


def test_casts_are_made_where_postgres_makes_them(oracle: Oracle) -> None:
    contexts = {"i": IMPLICIT, "a": ASSIGNMENT, "e": EXPLICIT}
    names = {"char(5)": "bpchar"}
    catalogued = {
        (str(source), str(target)): contexts[str(context)]
        for source, target, context in oracle.rows(
            "SELECT s.typname, t.typname, castcontext FROM pg_cast"
            " JOIN pg_type s ON s.oid = castsource JOIN pg_type t ON t.oid = casttarget"
        )
    }
    scalars = [each for each in POOLS if "[]" not in each]
    differing = []
    for source, target in product(scalars, scalars):
        known = catalogued.get((names.get(source, source), names.get(target, target)))
        if known is not None and source != target:
            ranks = (IMPLICIT, ASSIGNMENT, EXPLICIT)
            allowed = [can_cast(named(source), named(target), each) for each in ranks]
            if allowed != [ranks.index(each) >= ranks.index(known) for each in ranks]:
                differing.append((source, target, known))
    assert differing == []


@pytest.mark.parametrize("family", sorted({each.arguments[0] for each in FUNCTIONS if each.arguments}))
def test_functions_give_what_postgres_gives(oracle: Oracle, family: str) -> None:
    chance = random.Random(SEED)
    questions: list[Question] = []
    for each in FUNCTIONS:
        if each.arguments[:1] == (family,) and _is_comparable(each):
            chosen = _sample(chance, _pools(each))
            questions += [(sql_call(each.name, given), _calls(each.name, given)) for given in chosen]
    _compare(oracle, questions, gaps=0.5 if family in ("interval", "date", "timestamp", "time") else GAPS)


def _sample(chance: random.Random, pools: Sequence[Sequence[Operand]]) -> Iterator[tuple[Operand, ...]]:
    """Some combinations of one from each pool; those of seven arguments are too many to list them all."""
    size = math.prod(map(len, pools))
    for number in chance.sample(range(size), min(size, COMBINATIONS_MAX)):
        chosen = []
        for pool in reversed(pools):
            number, place = divmod(number, len(pool))
            chosen.append(pool[place])
        yield tuple(reversed(chosen))


def test_numeric_arithmetic_has_the_digits_of_postgres(oracle: Oracle) -> None:
    chance = random.Random(SEED)

    def number() -> Operand:
        digits = chance.randint(1, 10 ** chance.randint(1, 25))
        return Operand(f"{chance.choice('-+')}{digits}e{-chance.randint(0, 20)}", "numeric")

    questions: list[Question] = []
    for name in ("+", "-", "*", "/", "%", "div", "="):
        pairs = [(number(), number()) for _ in range(150)]
        questions += [(sql_call(name, pair), _calls(name, pair)) for pair in pairs]
    for name in ("sqrt", "round", "ceil", "floor", "trunc", "abs", "sign"):
        singles = [(number(),) for _ in range(100)]
        questions += [(sql_call(name, one), _calls(name, one)) for one in singles]
    for name in ("ln", "exp", "log", "trim_scale", "scale", "min_scale"):
        singles = [(number(),) for _ in range(60)]
        questions += [(sql_call(name, one), _calls(name, one)) for one in singles]
    for name in ("log", "gcd", "lcm"):
        pairs = [(number(), number()) for _ in range(60)]
        questions += [(sql_call(name, pair), _calls(name, pair)) for pair in pairs]
    for exponent in ("2", "3", "-1", "-2", "0.5", "7", "-0.25", "1.5", "31"):
        pairs = [(number(), Operand(exponent, "numeric")) for _ in range(30)]
        questions += [(sql_call("power", pair), _calls("power", pair)) for pair in pairs]
    _compare(oracle, questions)


def test_intervals_and_timestamps_add_up_as_in_postgres(oracle: Oracle) -> None:
    chance = random.Random(SEED)

    def interval() -> Operand:
        months, days, seconds = chance.randint(-40, 40), chance.randint(-90, 90), chance.uniform(-2e5, 2e5)
        return Operand(f"{months} mons {days} days {seconds:.6f} secs", "interval")

    def timestamp() -> Operand:
        day = f"{chance.randint(1900, 2100)}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}"
        clock = f"{chance.randint(0, 23):02d}:{chance.randint(0, 59):02d}:{chance.uniform(0, 59):.6f}"
        return Operand(f"{day} {clock}", "timestamp")

    def factor() -> Operand:
        return Operand(repr(chance.uniform(-9, 9)), "float8")

    makers: Sequence[tuple[str, Callable[[], Operand], Callable[[], Operand]]] = [
        ("+", timestamp, interval),
        ("-", timestamp, interval),
        ("-", timestamp, timestamp),
        ("age", timestamp, timestamp),
        ("*", interval, factor),
        ("/", interval, factor),
        ("+", interval, interval),
        ("<", interval, interval),
    ]
    pairs = [(name, (left(), right())) for name, left, right in makers for _ in range(150)]
    _compare(oracle, [(sql_call(name, pair), _calls(name, pair)) for name, pair in pairs])


def test_overloads_are_chosen_as_in_postgres(oracle: Oracle) -> None:
    kinds = [*POOLS, "unknown", "int8[]"]
    operators = ("=", "<", "+", "-", "*", "/", "%", "||", "^", "->", "&")
    functions = ("abs", "round", "lower", "sqrt", "ceil", "sign", "substr", "left", "power", "mod", "replace")
    pairs: list[tuple[str, tuple[str, ...]]]
    pairs = [(name, pair) for name in operators for pair in product(kinds, kinds)]
    pairs += [(name, (kind,)) for name in functions for kind in kinds]
    pairs += [
        (name, pair) for name in functions for pair in product(kinds, ("unknown", "int4", "numeric", "text"))
    ]
    asked = [(name, tuple(Operand(None, kind) for kind in given)) for name, given in pairs]
    _compare(oracle, [(sql_call(name, given), _calls(name, given)) for name, given in asked])


def _compare(oracle: Oracle, questions: Sequence[Question], gaps: float = GAPS) -> None:
    theirs = oracle.ask([sql for sql, _ in questions])
    pairs = [(sql, answer, ask()) for (sql, ask), answer in zip(questions, theirs, strict=True)]
    differing = [each for each in pairs if each[1] != each[2]]
    admitted = [each for each in differing if each[2] == NOT_SUPPORTED]
    assert [each for each in differing if each[2] != NOT_SUPPORTED] == []
    assert len(admitted) <= gaps * len(pairs) + 1, admitted


def _reads(operand: Operand) -> Callable[[], Answer]:
    return lambda: ours(lambda: operand.built)


def _casts(operand: Operand, target: str) -> Callable[[], Answer]:
    return lambda: ours(lambda: cast(operand.built, named(target)))


def _calls(name: str, operands: Sequence[Operand]) -> Callable[[], Answer]:
    return lambda: our_call(name, operands)


def _is_comparable(each: Function) -> bool:
    """Without those that have no one answer, need an enum or a catalog, or are SQL's own syntax."""
    is_moving = (
        each.name.startswith("regexp")
        or each.volatility is Volatility.VOLATILE
        or (each.name == "age" and len(each.arguments) == 1)
    )
    return not (
        is_moving
        or '"char"' in each.arguments
        or "anyenum" in each.arguments
        or each.name in (*HERE_ONLY, *BY_PATTERN, *OF_CATALOGS, *privilege_functions.NAMES)
    )


BY_PATTERN = ("similar_to_escape", "to_char", "to_number", "to_date", "to_timestamp")
HERE_ONLY = (
    *(
        "to_regclass",
        "to_regtype",
        "to_regproc",
        "to_regprocedure",
        "to_regnamespace",
        "to_regrole",
        "format_type",
    ),
    *(f"tenure_{kind}_{what}_absent" for kind in ("json", "jsonb") for what in ("array", "object")),
    "tenure_is_json",
    "subscript",
    "array_element",
    "array_slice",
    "current_schemas",
    "pg_encoding_to_char",
    "uuid_generate_v4",
)
"""SQL's own syntax, and what depends on the server."""
OF_CATALOGS = {each.name for each in catalog_functions.functions()} - {"format_type"}
"""They ask for objects: `tests/clients/catalogs` compares them."""
STAND_INS = {
    "char": "char(5)",
    "any": "text",
    "anynonarray": "int8",
    "anyelement": "int4",
    "anyarray": "int4[]",
    "anycompatible": "int4",
    "anycompatiblearray": "int4[]",
}
UNITS = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "milliseconds",
    "microseconds",
    "week",
    "quarter",
    "decade",
    "century",
    "millennium",
    "epoch",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "us",
    "x",
]
PATTERNS = ["%", "a%", "%c", "a_c", "ab\\", "%b%", "A%", "", "\\%", "100\\%", "___", "%\\", "%ä%"]
REGEXES = ["a", "^a", "b$", "a.c", "[[:alpha:]]+", "(", "*", "\\d", "^\\s", "ä|ö", "a{2", "[b-a]", ""]
SMALL = ["0", "3", "-1", "7", "1"]


WORDS = {
    ("encode", 1): ["hex", "base64", "escape", "HEX", "x"],
    ("decode", 1): ["hex", "base64", "escape"],
    ("decode", 0): ["6162", "YWJj", "YW Jj", "YQ==", "YQ=", "zz", "a", "\\\\", "\\001\\377", "\\8", "!"],
    ("format", 0): [
        "%s",
        "%I|%L",
        "%2$s %1$s",
        "%-6s|",
        "%6s|",
        "%",
        "%x",
        "%%",
        "%0$s",
        "%1$*2$s",
        "a",
        "%s %s",
    ],
    ("convert_from", 1): ["UTF8", "utf-8", "LATIN1", "x"],
    ("convert_to", 1): ["UTF8", "LATIN1", "x"],
    ("unistr", 0): ["\\00e4b", "\\u0061", "\\+01F600", "\\\\", "\\x", "\\ud83d\\ude00", "\\d83d", "abc"],
    **{
        (name, 1): [
            "{a}",
            "{b,1}",
            "{b,-1}",
            "{0}",
            "{b,7}",
            "{x}",
            "{}",
            "{a,b}",
            "{-9}",
            "{1,0}",
            "{NULL}",
            "{b,x}",
        ]
        for name in ("jsonb_set", "jsonb_insert", "#-", "jsonb_delete_path", "#>", "#>>")
    },
    ("array_fill", 1): ["{2}", "{2,3}", "{}", "{-1}", "{NULL}", "{0}"],
}


def _takes_zone(each: Function, at: int) -> bool:
    is_last = at == len(each.arguments) - 1
    return (each.name == "timezone" and at == 0) or (
        is_last and each.name in ("date_trunc", "make_timestamptz", "date_add", "date_subtract")
    )


def _pools(each: Function) -> list[list[Operand]]:
    pools = []
    for at, family in enumerate(each.arguments):
        kind = STAND_INS.get(family, family)
        texts = POOLS[kind]
        if each.name in ("date_trunc", "extract", "date_part") and at == 0:
            texts = UNITS
        elif family == "text" and _takes_zone(each, at):
            texts = ["UTC", "Europe/Berlin", "America/New_York", "x"]
        elif each.name in ("~", "~*", "!~", "!~*") and at == 1:
            texts = REGEXES
        elif each.name.endswith(("~~", "~~*")) and at == 1:
            texts = PATTERNS
        elif family == "int4" and each.name in ("lpad", "rpad", "repeat", "left", "right", "array_fill"):
            texts = SMALL
        elif (each.name, at) in WORDS:
            texts = WORDS[each.name, at]
        pools.append([*(Operand(text, kind) for text in texts), Operand(None, kind)])
    return pools
