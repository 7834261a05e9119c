"""Operations that another state would allow (55, 72): of the object, the job or the cluster.

Walk: `catalog`, `cluster`, `kv` and the statements raise these.
"""

from tenure.base.errors.roots import TenureError, UserError


class WrongState(UserError):
    sqlstate = "55000"


class TemporaryTablesLost(TenureError):
    """The node session that the temporary tables of a SQL session belonged to is gone.

    The statement is not at fault, so nobody may go on without telling the client.
    """

    sqlstate = "55000"


class IllegalStep(WrongState):
    """The job's state does not allow the step."""


class OlderInstances(WrongState):
    """The cluster cannot have that version: nodes of an older one are alive, or the cluster has passed it."""


class ObjectInUse(UserError):
    sqlstate = "55006"


class FixedVariable(UserError):
    sqlstate = "55P02"


class LockNotAvailable(UserError):
    sqlstate = "55P03"


class UnsafeNewValue(UserError):
    sqlstate = "55P04"


class SnapshotTooOld(UserError):
    sqlstate = "72000"
    head: bytes = b""
    """The index whose history is gone, by its head; empty if it is not one."""


class RowsIncomplete(TenureError):
    """Some rows were delivered and the rest cannot be: the caller starts over with another method.

    Clients never see it.
    """

    sqlstate = "XX000"
