"""What can be wrong with a value, a type or an expression, with PostgreSQL's SQLSTATEs.

    UserError
    ├── StringTooLong           22001
    ├── OutOfRange              22003  a number that its type cannot hold
    ├── NullNotAllowed          22004
    ├── InvalidDatetime         22007
    ├── DatetimeOverflow        22008
    ├── SubstringError          22011
    ├── DivisionByZero          22012
    ├── IntervalOverflow        22015
    ├── InvalidPower            2201F
    ├── UnknownCharacter        22021  a zero byte or half a surrogate pair in text
    ├── InvalidEscape           22025
    ├── SubscriptError          2202E
    ├── ArraySizesDiffer        2202E
    ├── InvalidText             22P02  text that is no value of the type
    ├── InvalidBinary           22P03
    ├── UntranslatableCharacter 22P05
    ├── AmbiguousFunction       42725
    ├── DatatypeMismatch        42804
    │   └── IndeterminateType   42804  an untyped literal where nothing says its type
    ├── CannotCast              42846
    ├── UndefinedColumn         42703
    ├── UndefinedObject         42704  no such type
    ├── UndefinedFunction       42883
    ├── InvalidDefinition       42P17  not immutable where it must be
    ├── LimitExceeded           54000
    ├── UnsafeNewValue          55P04  a label of an enum that is on its way
    └── NotSupported            0A000  PostgreSQL has it, Tenure does not

Walk: every module of `expr` raises these; `sql` shows them to the client.
"""

from tenure.base.errors import UserError


class StringTooLong(UserError):
    sqlstate = "22001"


class OutOfRange(UserError):
    sqlstate = "22003"


class NullNotAllowed(UserError):
    sqlstate = "22004"


class InvalidDatetime(UserError):
    sqlstate = "22007"


class DatetimeOverflow(UserError):
    sqlstate = "22008"


class SubstringError(UserError):
    sqlstate = "22011"


class DivisionByZero(UserError):
    sqlstate = "22012"

    def __init__(self, message: str = "division by zero") -> None:
        super().__init__(message)


class IntervalOverflow(UserError):
    sqlstate = "22015"


class InvalidPower(UserError):
    sqlstate = "2201F"


class UnknownCharacter(UserError):
    sqlstate = "22021"


class InvalidEscape(UserError):
    sqlstate = "22025"


class SubscriptError(UserError):
    sqlstate = "2202E"


class ArraySizesDiffer(UserError):
    sqlstate = "2202E"


class InvalidText(UserError):
    sqlstate = "22P02"


class InvalidBinary(UserError):
    sqlstate = "22P03"


class UntranslatableCharacter(UserError):
    sqlstate = "22P05"


class AmbiguousFunction(UserError):
    sqlstate = "42725"


class DatatypeMismatch(UserError):
    sqlstate = "42804"


class CannotCast(UserError):
    sqlstate = "42846"


class UndefinedColumn(UserError):
    sqlstate = "42703"


class UndefinedObject(UserError):
    sqlstate = "42704"


class UndefinedFunction(UserError):
    sqlstate = "42883"


class InvalidDefinition(UserError):
    sqlstate = "42P17"


class IndeterminateType(DatatypeMismatch):
    sqlstate = "42804"


class LimitExceeded(UserError):
    sqlstate = "54000"


class UnsafeNewValue(UserError):
    sqlstate = "55P04"


class NotSupported(UserError):
    sqlstate = "0A000"
