"""The labels of an enum, and the bytes that rows store for them.

    'low' 55    'mid' aa              bytes compare as the labels are ordered
    'low' 55    'new' 7f    'mid' aa  one between two others gets bytes between theirs

The bytes are fractions to the base 256 without trailing zeros: between any two there is always another, and
none is ever changed, since rows contain them.

Invariant (enum-order): a new label's bytes lie strictly between its neighbours', and no two labels have the
same bytes.

Walk: `catalog.changes.object_changes` makes and extends enums with these.
"""

from collections import Counter
from collections.abc import Sequence

from tenure.base.errors import DuplicateObject, InvalidName, InvalidParameter
from tenure.catalog.descriptors.definitions import ElementState, EnumMember, EnumType, replace
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX


def enum_members(labels: Sequence[str]) -> tuple[EnumMember, ...]:
    """The members of a new enum."""
    for label, count in Counter(labels).items():
        require_label(label)
        if count > 1:
            raise DuplicateObject(f'enum label "{label}" is used more than once')
    return tuple(map(EnumMember, labels, spread(len(labels))))


def spread(count: int) -> list[bytes]:
    """That many values, far apart."""
    width = (count.bit_length() + 7) // 8 + 1
    step = 256**width // (count + 1)
    return [(step * number).to_bytes(width, "big").rstrip(b"\0") for number in range(1, count + 1)]


def between(lower: bytes, upper: bytes | None) -> bytes:
    """A value above `lower` and below `upper`; None is no upper bound."""
    digits = bytearray()
    while True:
        place = len(digits)
        low = lower[place] if place < len(lower) else 0
        high = upper[place] if upper is not None and place < len(upper) else 256
        if high - low > 1:
            digits.append((low + high) // 2)
            return bytes(digits)
        digits.append(low)
        if low < high:
            upper = None  # already below it


def added(type_: EnumType, label: str, *, before: str | None, after: str | None, is_seen: bool) -> EnumType:
    """The enum with another label; if other nodes see the enum, the label is write_only first."""
    require_label(label)
    labels = [member.label for member in type_.members]
    if label in labels:
        raise DuplicateObject(f'enum label "{label}" already exists')
    position = len(labels)
    if before is not None:
        position = _position(labels, before)
    elif after is not None:
        position = _position(labels, after) + 1
    lower = type_.members[position - 1].physical if position else b""
    upper = type_.members[position].physical if position < len(labels) else None
    state = ElementState.WRITE_ONLY if is_seen else ElementState.PUBLIC
    member = EnumMember(label, between(lower, upper), state)
    return replace(type_, members=(*type_.members[:position], member, *type_.members[position:]))


def renamed(type_: EnumType, label: str, to: str) -> EnumType:
    require_label(to)
    labels = [member.label for member in type_.members]
    position = _position(labels, label)
    if to in labels:
        raise DuplicateObject(f'enum label "{to}" already exists')
    member = replace(type_.members[position], label=to)
    return replace(type_, members=(*type_.members[:position], member, *type_.members[position + 1 :]))


def _position(labels: list[str], label: str) -> int:
    if label not in labels:
        raise InvalidParameter(f'"{label}" is not an existing enum label')
    return labels.index(label)


def require_label(label: str) -> None:
    if "\0" in label or len(label.encode()) > NAME_BYTES_MAX:
        raise InvalidName(f'invalid enum label "{label}"')
