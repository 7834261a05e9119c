"""Regular expressions: PostgreSQL's answers, and no pattern that takes for ever."""

from collections.abc import Sequence

import pytest

from tenure.expr.patterns.regex import compile_regex
from tenure.expr.patterns.regex_syntax import RegexOptions
from tests.unit.expr.oracle import Failure, Operand, Oracle, our_call, sql_call

TEXTS = [
    "",
    "a",
    "abc",
    "foobarbaz",
    "a1b22c333",
    "Hello World",
    "x\ny\nz",
    "a.b.c",
    "ab\tcd",
    "aaa",
    "[x]",
    "äÖü",
]
PATTERNS = [
    *(
        "a",
        "^a",
        "c$",
        "^abc$",
        "b+",
        "o*",
        "[0-9]+",
        "[^a-c]",
        "(foo|bar)+",
        "(a)(b)?",
        "\\d+",
        "\\w+",
        "\\s",
    ),
    *(
        "\\S+",
        "\\W",
        ".",
        "^.$",
        "a|b|c",
        "(?:ab)+",
        "(?i)HELLO",
        "[[:alpha:]]+",
        "[[:digit:][:space:]]",
        "x\\ny",
    ),
    *(
        "\\.",
        "[.]",
        "a{2}",
        "a{2,}",
        "a{1,2}",
        "a{,2}",
        "{",
        "b??",
        "a+?",
        "(a+?)",
        "[]x]",
        "[a\\]x]",
        "\\u0061",
    ),
    *(
        "(",
        ")",
        "*a",
        "a**",
        "a{3,2}",
        "a{256}",
        "[a",
        "[z-a]",
        "\\",
        "[[:nope:]]",
        "***=a.b",
        "***:a",
        "(?x)a b c",
    ),
    *(
        "^",
        "$",
        "",
        "()",
        "(|a)",
        "\\yb",
        "\\Aa",
        "c\\Z",
        "(?n)^y$",
        "(?w)^y",
        "a(?=b)",
        "(.)\\1",
        "^*",
        "\\q",
        "o{2}",
    ),
]
FLAGS = ["", "i", "g", "gi", "n", "x", "z", "c", "s"]


def test_whether_text_matches_is_as_in_postgres(oracle: Oracle) -> None:
    signs = ("~", "~*", "!~")
    _compare(oracle, [(s, (_text(t), _text(p))) for s in signs for t in TEXTS for p in PATTERNS])


@pytest.mark.parametrize(
    "name", ["regexp_match", "regexp_count", "regexp_substr", "substring", "regexp_split_to_array"]
)
def test_what_is_matched_is_as_in_postgres(oracle: Oracle, name: str) -> None:
    _compare(oracle, [(name, (_text(t), _text(p))) for t in TEXTS for p in PATTERNS])


def test_replacing_is_as_in_postgres(oracle: Oracle) -> None:
    calls: list[tuple[str, tuple[Operand, ...]]] = []
    for text in TEXTS:
        for pattern in PATTERNS:
            calls += [("regexp_replace", (_text(text), _text(pattern), _text("<\\&>"), _text("g")))]
            calls += [("regexp_replace", (_text(text), _text(pattern), _text("\\1-\\\\")))]
    numbers = [
        (Operand(str(start), "int4"), Operand(str(n), "int4")) for start in (1, 3, 0) for n in (0, 1, 2, -1)
    ]
    calls += [("regexp_replace", (_text("abcabcabc"), _text("b."), _text("X"), *pair)) for pair in numbers]
    _compare(oracle, calls)


def test_flags_mean_what_they_mean_in_postgres(oracle: Oracle) -> None:
    calls = [
        (name, (_text("a B\nab"), _text(pattern), _text(flags)))
        for name in ("regexp_like", "regexp_match", "regexp_split_to_array")
        for pattern in ("A", "^ab", "b$", "a b", ".+")
        for flags in FLAGS
    ]
    _compare(oracle, calls)


def test_positions_are_those_of_postgres(oracle: Oracle) -> None:
    numbers = [Operand(each, "int4") for each in ("0", "1", "2")]
    text, pattern = _text("abcabc"), _text("(b)(c)")
    calls: list[tuple[str, tuple[Operand, ...]]] = [
        ("regexp_instr", (text, pattern, a, b, c)) for a in numbers for b in numbers for c in numbers
    ]
    calls += [
        ("regexp_instr", (text, pattern, numbers[1], numbers[1], c, _text("i"), d))
        for c in numbers
        for d in numbers
    ]
    calls += [
        ("regexp_substr", (text, pattern, a, b, _text("i"), c))
        for a in numbers
        for b in numbers
        for c in numbers
    ]
    calls += [("regexp_count", (text, pattern, a, _text("i"))) for a in numbers]
    _compare(oracle, calls)


def test_similar_to_is_as_in_postgres(oracle: Oracle) -> None:
    patterns = [
        "abc",
        "a%",
        "_b_",
        "(a|b)%",
        "a|abc",
        "[a-c]+",
        "a.c",
        "%(b|d)%",
        "x\\%",
        "[^a]%",
        "a{1,2}%",
        "",
        "^a",
    ]
    _compare(oracle, [("similar_to_escape", (_text(each),)) for each in patterns])
    _compare(oracle, [("similar_to_escape", (_text(each), _text("#"))) for each in [*patterns, "a#%", "#_"]])


@pytest.mark.invariant("regex-linear")
@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b$", "a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)x", "(a?){200}a{200}$"]
)
@pytest.mark.timeout(20)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert compile_regex(pattern, RegexOptions()).is_in("a" * 50_000 + "c") is False


def _text(text: str) -> Operand:
    return Operand(text, "text")


def _compare(oracle: Oracle, calls: Sequence[tuple[str, Sequence[Operand]]]) -> None:
    """Anything may be refused as not supported; what is answered is PostgreSQL's answer."""
    theirs = oracle.ask([_sql(name, given) for name, given in calls])
    mine = [our_call(name, given) for name, given in calls]
    differing = [
        (name, [each.text for each in given], their, my)
        for (name, given), their, my in zip(calls, theirs, mine, strict=True)
        if their != my and my != Failure("0A000")
    ]
    assert differing == []


def _sql(name: str, given: Sequence[Operand]) -> str:
    """By Unicode's letters, as here; the functions take the collation of their first argument."""
    if not name[0].isalpha() or name == "similar_to_escape":
        return sql_call(name, given)
    first, *rest = [each.sql for each in given]
    return f'pg_catalog."{name}"({", ".join([f"({first} COLLATE pg_c_utf8)", *rest])})'
