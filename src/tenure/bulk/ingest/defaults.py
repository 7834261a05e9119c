"""Defaults of columns that the file does not contain, for a batch of rows at once.

    none                       NULL
    fixed for the statement    evaluated once, such as 0 or now()
    unique_rowid()             numbers of the split: see below
    nextval(...)               a block of the sequence, drawn from the store for the batch
    gen_random_uuid()          random bytes
    all else                   evaluated row by row

**Row ids.** Rows of a table without a primary key get an id. The ids of SQL are positive; those of an import
are negative, so the two never meet:

    | 1 | 20 bits: the table's version that took it offline | 43 bits: the row's number in the import |

No two imports of a table have the same version. Within one, each split gets as many numbers as it can have
rows at most, before it is read; so splits are independent, and a split that is read again gives its rows the
same ids.

Walk: `ingest.rows` makes a `Defaults` per split and calls `array` for each column that is missing.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

import numpy as np
import pyarrow as pa

from tenure.base.env import Env
from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.expr.functions.function import Context, Volatility
from tenure.expr.tree.compiled import volatility
from tenure.expr.tree.expressions import Call, Cast, Const, Node, decode
from tenure.table.arrays import Column
from tenure.table.arrow import Unrepresentable, array
from tenure.table.columns import CompiledColumn
from tenure.table.packing import Packed
from tenure.table.sequences import Sequences

VERSION_BITS, NUMBER_BITS = 20, 43

_UUIDS = ("gen_random_uuid()", "uuidv4()", "uuid_generate_v4()")


class RowNumbers:
    """The row ids of a split, one after the other."""

    def __init__(self, version: int, first: int) -> None:
        self._high = -(1 << 63) + ((version & ((1 << VERSION_BITS) - 1)) << NUMBER_BITS)
        self._next = first

    def take(self, count: int) -> range:
        start = self._high + self._next
        self._next += count
        return range(start, start + count)

    def __call__(self) -> int:
        return self.take(1)[0]


class Blocks:
    """Values of sequences, as many at a time as were needed last."""

    def __init__(self, sequences: Sequences, descriptors: Mapping[int, SequenceDescriptor]) -> None:
        self._sequences = sequences
        self._descriptors = descriptors
        self._current: dict[int, int] = {}

    def take(self, id: int, count: int) -> list[int]:
        return self._sequences.reserve(self._descriptors[id], count)

    def next(self, id: int) -> int:
        self._current[id] = self._sequences.next(self._descriptors[id])
        return self._current[id]

    def current(self, id: int) -> int:
        return self._current[id]

    def last(self) -> int:
        raise UserError("lastval() is not supported in an import")

    def set(self, id: int, value: int, is_called: bool) -> int:
        raise UserError("setval() is not supported in an import")


class Defaults:
    def __init__(self, env: Env, context: Context, numbers: RowNumbers, blocks: Blocks) -> None:
        self._env = env
        self._context = context
        self._numbers = numbers
        self._blocks = blocks

    def array(self, kept: CompiledColumn, rows: int) -> tuple[Column, dict[int, Packed]]:
        """The column's values for so many rows; and by row those that Arrow cannot represent, packed."""
        if kept.default is None or kept.column.default is None:
            return _repeated(kept, None, rows)
        tree = decode(kept.column.default.tree)
        if volatility(tree) is not Volatility.VOLATILE:
            return _repeated(kept, self._one(kept), rows)
        quick = self._quick(kept, tree, rows)
        if quick is not None:
            return quick, {}
        return as_column(kept, [self._one(kept) for _ in range(rows)])

    def _one(self, kept: CompiledColumn) -> Packed:
        assert kept.default is not None
        return kept.type.pack(kept.type.accept(kept.default({}, self._context)))

    def _quick(self, kept: CompiledColumn, tree: Node, rows: int) -> Column | None:
        call = tree.operand if isinstance(tree, Cast) else tree
        if not isinstance(call, Call) or kept.type.family not in ("int2", "int4", "int8", "uuid"):
            return None
        if call.function == "unique_rowid()" and kept.type.family == "int8":
            numbers = self._numbers.take(rows)
            return pa.array(np.arange(numbers.start, numbers.stop, dtype=np.int64))
        if call.function == "tenure_nextval(int8)" and isinstance(call.arguments[0], Const):
            values = self._blocks.take(call.arguments[0].packed, rows)
            for bound in (min(values, default=0), max(values, default=0)):
                kept.type.accept(bound)
            return array(kept.type, values)
        if call.function in _UUIDS and kept.type.family == "uuid":
            return _uuids(self._env, rows)
        return None


def _repeated(kept: CompiledColumn, packed: Packed, rows: int) -> tuple[Column, dict[int, Packed]]:
    column, rest = as_column(kept, [packed])
    return column.take(pa.array(np.zeros(rows, np.int64))), dict.fromkeys(range(rows), packed) if rest else {}


def as_column(kept: CompiledColumn, packed: list[Packed]) -> tuple[Column, dict[int, Packed]]:
    """Packed values as an array; and by row those that Arrow cannot represent."""
    try:
        return array(kept.type, packed), {}
    except Unrepresentable:
        cells, rest = [], {}
        for row, each in enumerate(packed):
            try:
                array(kept.type, [each])
                cells.append(each)
            except Unrepresentable:
                cells.append(None)
                rest[row] = each
        return array(kept.type, cells), rest


def _uuids(env: Env, rows: int) -> Column:
    """Of version 4: 122 random bits each."""
    raw = np.frombuffer(env.rng.getrandbits(128 * max(rows, 1)).to_bytes(16 * max(rows, 1), "big"), np.uint8)
    ids = raw.reshape(-1, 16)[:rows].copy()
    ids[:, 6] = ids[:, 6] & 0x0F | 0x40
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(ids)]).cast(
        pa.binary()
    )


def random_uuid(env: Env) -> Callable[[], UUID]:
    return lambda: UUID(int=env.rng.getrandbits(128), version=4)
