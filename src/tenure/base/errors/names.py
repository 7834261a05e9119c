"""Names that stand for nothing, for two things, or for something already (3D, 3F, 42).

Walk: `catalog`, `retention`, `sql.bind`, `sql.names` and the statements raise these.
"""

from collections.abc import Iterable

from tenure.base.errors.roots import UserError


class Undefined(UserError):
    sqlstate = "42000"


class UndefinedDatabase(Undefined):
    sqlstate = "3D000"


class UndefinedSchema(Undefined):
    sqlstate = "3F000"


class UndefinedTable(Undefined):
    sqlstate = "42P01"


class UndefinedColumn(Undefined):
    sqlstate = "42703"


class UndefinedFunction(Undefined):
    sqlstate = "42883"


class UndefinedParameter(Undefined):
    sqlstate = "42P02"


class UndefinedPrepared(Undefined):
    sqlstate = "26000"


class UndefinedCursor(Undefined):
    sqlstate = "34000"


class UndefinedSavepoint(Undefined):
    sqlstate = "3B001"


class UndefinedObject(Undefined):
    sqlstate = "42704"


class UndefinedVariable(UndefinedObject):
    pass


class UnknownJob(UndefinedObject):
    pass


class ProtectionNotFound(UndefinedObject):
    pass


class Duplicate(UserError):
    sqlstate = "42000"


class DuplicateDatabase(Duplicate):
    sqlstate = "42P04"


class DuplicateSchema(Duplicate):
    sqlstate = "42P06"


class DuplicateRelation(Duplicate):
    sqlstate = "42P07"


class DuplicateColumn(Duplicate):
    sqlstate = "42701"


class DuplicateAlias(Duplicate):
    sqlstate = "42712"


class DuplicatePrepared(Duplicate):
    sqlstate = "42P05"


class DuplicateCursor(Duplicate):
    sqlstate = "42P03"


class DuplicateObject(Duplicate):
    sqlstate = "42710"


class Ambiguous(UserError):
    sqlstate = "42000"


class AmbiguousColumn(Ambiguous):
    sqlstate = "42702"


class AmbiguousFunction(Ambiguous):
    sqlstate = "42725"


class AmbiguousAlias(Ambiguous):
    sqlstate = "42P09"


class InvalidName(UserError):
    sqlstate = "42602"


class NameTooLong(InvalidName):
    sqlstate = "42622"


class ReservedName(InvalidName):
    sqlstate = "42939"


class DependentObjects(UserError):
    """An object to be dropped has dependent objects; `detail` names them."""

    sqlstate = "2BP01"

    @classmethod
    def of(cls, what: str, dependents: Iterable[object]) -> "DependentObjects":
        return cls.listing(
            f"cannot drop {what} because other objects depend on it",
            [f"{each} depends on {what}" for each in dependents],
        )

    @classmethod
    def listing(cls, message: str, lines: Iterable[str]) -> "DependentObjects":
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        return cls(message, detail="\n".join(lines), hint=hint)
