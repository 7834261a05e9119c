"""The rights of a role: the one place that decides them, over the role's record.

A superuser may do everything. Others may not set cluster settings, change roles, read or write files, see
restricted system tables, or change objects of other roles. A role that does not exist may do nothing. The
caller reads the record: most callers as of now, a statement that changes roles in its own transaction.

Walk: `sql.tables.virtual`, `sql.clients.sql_sessions`, `sql.statements.ddl.roles`,
`sql.statements.show.cluster_settings` and the statements of jobs ask here.
"""

from tenure.base.errors import InsufficientPrivilege
from tenure.catalog.accounts.users import User


def is_superuser(role: User | None) -> bool:
    return role is not None and role.is_superuser


def require_superuser(role: User | None, message: str, *, detail: str = "", hint: str = "") -> None:
    """Raises InsufficientPrivilege (42501), with this message, for all others."""
    if not is_superuser(role):
        raise InsufficientPrivilege(message, detail=detail, hint=hint)
