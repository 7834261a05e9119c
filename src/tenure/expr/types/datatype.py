"""The interface of a type: how its values are checked, ordered, stored, read and written.

    values     accept     a value assigned to a column: checked, rounded, padded
    keys       key        an element for `kv.encoding`; from_key takes it back
    storage    pack       what MessagePack holds compactly; unpack takes it back
    text       parse      PostgreSQL's input format; render its output format

NULL is None everywhere and is handled here, once. A subclass says the rest in methods that begin
with an underscore or are named by what they do with a value that is not NULL.

Invariant (type-key-order): the order of keys is the order of the values in PostgreSQL's ORDER BY
... ASC under the C collation, NULL last; equal values have equal keys.
Invariant (type-key-exact): where `key_is_exact`, from_key(key(v)) is v to the last digit; elsewhere
it is equal to v in PostgreSQL's sense, and the row's value must be kept beside the key.
Invariant (type-pack-exact): unpack(pack(v)) is v to the last digit, through MessagePack.
Invariant (type-text-exact): parse(render(v)) is v to the last digit.

Walk: `expr.types.type_names` makes the instances; the row encoding in `table` packs and keys by them;
`expr.types.casts` and `pgwire` parse and render by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, ClassVar

from tenure.base.errors import DatatypeMismatch, UndefinedFunction
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.kv.encoding import Value

Datum = Any
"""A value in Python. Its Python type depends on the SQL type, so the type checker cannot check it."""


@dataclass(frozen=True)
class Type:
    ref: TypeRef

    category: ClassVar[str] = "U"
    """PostgreSQL's: B boolean, N number, S string, D day or time, T span, A array, E enum, U other."""
    is_preferred: ClassVar[bool] = False
    """Overload resolution favours it within its category."""
    has_order: ClassVar[bool] = True
    compares_natively: ClassVar[bool] = True
    """Python's own == and < on the values are PostgreSQL's."""

    @property
    def key_is_exact(self) -> bool:
        return True

    @property
    def follows_zone(self) -> bool:
        """Whether its text depends on the session's time zone: timestamptz, and arrays of it."""
        return False

    @property
    def family(self) -> str:
        """The type without its modifiers, as functions and casts know it."""
        return self.ref.name

    @property
    def sql_name(self) -> str:
        """As PostgreSQL's format_type gives it."""
        return self.ref.name

    def accept(self, value: Datum) -> Datum:
        """Returns the value as a column of this type stores it. Raises if the type cannot hold it."""
        return None if value is None else self._accept(value)

    def truncate(self, value: Datum) -> Datum:
        """As accept, for an explicit cast: a string that is too long is cut."""
        return self.accept(value)

    def comparable(self, value: Datum) -> Any:
        """A value that Python orders as PostgreSQL orders this one."""
        return value

    def key(self, value: Datum) -> Value:
        if not self.has_order:
            raise UndefinedFunction(
                f"could not identify an ordering operator for type {self.sql_name}",
                hint="Use an explicit ordering operator or modify the query.",
            )
        return None if value is None else self._key(value)

    def from_key(self, key: Value) -> Datum:
        return None if key is None else self._from_key(key)

    def pack(self, value: Datum) -> Any:
        return None if value is None else self._pack(value)

    def unpack(self, packed: Any) -> Datum:
        return None if packed is None else self._unpack(packed)

    def parse(self, text: str) -> Datum:
        """Raises InvalidText, or another error as in PostgreSQL, if the text is no value of this type."""
        raise NotImplementedError

    def parse_all(self, texts: Sequence[str]) -> Sequence[Datum]:
        """What a column of this type holds of each text: as `accept` of `parse`, and the same errors."""
        return [self.accept(self.parse(text)) for text in texts]

    def render(self, value: Datum) -> str:
        return str(value)

    def parse_in(self, text: str, zone: tzinfo) -> Datum:
        """As parse, where the session's time zone is this one."""
        return self.parse(text)

    def render_in(self, value: Datum, zone: tzinfo) -> str:
        """As render, where the session's time zone is this one."""
        return self.render(value)

    def _accept(self, value: Datum) -> Datum:
        raise NotImplementedError

    def _key(self, value: Datum) -> Any:
        return value

    def _from_key(self, key: Any) -> Datum:
        return key

    def _pack(self, value: Datum) -> Any:
        return value

    def _unpack(self, packed: Any) -> Datum:
        return packed

    def _refuse(self, value: Datum) -> DatatypeMismatch:
        return DatatypeMismatch(
            f'a Python value of type "{type(value).__name__}" is no value of type {self.sql_name}'
        )
