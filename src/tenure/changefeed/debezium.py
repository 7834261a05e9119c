"""The envelope that consumers of Debezium's change events read. Everything here is pure.

    {"before": null, "after": {"a": 1}, "op": "c", "ts_ms": 1795000000000,
     "source": {"connector": "tenure", "db": "defaultdb", "schema": "app", "table": "t", "snapshot": "false",
                "ts_ms": 1795000000000, "updated": "1795000000000000.0000000001", ...},
     "transaction": null}

    r   a row of a scan: the first one, or one that follows a schema change
    c   a new row
    u   a row that has changed
    d   a deletion: `after` is null

Without a schema, as Debezium writes with `schemas.enable=false`. Both times are those of the commit, in
milliseconds; `updated` is the exact one, which orders changes.

Walk: `changefeed.messages` -> `debezium_value`.
"""

import re
from functools import lru_cache

from tenure import __version__
from tenure.base.timestamp import micros_of, to_text
from tenure.changefeed.version_rows import RowChange
from tenure.expr.types.json_values import quoted

_PART = re.compile(r'"(?:[^"]|"")*"|[^.]+')


def debezium_value(topic: str, change: RowChange, *, before: str, after: str) -> str:
    """`before` and `after` are JSON."""
    milliseconds = micros_of(change.at) // 1000
    is_scanned = change.before_rows is None
    source = (
        f'{{{_origin(topic)},"snapshot":"{"true" if is_scanned else "false"}",'
        f'"ts_ms":{milliseconds},"updated":"{to_text(change.at)}"}}'
    )
    return (
        f'{{"before":{before},"after":{after},"source":{source},'
        f'"op":"{_operation(change)}","ts_ms":{milliseconds},"transaction":null}}'
    )


def _operation(change: RowChange) -> str:
    if change.after is None:
        return "d"
    if change.before_rows is None:
        return "r"  # where rows before are read, those without one come from a scan
    return "c" if change.before is None else "u"


@lru_cache(maxsize=1024)
def _origin(topic: str) -> str:
    """The members that say where a change comes from, by the full name of its table."""
    parts = [_unquoted(each) for each in _PART.findall(topic)]
    database, schema, table = ["", "", *parts][-3:]
    return (
        f'"version":{quoted(__version__)},"connector":"tenure","name":{quoted(database)},'
        f'"db":{quoted(database)},"schema":{quoted(schema)},"table":{quoted(table)}'
    )


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
