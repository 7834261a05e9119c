"""One tree of errors: every class stands in `base.errors`, has a SQLSTATE, and is drawn at its head."""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator

import tenure.base.errors
from tenure.base.errors import TenureError
from tests.tidy.source import nodes, product_modules

TREE = "base/errors/"
STEERING = {
    "bulk/ingest/vectors.py": {"NotSimple"},
    "cluster/jobs/runs.py": {"Lacking", "Stopped"},
    "expr/types/json_faults.py": {"_Fault"},
    "expr/types/time_fields.py": {"BadField", "BadFormat", "BadZoneOffset"},
    "kv/commits.py": {"_LeaderLeft"},
    "sql/statements/jobs/dump_rules.py": {"_Refused"},
    "sql/duck/duck_types.py": {"NotShared"},
    "sql/session/answers.py": {"NotShort"},
    "table/arrow.py": {"Unrepresentable"},
    "table/columnar.py": {"_TooLarge"},
}
"""Exceptions that their package raises and catches itself: they steer, and nobody is told of them."""

SQLSTATE = re.compile(r"[0-9A-Z]{5}")
BRANCH = re.compile(r"^    ([│ ]*)[├└]── (\w+) +(\w{5})(?:  |$)", re.MULTILINE)


def test_error_classes_stand_in_the_tree() -> None:
    outside = {
        path: names
        for path, names in _exceptions_by_module().items()
        if not path.startswith(TREE) and names != STEERING.get(path)
    }
    assert outside == {}
    assert {path for path in STEERING if path not in _exceptions_by_module()} == set()


def test_error_classes_have_a_sqlstate_and_a_name_of_their_own() -> None:
    classes = list(_subclasses(TenureError))
    assert [each.__name__ for each in classes if not SQLSTATE.fullmatch(each.sqlstate)] == []
    names = [each.__name__ for each in classes]
    assert sorted(names) == sorted(set(names))


def test_the_tree_is_drawn_as_it_is() -> None:
    assert _drawn() == {each.__name__: (each.__bases__[0].__name__, each.sqlstate) for each in _tree()}


def _drawn() -> dict[str, tuple[str, str]]:
    """Each class of the drawing, with its parent and its SQLSTATE."""
    path, found = ["TenureError"], {}
    for bars, name, sqlstate in BRANCH.findall(inspect.getdoc(tenure.base.errors) or ""):
        del path[len(bars) // 4 + 1 :]
        found[name] = (path[-1], sqlstate)
        path.append(name)
    return found


def _tree() -> Iterator[type[TenureError]]:
    return (each for each in _subclasses(TenureError) if each.__module__.startswith("tenure.base.errors."))


def _subclasses(root: type[TenureError]) -> Iterator[type[TenureError]]:
    for each in root.__subclasses__():
        if each.__module__.startswith("tenure."):
            yield each
            yield from _subclasses(each)


def _exceptions_by_module() -> dict[str, set[str]]:
    bases = {
        (module.path, node.name): {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for module in product_modules()
        for node in nodes(module)
        if isinstance(node, ast.ClassDef)
    }
    exceptions = {name for name, value in vars(builtins).items() if _is_exception(value)}
    while more := {name for (_, name), above in bases.items() if above & exceptions} - exceptions:
        exceptions |= more
    found: dict[str, set[str]] = {}
    for path, name in bases:
        if name in exceptions:
            found.setdefault(path, set()).add(name)
    return found


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)
