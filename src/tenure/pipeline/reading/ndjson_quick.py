"""A block of NDJSON at once: each member as its bytes in the file, then whole columns as text.

Only blocks without faults are read here; all others are read line by line, with the same result and a report
of the faulty line.

Walk: `reading.ndjson_rows` calls `columns` first; this is the only module here that imports msgspec.
"""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.types.datatype import Type
from tenure.pipeline.reading.blocks import RecordBlock
from tenure.pipeline.reading.quick import mask
from tenure.pipeline.reading.tasks import TargetColumn, encoding_fault
from tenure.table.arrays import Bools, Column

ReadOdd = Callable[[Type, bytes], str | None]
"""A member's text, where it is more than a plain string or number. Raises ValueError if it is bad."""


class QuickReader:
    def __init__(self, targets: Sequence[TargetColumn], read_odd: ReadOdd, *, ignores_unknown: bool) -> None:
        self._targets = targets
        self._read_odd = read_odd
        places = [f"f{place}" for place in range(len(targets))]
        names = {place: target.name for place, target in zip(places, targets, strict=True)}
        self._members = [attrgetter(place) for place in places]
        # msgspec finds no members whose names would be escaped in JSON.
        self._is_able = all(json.dumps(name) == f'"{name}"' for name in names.values())
        if self._is_able:
            row: Any = msgspec.defstruct(
                "Row",
                [(place, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for place in places],
                rename=names,
                forbid_unknown_fields=not ignores_unknown,
                gc=False,
            )
            self._decoder = msgspec.json.Decoder(row)

    def columns(self, block: RecordBlock) -> list[Column] | None:
        """Texts by column; None if the block must be read line by line."""
        if not self._is_able or encoding_fault(block.data):
            return None
        try:
            rows = self._decoder.decode_lines(block.data)
            if len(rows) != block.records:  # blank lines
                return None
            pairs = zip(self._targets, self._members, strict=True)
            return [self._column(target.type, list(map(member, rows))) for target, member in pairs]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _column(self, kind: Type, raws: list[Any]) -> Column:
        unset = msgspec.UNSET
        source = pa.array([None if each is unset else bytes(each) for each in raws], pa.binary())
        source = pc.if_else(pc.equal(source, b"null"), pa.scalar(None, pa.binary()), source)
        is_string = pc.starts_with(source, b'"')
        plain = pc.if_else(is_string, pc.binary_slice(source, 1, -1), source)
        odd = self._odd(kind, source)
        if odd.any():
            texts = [self._read_odd(kind, each) for each in source.filter(pa.array(odd)).to_pylist()]
            encoded = [None if each is None else each.encode() for each in texts]
            plain = pc.replace_with_mask(plain, pa.array(odd), pa.array(encoded, pa.binary()))
        return plain.cast(pa.string())

    def _odd(self, kind: Type, source: Column) -> Bools:
        """Objects, arrays, strings with escapes; of a json column, everything."""
        if kind.family in ("json", "jsonb"):
            return mask(source.is_valid())
        is_nested = pc.or_(pc.starts_with(source, b"{"), pc.starts_with(source, b"["))
        return mask(is_nested) | np.asarray(mask(pc.match_substring(source, b"\\")))
