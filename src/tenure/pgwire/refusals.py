"""What a door says by itself: it does not offer that, or it must close.

    TenureError
    ├── NotOffered           0A000  the protocol has it, this door does not
    ├── TooManyConnections   53300
    ├── ShuttingDown         57P01  the node drains, or an administrator said so
    ├── IdleTooLong          57P05
    ├── IdleInTransaction    25P03
    ├── TransactionTooLong   25P04
    └── LoginTooSlow         08P01  authentication took too long

Walk: `pgwire.connection`, `pgwire.login.startup` and `pgwire.server` raise or send these.
"""

from tenure.base.errors import TenureError


class NotOffered(TenureError):
    sqlstate = "0A000"


class TooManyConnections(TenureError):
    sqlstate = "53300"


class ShuttingDown(TenureError):
    sqlstate = "57P01"


class IdleTooLong(TenureError):
    sqlstate = "57P05"


class IdleInTransaction(TenureError):
    sqlstate = "25P03"


class TransactionTooLong(TenureError):
    sqlstate = "25P04"


class LoginTooSlow(TenureError):
    sqlstate = "08P01"
