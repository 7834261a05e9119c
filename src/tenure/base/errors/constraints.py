"""Violations of constraints by a write (class 23), with the fields of the wire's error message.

The schema is identified by its id: only the catalog can resolve its name.

Walk: `table.write`, `table.foreign_keys`, `table.validate` and `bulk.importing` raise these; the door
sends all fields.
"""

from typing import Protocol

from tenure.base.errors.roots import UserError


class TableIdentity(Protocol):
    """What an error reports of a table: the catalog's descriptor implements it."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> int: ...


class ConstraintViolation(UserError):
    sqlstate = "23000"

    def __init__(
        self, message: str, *, table: TableIdentity, detail: str = "", column: str = "", constraint: str = ""
    ) -> None:
        super().__init__(message)
        self.detail = detail
        self.schema_id = table.schema
        self.schema = ""
        """The schema's name, once the session has looked it up."""
        self.table_id = table.id
        self.table = table.name
        self.column = column
        self.constraint = constraint


class UniqueViolation(ConstraintViolation):
    sqlstate = "23505"


class NotNullViolation(ConstraintViolation):
    sqlstate = "23502"


class CheckViolation(ConstraintViolation):
    sqlstate = "23514"


class ForeignKeyViolation(ConstraintViolation):
    sqlstate = "23503"


class RestrictViolation(ForeignKeyViolation):
    sqlstate = "23001"
