"""What would be right at another time (55, 72): the object, the job or the cluster is in another state.

Walk: `catalog`, `cluster`, `kv` and the statements raise these.
"""

from tenure.base.errors.roots import TenureError, UserError


class WrongState(UserError):
    sqlstate = "55000"


class IllegalStep(WrongState):
    """The job's state does not allow the step."""


class OlderInstances(WrongState):
    """The cluster cannot have that version: nodes of an older one are alive, or it is past it."""


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


class RowsIncomplete(TenureError):
    """Some rows were delivered and the others cannot be: the caller starts over, another way.

    Clients never see it.
    """

    sqlstate = "XX000"
