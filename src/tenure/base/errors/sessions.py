"""Mistakes of a client's session, and what ends a session (08, 24, 25, 28, 57).

Walk: `sql.session`, the statements and `pgwire` raise these.
"""

from tenure.base.errors.roots import TenureError, UserError

# The protocol and the login


class ProtocolViolation(UserError):
    sqlstate = "08P01"


class TooFewParameters(ProtocolViolation):
    pass


class LoginRefused(UserError):
    sqlstate = "28000"


class WrongPassword(UserError):
    """The password is wrong or there is no such user: clients are not told which."""

    sqlstate = "28P01"

    def __init__(self, user: str) -> None:
        super().__init__(f'password authentication failed for user "{user}"')
        self.delay_seconds = 0.0
        """How long the door delays this answer."""


class UnfitCertificate(UserError):
    """The files given with --cert and --key cannot be used."""

    sqlstate = "F0000"


# Transaction blocks and portals


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


class ActivePortal(UserError):
    sqlstate = "24000"


# The end of a statement


class QueryCanceled(TenureError):
    sqlstate = "57014"


class StatementTimeout(TenureError):
    """The statement is not at fault, so nobody may try it in another way."""

    sqlstate = "57014"


# The end of the session


class Terminated(TenureError):
    """The session cannot go on: the door tells the client why (FATAL) and closes."""

    sqlstate = "57P01"


class ShuttingDown(Terminated):
    pass


class LocksLost(Terminated):
    pass


class LoginTooSlow(Terminated):
    sqlstate = "08P01"


class IdleTooLong(Terminated):
    sqlstate = "57P05"


class IdleInTransaction(Terminated):
    sqlstate = "25P03"


class TransactionTimeout(Terminated):
    sqlstate = "25P04"
