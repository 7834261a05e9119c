"""What can be wrong with what a client sends, or with who it is.

    UserError
    ├── ProtocolViolation   08P01  a message or a value that ends too early, or makes no sense
    ├── BytesLeft           22P03  a value in binary that is longer than its type
    ├── NoSuchParameter     42P02  $1 in a simple query, which gives no values
    ├── LoginRefused        28000  not this user, not from there, not without TLS
    └── WrongPassword       28P01  or no such user: nobody is told which

Walk: `pgwire.values.codecs`, the messages' parsers, `pgwire.login.scram` and `pgwire.login.login_rules` raise
these; the connection answers with them.
"""

from tenure.base.errors import UserError


class ProtocolViolation(UserError):
    sqlstate = "08P01"


class BytesLeft(UserError):
    sqlstate = "22P03"

    def __init__(self, message: str = "incorrect binary data format") -> None:
        super().__init__(message)


class NoSuchParameter(UserError):
    sqlstate = "42P02"


class LoginRefused(UserError):
    sqlstate = "28000"


class WrongPassword(UserError):
    sqlstate = "28P01"

    def __init__(self, user: str) -> None:
        super().__init__(f'password authentication failed for user "{user}"')
        self.delay_seconds = 0.0
        """How long the door holds this answer back."""
