"""Faster decoding of keys of one element, for reading many rows by a key of one column.

Invariant (quick-same): the results are those of `encoding.decode`.

Walk: `table.readers` and `table.column_batches` read primary keys with these.
"""

from tenure.base.errors import CorruptData
from tenure.kv.encoding import DECODERS, KeyValue


def decode_one(data: bytes, position: int) -> KeyValue:
    """The one element that begins at the position and ends with the data."""
    if position >= len(data):
        raise CorruptData("key: the data ends before an element")
    value: KeyValue
    value, end = DECODERS[data[position]](data, position + 1)
    if end != len(data):
        raise CorruptData("key: there is more than one element")
    return value
