"""What can be wrong with a change of the catalog: PostgreSQL's SQLSTATE and its words.

UserError
├── Duplicate                      a name is taken
│   ├── DuplicateColumn     42701
│   ├── DuplicateRelation   42P07  tables, views, sequences and indexes
│   ├── DuplicateSchema     42P06
│   ├── DuplicateDatabase   42P04
│   └── DuplicateObject     42710  types, labels, constraints
├── Undefined                      a name stands for nothing
│   ├── UndefinedColumn     42703
│   ├── UndefinedRelation   42P01
│   ├── UndefinedSchema     3F000
│   ├── UndefinedDatabase   3D000
│   └── UndefinedObject     42704  types, constraints, indexes
├── InvalidDefinition              what was asked for makes no sense
│   ├── InvalidName         42602
│   ├── InvalidTable        42P16
│   ├── InvalidObject       42P17
│   ├── InvalidForeignKey   42830
│   ├── WrongKind           42809
│   └── WrongSyntax         42601  it would be fine for another kind of column
├── DependentObjects        2BP01  others need it; `detail` names them
├── WrongState              55000  it would be fine if the object were otherwise
├── ObjectInUse             55006  a name is draining: older leases may still resolve it
├── TooManyColumns          54011
└── NotSupported            0A000
"""

from collections.abc import Iterable

from tenure.base.errors import UserError


class Duplicate(UserError):
    pass


class DuplicateColumn(Duplicate):
    sqlstate = "42701"


class DuplicateRelation(Duplicate):
    sqlstate = "42P07"


class DuplicateSchema(Duplicate):
    sqlstate = "42P06"


class DuplicateDatabase(Duplicate):
    sqlstate = "42P04"


class DuplicateObject(Duplicate):
    sqlstate = "42710"


class Undefined(UserError):
    pass


class UndefinedColumn(Undefined):
    sqlstate = "42703"


class UndefinedRelation(Undefined):
    sqlstate = "42P01"


class UndefinedSchema(Undefined):
    sqlstate = "3F000"


class UndefinedDatabase(Undefined):
    sqlstate = "3D000"


class UndefinedObject(Undefined):
    sqlstate = "42704"


class InvalidDefinition(UserError):
    pass


class InvalidName(InvalidDefinition):
    sqlstate = "42602"


class InvalidTable(InvalidDefinition):
    sqlstate = "42P16"


class InvalidObject(InvalidDefinition):
    sqlstate = "42P17"


class InvalidForeignKey(InvalidDefinition):
    sqlstate = "42830"


class WrongKind(InvalidDefinition):
    sqlstate = "42809"


class WrongSyntax(InvalidDefinition):
    sqlstate = "42601"


class WrongState(UserError):
    sqlstate = "55000"


class DependentObjects(UserError):
    """What is to be dropped is needed by others."""

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


class ObjectInUse(UserError):
    sqlstate = "55006"


class TooManyColumns(UserError):
    sqlstate = "54011"


class NotSupported(UserError):
    sqlstate = "0A000"
