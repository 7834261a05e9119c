"""Typed records: frozen values kept under typed keys.

    sessions = Records(keyspace, table=3, kind=Session, key=("instance", "epoch_at"))

    value = format number (one byte) + the fields as a MessagePack array

A record is a frozen `Record`; the fields named in `key` make its key and are stored in the value too, so that
a value describes itself. A key field whose name ends in `_at` is encoded as a timestamp. Every stored format
has a number: one newer than this code knows is refused, an older one goes through `upgrades`, one step at a
time.

A record can contain its own commit timestamp: with `put(txn, record, stamp="expires_at", plus=...)` the
engine writes it in the section; in the key as well if the field is part of it.

Walk: the layers above keep all system state in these; SQL shows it as `system.*`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Generic, TypeVar

import msgspec

from tenure.base.errors import CorruptData, NewerFormat
from tenure.base.timestamp import MAX_AT, to_bytes
from tenure.kv.encoding import AT_OFFSET, At, KeyValue, encode
from tenure.kv.keys import PRIMARY, Keyspace, Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Stamp

UINT64 = b"\xcf"
"""MessagePack's mark of an integer of eight bytes, which every timestamp is."""


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Fields are stored by position: a new one goes last, with a default."""


R = TypeVar("R", bound=Record)

replace = msgspec.structs.replace
"""Returns a copy with other values of the named fields."""


def pack(record: Record) -> bytes:
    """A record's bytes, for a value that another record contains."""
    return msgspec.msgpack.encode(record)


def unpack(data: bytes, kind: type[R]) -> R:
    return msgspec.msgpack.decode(data, type=kind)


Upgrade = Callable[[list[Any]], list[Any]]


class Records(Generic[R]):
    def __init__(
        self,
        keyspace: Keyspace,
        table: int,
        kind: type[R],
        *,
        key: Sequence[str],
        format: int = 1,
        upgrades: Mapping[int, Upgrade] | None = None,
    ) -> None:
        self._keyspace = keyspace
        self._table = table
        self._kind = kind
        self._name = getattr(kind, "__name__", str(kind))  # a union of kinds has no name of its own
        self._key = tuple(key)
        self._head = keyspace.head(table)
        self._has_times = any(name.endswith("_at") for name in key)
        self._format = format
        self._upgrades = dict(upgrades or {})
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def get(self, txn: Transaction | Snapshot, *key: KeyValue) -> R | None:
        value = txn.get(self.key(*key))
        return None if value is None else self.decode(value)

    def scan(
        self,
        txn: Transaction | Snapshot,
        *prefix: KeyValue,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[R]:
        """Yields the records whose key begins with these columns, in key order."""
        for _, value in txn.scan(self.span(*prefix), limit=limit, reverse=reverse):
            yield self.decode(value)

    def put(self, txn: Transaction, record: R, *, stamp: str | None = None, plus: int = 0) -> None:
        """Writes a record; the field named by `stamp` becomes the commit timestamp + `plus`."""
        if stamp is None:
            txn.put(self.key_of(record), self.encode(record))
            return
        record = replace(record, **{stamp: MAX_AT})
        value = self.encode(record)
        place = UINT64 + to_bytes(MAX_AT)
        if value.count(place) == 1:
            offset = value.index(place) + len(UINT64)
        else:  # another field has these very bytes: the stamp is where another timestamp would differ
            other = self.encode(replace(record, **{stamp: MAX_AT - 1}))
            offset = next(n for n, (a, b) in enumerate(zip(value, other, strict=True)) if a != b) - 7
        txn.put(
            self.key_of(record),
            value,
            key_stamp=self._key_stamp(record, stamp, plus),
            value_stamp=Stamp(offset, plus),
        )

    def delete(self, txn: Transaction, *key: KeyValue) -> None:
        txn.delete(self.key(*key))

    def key(self, *values: KeyValue) -> bytes:
        assert len(values) == len(self._key), f"{self._name} is kept under {self._key}"
        return self._head + encode(self._columns(values))

    def key_of(self, record: R) -> bytes:
        return self.key(*[getattr(record, name) for name in self._key])

    def span(self, *prefix: KeyValue) -> Span:
        return self._keyspace.prefix_span(self._table, self._columns(prefix))

    def encode(self, record: R) -> bytes:
        return self._format.to_bytes(1, "big") + self._encode(record)

    def decode(self, value: bytes) -> R:
        try:
            if value[0] == self._format:
                return self._decode(memoryview(value)[1:])
            return self._decode_older(value)
        except (IndexError, KeyError, msgspec.MsgspecError) as error:
            raise CorruptData(f"a {self._name} record cannot be read: {error}") from error

    def _decode_older(self, value: bytes) -> R:
        stored = value[0]
        if stored > self._format:
            raise NewerFormat(
                f"a {self._name} record has format {stored}; this version reads {self._format}",
                hint="Run the newer version that wrote it.",
            )
        fields = msgspec.msgpack.decode(memoryview(value)[1:], type=list[Any])
        for number in range(stored, self._format):
            fields = self._upgrades[number](fields)
        return msgspec.convert(fields, self._kind)

    def _columns(self, values: Sequence[KeyValue]) -> Sequence[KeyValue]:
        if not self._has_times:
            return values
        return [
            At(value) if name.endswith("_at") and isinstance(value, int) else value
            for name, value in zip(self._key, values, strict=False)
        ]

    def _key_stamp(self, record: R, stamp: str, plus: int) -> Stamp | None:
        if stamp not in self._key:
            return None
        before = [getattr(record, name) for name in takewhile(lambda name: name != stamp, self._key)]
        head = len(self._keyspace.head(self._table, PRIMARY))
        return Stamp(head + len(encode(self._columns(before))) + AT_OFFSET, plus)
