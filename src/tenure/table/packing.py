"""Packed values as bytes and back: the only module of this layer that imports MessagePack.

Walk: `table.columns` and `table.rows` pack the packable values of types.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from tenure.base.errors import CorruptData

Packed: TypeAlias = Any
"""A value as its type packs it: None, a number, text, bytes, or a list of these."""

pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_unpack_many = msgspec.msgpack.Decoder(list[Any]).decode
_unpack_columns = msgspec.msgpack.Decoder(dict[int, Any]).decode
_unpack_all_columns = msgspec.msgpack.Decoder(list[dict[int, Any]]).decode


def unpack(packed: bytes) -> Packed:
    try:
        return _unpack(packed)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a packed value cannot be read: {error}") from error


def unpack_columns(packed: bytes | memoryview) -> dict[int, Packed]:
    """Packed values by column id."""
    try:
        return _unpack_columns(packed)
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a row cannot be read: {error}") from error


def unpack_all_columns(packed: Sequence[bytes]) -> list[dict[int, Packed]]:
    """As `unpack_columns` of each, by one call."""
    head = b"\xdd" + len(packed).to_bytes(4, "big")
    try:
        return _unpack_all_columns(head + b"".join(packed))
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a row cannot be read: {error}") from error


def unpack_pairs(packed: Sequence[bytes]) -> list[Any]:
    """Decodes many pairs of values by one call."""
    head = b"\xdd" + (2 * len(packed)).to_bytes(4, "big")
    try:
        return _unpack_many(head + b"".join(packed))
    except msgspec.MsgspecError as error:
        raise CorruptData(f"a row cannot be read: {error}") from error
