"""Changes of rows for a file, before a format is chosen.

    key       struct   the key columns
    after     struct   the row; null: it was deleted
    before    struct   the row before, if it was asked for
    updated   text     and others of the kind

Walk: `changefeed.sinks.file_bodies` makes these; `writing.change_rows` and
`writing.avro_changes` write them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.expr.types.datatype import Datum, Type
from tenure.pipeline.writing.formats import OutColumn


class ChangeStruct(NamedTuple):
    name: str
    columns: Sequence[OutColumn]
    kinds: Sequence[Type]
    rows: Sequence[Sequence[Datum] | None]
    """None: null."""


class ChangeTexts(NamedTuple):
    name: str
    values: Sequence[str]
