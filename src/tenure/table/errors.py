"""What a write can do wrong, in PostgreSQL's words.

    UserError
    ├── ConstraintViolation          23000  names the table, the constraint and the column
    │   ├── UniqueViolation          23505
    │   ├── NotNullViolation         23502
    │   ├── CheckViolation           23514
    │   └── ForeignKeyViolation      23503
    │       └── RestrictViolation    23001
    └── IndexRowTooLong              54000  a key beyond what an index can hold

The attributes are the fields of the wire's error message: `detail`, `table`, `column`,
`constraint`. The schema is given by its id, as its name is the catalog's to say.

Walk: `table.write`, `table.foreign_keys` and `table.validate` raise them; the door sends all fields.
"""

from tenure.base.errors import UserError
from tenure.catalog.descriptors.definitions import Table


class ConstraintViolation(UserError):
    sqlstate = "23000"

    def __init__(
        self, message: str, *, table: Table, detail: str = "", column: str = "", constraint: str = ""
    ) -> None:
        super().__init__(message)
        self.detail = detail
        self.schema_id = table.schema
        self.schema = ""
        """Its name, once the session has looked it up."""
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


class IndexRowTooLong(UserError):
    sqlstate = "54000"
