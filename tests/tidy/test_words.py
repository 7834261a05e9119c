"""Words: the glossary's and no others for the same ideas; names that say what a thing is; plain prose."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.source import ROOT, Module, nodes, product_modules

OTHER_WORDS = {
    *("ts", "watermark", "pts", "horizon", "vacuum", "backend", "warehouse", "rangefeed"),
    *("keepalive", "daemon", "shutdown", "db"),
}
"""Of the glossary's last column: those that have no other meaning in this code."""

OTHER_WORDS_ALLOWED = {
    "pgwire/messages.py: backend_key",  # PostgreSQL's protocol calls the message so
    "sql/statements/session/utility.py: plan_vacuum",  # the statement VACUUM
}

UNIX_EPOCH = ("expr/", "pgwire/values/", "pipeline/reading/", "table/")
"""Where an epoch is 1970 or 2000; elsewhere it is that of a node session."""

NO_NAMES = {
    *("made", "given", "known", "held", "taken", "asked", "based", "seen"),
    *("own", "parts", "facts", "uses", "surroundings"),
}
"""Participles and pronouns say nothing of a thing."""

RIDDLE = re.compile(r"\b(?:who|what|which)(?:so)?ever\b|\bwhomever\b", re.IGNORECASE)

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def test_the_glossary_warns_of_the_other_words() -> None:
    rows = [
        line.split("|") for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if "|" in line
    ]
    warned = {word.strip() for row in rows if len(row) == 5 for word in row[3].split(",")}
    assert warned >= OTHER_WORDS


def test_names_use_the_glossary_s_words() -> None:
    found = {
        f"{module.path}: {name}"
        for module in product_modules()
        for name in defined_names(module)
        if OTHER_WORDS & {word.lower() for word in WORD.findall(name)}
    }
    assert found - OTHER_WORDS_ALLOWED == set(), "use the word of docs/glossary.md"


def test_an_epoch_is_that_of_a_node_session() -> None:
    found = {
        f"{module.path}: {name}"
        for module in product_modules()
        if not module.path.startswith(UNIX_EPOCH)
        for name in defined_names(module)
        if "epoch" in name.lower() and not name.endswith("epoch_at")
    }
    assert found == set(), "a timestamp is no epoch; the epoch of a node session is called epoch_at"


def test_modules_and_classes_are_nouns() -> None:
    found = {
        name
        for module in product_modules()
        for name, word in [
            (module.path, module.path.rpartition("/")[2].removesuffix(".py")),
            *((f"{module.path}: {each}", each) for each in defined_classes(module)),
        ]
        if word.strip("_").lower() in NO_NAMES
    }
    assert found == set(), "name the module or class by what it is, as a noun"


def test_prose_says_who_does_what() -> None:
    lines = [
        f"{module.path}:{number}"
        for module in product_modules()
        for number, line in enumerate(module.text.splitlines(), 1)
        for _ in RIDDLE.findall(line)
    ]
    assert lines == [], "say who does what, without whoever, whatever and whichever"


def defined_names(module: Module) -> Iterator[str]:
    """The names that a module gives: to classes, functions, parameters, variables and attributes."""
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def defined_classes(module: Module) -> Iterator[str]:
    return (node.name for node in nodes(module) if isinstance(node, ast.ClassDef))
