"""The privileges of a schema `public`: everybody may use it, nobody but its owner creates in it.

Walk: `catalog.bootstrap` and `catalog.changes.object_changes` write them with each such schema.
"""

from tenure.catalog.accounts.privileges import USAGE, granted, initial
from tenure.catalog.descriptors.role_records import OWNER, PUBLIC_ROLE, WHOLE_OBJECT, ObjectPrivileges


def privileges_of_public(schema: int) -> ObjectPrivileges:
    entries = granted(
        initial("schema"), grantee=PUBLIC_ROLE, grantor=OWNER, bits=USAGE, with_option=False, owner=OWNER
    )
    return ObjectPrivileges(schema, WHOLE_OBJECT, entries)
