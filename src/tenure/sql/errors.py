"""What a statement or a session can do wrong, with PostgreSQL's SQLSTATEs.

    UserError
    ├── UndefinedTable          42P01
    ├── UndefinedDatabase       3D000
    ├── ActiveTransaction       25001  not inside a transaction block, or not after its first statement
    ├── ReadOnlyTransaction     25006
    ├── NoTransaction           25P01
    ├── InFailedTransaction     25P02  the block has failed: only its end is accepted
    ├── InvalidSavepoint        3B001
    ├── DuplicatePrepared       42P05
    ├── UndefinedPrepared       26000
    ├── DuplicateCursor         42P03
    ├── UndefinedCursor         34000
    ├── ActivePortal            24000  a portal cannot close itself
    ├── PortalOver              55000  it has been run, or has failed
    ├── PortalWithoutRows       0A000  nothing can be fetched from it
    ├── UndefinedVariable       42704
    ├── FixedVariable           55P02
    ├── PlanChanged             0A000  the result of a prepared statement would have other columns
    ├── TooFewParameters        08P01
    ├── InsufficientPrivilege   42501
    ├── ResultTooLarge          54000
    ├── TooManyNames            53400  prepared statements or cursors
    └── StatementTimeout        57014

`Unfinished` is told to nobody: whoever asked for rows that may turn out not to count starts over.
What ends the whole session is an `answers.Terminated`: transaction_timeout (25P04), lost locks (57P01).

Walk: `sql` raises them; the door sends them.
"""

from tenure.base.errors import TenureError, UserError
from tenure.sql.session.answers import Terminated


class UndefinedTable(UserError):
    sqlstate = "42P01"


class UndefinedDatabase(UserError):
    sqlstate = "3D000"


class ActiveTransaction(UserError):
    sqlstate = "25001"


class ReadOnlyTransaction(UserError):
    sqlstate = "25006"


class NoTransaction(UserError):
    sqlstate = "25P01"


class InFailedTransaction(UserError):
    sqlstate = "25P02"

    def __init__(self) -> None:
        super().__init__("current transaction is aborted, commands ignored until end of transaction block")


class InvalidSavepoint(UserError):
    sqlstate = "3B001"


class DuplicatePrepared(UserError):
    sqlstate = "42P05"


class UndefinedPrepared(UserError):
    sqlstate = "26000"


class DuplicateCursor(UserError):
    sqlstate = "42P03"


class UndefinedCursor(UserError):
    sqlstate = "34000"


class ActivePortal(UserError):
    sqlstate = "24000"


class PortalOver(UserError):
    sqlstate = "55000"


class PortalWithoutRows(UserError):
    sqlstate = "0A000"


class UndefinedVariable(UserError):
    sqlstate = "42704"


class FixedVariable(UserError):
    sqlstate = "55P02"


class PlanChanged(UserError):
    sqlstate = "0A000"
    routine = "RevalidateCachedQuery"
    """PostgreSQL's: by this name, not by the text, drivers know that they have to prepare again."""


class TooFewParameters(UserError):
    sqlstate = "08P01"


class TooManyNames(UserError):
    sqlstate = "53400"


class StatementTimeout(UserError):
    sqlstate = "57014"


class InsufficientPrivilege(UserError):
    sqlstate = "42501"


class ResultTooLarge(UserError):
    sqlstate = "54000"


class Unfinished(TenureError):
    """Some rows were given, and the others cannot be had: start over, another way."""


class TransactionTimeout(Terminated):
    sqlstate = "25P04"


class LocksLost(Terminated):
    sqlstate = "57P01"
