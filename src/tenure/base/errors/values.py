"""Faults of values (classes 21 and 22), in PostgreSQL's words.

Walk: `expr`'s types and functions, `table`, `pipeline.reading` and the executors of `sql` raise these.
"""

from tenure.base.errors.roots import UserError


class CardinalityViolation(UserError):
    sqlstate = "21000"


class NotOneDimension(UserError):
    sqlstate = "22000"


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


class InvalidZoneOffset(UserError):
    sqlstate = "22009"


class SequenceExhausted(UserError):
    sqlstate = "2200H"


class SubstringError(UserError):
    sqlstate = "22011"


class DivisionByZero(UserError):
    sqlstate = "22012"

    def __init__(self, message: str = "division by zero") -> None:
        super().__init__(message)


class BadFrameOffset(UserError):
    sqlstate = "22013"


class InvalidNtile(UserError):
    sqlstate = "22014"


class IntervalOverflow(UserError):
    sqlstate = "22015"


class InvalidNthValue(UserError):
    sqlstate = "22016"


class InvalidRegex(UserError):
    sqlstate = "2201B"

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid regular expression: {reason}")


class InvalidLogarithm(UserError):
    sqlstate = "2201E"


class InvalidPower(UserError):
    sqlstate = "2201F"


class InvalidBucketCount(UserError):
    sqlstate = "2201G"


class NegativeLimit(UserError):
    sqlstate = "2201W"


class NegativeOffset(UserError):
    sqlstate = "2201X"


class UnknownCharacter(UserError):
    sqlstate = "22021"


class InvalidParameter(UserError):
    sqlstate = "22023"


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


class BytesLeft(InvalidBinary):
    def __init__(self, message: str = "incorrect binary data format") -> None:
        super().__init__(message)


class UntranslatableCharacter(UserError):
    sqlstate = "22P05"
