"""Limits that were exceeded (53, 54): of memory, connections, rows, columns or nesting.

Walk: `base.memory`, `expr`, `table`, `retention`, `bulk`, `sql` and `pgwire` raise these.
"""

from tenure.base.errors.roots import TenureError, UserError


class OutOfMemory(UserError):
    sqlstate = "53200"


class TooManyConnections(TenureError):
    sqlstate = "53300"


class TooManyNames(UserError):
    sqlstate = "53400"


class TooManyProtections(UserError):
    sqlstate = "53400"


class LimitExceeded(UserError):
    sqlstate = "54000"


class CommitTooLarge(LimitExceeded):
    pass


class TooComplex(LimitExceeded):
    sqlstate = "54001"


class TooManyColumns(LimitExceeded):
    sqlstate = "54011"
