"""Names of the lake's files: they contain the tenant, the table and the index.

    <tenant>/<table>/<index>/<attempt>-live-<number>.parquet

Walk: tasks that write a base name their files by `stem_of`; `lake.damage` calls `index_of`.
"""

import re

_NAME = re.compile(r"\d+/(\d+)/(\d+)/[^/]+")


def stem_of(tenant: int, table: int, index: int, attempt: str) -> str:
    """The common prefix of the files that an attempt of a task writes."""
    return f"{tenant}/{table}/{index}/{attempt}"


def index_of(name: str) -> tuple[int, int]:
    """The table and the index that a file is of."""
    found = _NAME.fullmatch(name)
    assert found is not None, f"{name} is not a file of a base"
    return int(found[1]), int(found[2])
