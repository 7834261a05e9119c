"""A library is known to few files, and each one that is needed at run time has its record."""

import re
import sys
import tomllib
from fnmatch import fnmatch

from tests.tidy.source import ROOT, imports, product_modules

KNOWN_TO = {
    "apsw": (
        "storage/sqlite/sqlite_engine.py",
        "storage/sqlite/database_file.py",
        "storage/sqlite/poller.py",
    ),
    "confluent_kafka": ("changefeed/sinks/kafka.py",),
    "cryptography": ("catalog/accounts/sealing.py",),
    "duckdb": ("sql/duck/*.py",),
    "fastavro": ("pipeline/writing/avro_changes.py",),
    "fsspec": ("storage/bucket.py",),
    "google": ("sql/text/parse.py",),  # protobuf, which postgast brings
    "msgspec": (
        "kv/records.py",
        "expr/tree/expressions.py",
        "table/packing.py",
        "pipeline/reading/ndjson_quick.py",
    ),
    "numpy": (
        "bulk/filling/entries.py",
        "bulk/importing/*.py",
        "bulk/ingest/*.py",
        "bulk/resetting/sorting.py",
        "sql/duck/*.py",
        "table/*.py",
        "pipeline/reading/*.py",
        "pipeline/writing/*.py",
    ),  # pyarrow's arrays
    "postgast": ("sql/text/parse.py",),
    "psycopg": ("storage/postgres/*.py", "embedded.py", "__init__.py"),
    "py4j": ("pipeline/*.py",),  # how pyspark speaks to Java
    "pyarrow": (
        "bulk/filling/entries.py",
        "bulk/importing/*.py",
        "bulk/ingest/*.py",
        "bulk/resetting/sorting.py",
        "pipeline/*.py",
        "sql/duck/*.py",
        "storage/bucket.py",
        "storage/decompression.py",
        "storage/directory.py",
        "pipeline/reading/*.py",
        "pipeline/writing/*.py",
        "table/*.py",
    ),
    "pyspark": ("pipeline/*.py",),
    "re2": ("expr/patterns/regex.py",),
}


IMPORTED_AS = {"google_re2": "re2"}


def test_libraries_are_imported_only_where_they_belong() -> None:
    offences = [
        f"{module.path}:{line} {library}"
        for module in product_modules()
        for line, name in imports(module)
        if (library := name.split(".")[0]) not in sys.stdlib_module_names
        and library != "tenure"
        and not any(fnmatch(module.path, pattern) for pattern in KNOWN_TO.get(library, ()))
    ]
    assert offences == []


def test_every_runtime_dependency_has_a_decision_record() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines
    ]
    names = {re.split(r"[\[<>=~! ]", line)[0] for line in [*project["dependencies"], *extras]}
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    titles = "\n".join(path.read_text(encoding="utf-8").splitlines()[0] for path in records)
    assert {name for name in names if name not in titles} == set()


def test_every_runtime_dependency_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[\[<>=~! ]", line)[0].replace("-", "_") for line in project["dependencies"]}
    used = {name.split(".")[0] for module in product_modules() for _, name in imports(module)}
    assert {IMPORTED_AS.get(name, name) for name in names} - used == set()


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    namespace: dict[str, str] = {}
    exec((ROOT / "src" / "tenure" / "__init__.py").read_text(encoding="utf-8"), namespace)
    assert namespace["__version__"] == project["version"]
