"""Enums: labels for people, physical bytes for rows.

A value is its label. Rows and keys hold the member's physical bytes, whose order is the enum's
order and which never change; so a label may be renamed and a member put between two others.

A member that is on its way (write_only) can be read but not yet written: some node may not know it.

Walk: `expr.types.type_names` makes one per enum descriptor, again for each version of it.
"""

from dataclasses import dataclass
from functools import cached_property

from tenure.base.errors import CorruptData, InvalidText, UnsafeNewValue
from tenure.catalog.descriptors.definitions import ElementState, EnumType
from tenure.expr.types.datatype import Datum, Type


@dataclass(frozen=True)
class EnumOf(Type):
    descriptor: EnumType

    category = "E"
    compares_natively = False

    @property
    def family(self) -> str:
        return f"enum {self.ref.enum}"

    @property
    def sql_name(self) -> str:
        return self.descriptor.name

    @cached_property
    def _physical(self) -> dict[str, bytes]:
        return {member.label: member.physical for member in self.descriptor.members}

    @cached_property
    def _labels(self) -> dict[bytes, str]:
        return {member.physical: member.label for member in self.descriptor.members}

    @cached_property
    def _arriving(self) -> frozenset[str]:
        members = self.descriptor.members
        return frozenset(each.label for each in members if each.state is not ElementState.PUBLIC)

    @property
    def labels(self) -> tuple[str, ...]:
        """In the enum's order, without those on their way."""
        labels = sorted(self._labels.items())
        return tuple(label for _, label in labels if label not in self._arriving)

    def comparable(self, value: str) -> bytes:
        return self._physical[value]

    def parse(self, text: str) -> str:
        if text not in self._physical:
            raise InvalidText(f'invalid input value for enum {self.sql_name}: "{text}"')
        return text

    def render(self, value: str) -> str:
        return value

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        label = self.parse(value)
        if label in self._arriving:
            raise UnsafeNewValue(f'unsafe use of new value "{label}" of enum type {self.sql_name}')
        return label

    def _key(self, value: str) -> bytes:
        return self._physical[value]

    def _from_key(self, key: bytes) -> str:
        try:
            return self._labels[key]
        except KeyError:
            raise CorruptData(f'enum "{self.sql_name}" has no member with the bytes {key.hex()}') from None

    def _pack(self, value: str) -> bytes:
        return self._key(value)

    def _unpack(self, packed: bytes) -> str:
        return self._from_key(packed)
