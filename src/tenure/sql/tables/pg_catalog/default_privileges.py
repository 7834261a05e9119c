"""pg_default_acl and acldefault(): the privileges that objects have before anybody grants some.

Walk: `sql.tables.pg_catalog.relations` collects `definitions`; `sql.tables.pg_catalog.answers` calls
`default_items`.
"""

from collections.abc import Iterator
from functools import partial
from zlib import crc32

from tenure.base.errors import InvalidParameter
from tenure.catalog.accounts.privileges import initial
from tenure.catalog.descriptors.role_records import EVERYWHERE, DefaultPrivileges
from tenure.sql.names.object_numbers import HASHED_FROM
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.pg_catalog.object_rows import CatalogReader, acl_items
from tenure.sql.tables.pg_catalog.shapes import shape
from tenure.sql.tables.virtual import Rows, VirtualDefinition
from tenure.sql.text.quoting import quoted

DEFAULT_ACL = shape("pg_default_acl")
_OBJECT_TYPES = {"table": "r", "sequence": "S", "type": "T", "schema": "n"}
_KINDS = {"r": "table", "s": "sequence", "d": "database", "n": "schema", "T": "type", "c": "column"}
_ABSENT = {
    **{"f": "=X/{0} {0}=X/{0}", "l": "=U/{0} {0}=U/{0}", "L": "{0}=rw/{0}", "t": "{0}=C/{0}"},
    **{"F": "{0}=U/{0}", "S": "{0}=U/{0}", "p": "{0}=sA/{0}"},
}
"""Of kinds of objects that nobody makes here: functions, languages, servers."""


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield DEFAULT_ACL.defined(partial(_default_acls, node))


def _default_acls(node: NodeView, reader: TableReader) -> Rows:
    """Those of schemas of this database, and those of all schemas."""
    catalog = CatalogReader(reader)
    for each in node.catalog.roles.all_defaults(reader.block.source):
        schema = catalog.objects.by_id.get(each.schema)
        if each.schema == EVERYWHERE or getattr(schema, "database", None) == catalog.database:
            yield DEFAULT_ACL.row(
                oid=_oid(each),
                defaclrole=catalog.role_oid(each.role),
                defaclnamespace=0 if each.schema == EVERYWHERE else each.schema,
                defaclobjtype=_OBJECT_TYPES[each.kind],
                defaclacl=acl_items(each.entries, each.role),
            )


def _oid(each: DefaultPrivileges) -> int:
    return HASHED_FROM + crc32(f"{each.role}/{each.schema}/{each.kind}".encode()) // 2


def default_items(letter: str, owner: str) -> tuple[str, ...]:
    """The privileges of a new object of a kind, as PostgreSQL orders them: everybody's first."""
    if letter in _ABSENT:
        return tuple(_ABSENT[letter].format(quoted(owner)).split(" ")) if owner else ()
    if letter not in _KINDS:
        raise InvalidParameter(f"unrecognized object type abbreviation: {letter}")
    return acl_items(initial(_KINDS[letter])[::-1], owner)
