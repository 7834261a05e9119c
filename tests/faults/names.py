"""Keys and values of the workload as text, so that logs can be read and compared.

    b:03            balance of an account           "100|tag"
    l:07            a list that grows               "12 p0.0.1.4,p1.0.2.9|tag"   (length, last tags)
    o:p0.0.1.7      an operation that happens once  "|tag"
    u:04/p0.0.1.7   the row it puts into a bucket, which others may delete
    m:p0.0.1        who committed last in a thread  "|tag"
    h:p0.0          heartbeat                       "|tag"

Each value ends in the tag of the attempt that wrote it, so no two values are equal and a revision
says by itself whose it is. Every attempt writes its thread's `m`, so every commit has a value.

Walk: `workload` writes with these, `checker` reads the store's history with them.
"""

from tenure.kv.encoding import decode
from tenure.kv.keys import Keyspace, Span
from tenure.storage.engine import HEAD_BYTES

TABLES = {"b": 100, "l": 101, "u": 102, "m": 103, "h": 104, "o": 105}
LETTERS = {table: letter for letter, table in TABLES.items()}

ACCOUNTS = tuple(f"b:{number:02d}" for number in range(16))
BALANCE = 100
LISTS = tuple(f"l:{number:02d}" for number in range(24))
BUCKETS = tuple(f"u:{number:02d}" for number in range(40))
LIST_TAIL = 4
"""Tags a list shows; its length counts them all."""


def key_of(keyspace: Keyspace, name: str) -> bytes:
    letter, columns = name.split(":")
    return keyspace.key(TABLES[letter], columns.split("/"))


def name_of(key: bytes) -> str:
    letter = LETTERS[int.from_bytes(key[4:8], "big")]
    return letter + ":" + "/".join(str(column) for column in decode(key[HEAD_BYTES:]))


def span_of(keyspace: Keyspace, prefix: str) -> Span:
    """All names with these first columns: "b:" is a whole table, "u:04" one bucket."""
    letter, columns = prefix.split(":")
    if not columns:
        return keyspace.index_span(TABLES[letter])
    return keyspace.prefix_span(TABLES[letter], columns.split("/"))


def is_under(name: str, prefix: str) -> bool:
    return name.startswith(prefix if prefix.endswith(":") else prefix + "/")


def value_of(payload: str, tag: str) -> str:
    return f"{payload}|{tag}"


def payload_of(value: str) -> str:
    return value.rpartition("|")[0]


def tag_of(value: str) -> str:
    """Whose value it is; padding may follow after a blank."""
    return value.rpartition("|")[2].partition(" ")[0]


def appended(value: str | None, tag: str) -> str:
    """The payload of a list with one more tag."""
    length, _, tail = ("0", "", "") if value is None else payload_of(value).partition(" ")
    shown = [*(tail.split(",") if tail else []), tag][-LIST_TAIL:]
    return f"{int(length) + 1} {','.join(shown)}"


def length_of(value: str | None) -> int:
    return 0 if value is None else int(payload_of(value).partition(" ")[0])
