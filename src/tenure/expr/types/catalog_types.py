"""Types that only catalogs have: int2vector, oidvector, aclitem, pg_node_tree, xid.

    int2vector, oidvector   tuples, written "1 2 3"; as arrays, but their first subscript is 0
    aclitem                 str: one grant, "ann=r*w/root"
    pg_node_tree            str: an expression, here as the SQL that pg_get_expr gives
    xid                     int: a transaction's number

No table of a user can have a column of them, and nothing reads them from a client.

Walk: `expr.types.type_names` makes the types; `sql.tables.pg_catalog` gives values.
"""

from dataclasses import dataclass

from tenure.base.errors import InvalidText, NotSupported
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.numbers import IntType, whole_number
from tenure.expr.types.system_types import OidType


@dataclass(frozen=True)
class VectorType(ArrayOf):
    @property
    def family(self) -> str:
        return self.ref.name

    @property
    def sql_name(self) -> str:
        return self.ref.name

    def parse(self, text: str) -> Datum:
        return tuple([self.element.parse(each) for each in text.split()])

    def render(self, value: Datum) -> str:
        return " ".join(map(str, value))


@dataclass(frozen=True)
class CatalogText(Type):
    """aclitem and pg_node_tree."""

    has_order = False

    def parse(self, text: str) -> str:
        return text

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return value


class NodeText(str):
    """A value of pg_node_tree: the text of an expression, and the pretty one beside it."""

    __slots__ = ("pretty",)

    pretty: str

    def __new__(cls, text: str, pretty: str) -> "NodeText":
        made = super().__new__(cls, text)
        made.pretty = pretty
        return made


@dataclass(frozen=True)
class XidType(Type):
    def parse(self, text: str) -> int:
        value = whole_number(text.strip())
        if value is None:
            raise InvalidText(f'invalid input syntax for type xid: "{text}"')
        return value

    def _accept(self, value: Datum) -> int:
        if type(value) is not int:
            raise self._refuse(value)
        return value


VECTORS = ("int2vector", "oidvector")
CATALOG_TYPES = (*VECTORS, "aclitem", "pg_node_tree", "xid")


def require_storable(ref: TypeRef) -> TypeRef:
    """Raises NotSupported (0A000) for a type that a table cannot have."""
    if ref.name in CATALOG_TYPES:
        raise NotSupported(f"columns of type {ref.name} are not supported")
    return ref


def catalog_type(ref: TypeRef) -> Type:
    match ref.name:
        case "int2vector":
            return VectorType(ref, IntType(TypeRef("int2"), 2))
        case "oidvector":
            return VectorType(ref, OidType(TypeRef("oid")))
        case "xid":
            return XidType(ref)
    return CatalogText(ref)
