"""Ends the session of a process that is known to be dead at once.

    the death is proved ──► close its lanes ──► delete the session ──► remove the note
     it sends nothing more      nothing lands late       others need not wait

Others delete a session only after its expiration, since until then its process may turn out to be alive. Two
can know better: the parent of the process, once it has reaped it, and a process that has got the lock that
the dead process held as long as it lived (`storage.lifelines`), such as a node that is started again. The
process is gone, so they act for it, as the node itself does when it releases its session. A release requires
that no commit of the session is on its way. But the process may have died with a commit sent, which the
engine still carries out. Closing a lane waits for a group that the engine is working on, and every later one
is refused. So the lanes are closed before the deletion here; `cluster.sessions.deaths` closes them
afterwards, because there the session could still be alive.

A process that dies in between leaves a session without lanes: it can write nothing, and expires by itself.

Invariant (reaped-is-fenced): a dead process's session is deleted only when its lanes are closed.

Walk: `processes` calls `end_reaped` for the sessions that a child had named before it was reaped;
`composition.cluster_layer` calls `end_proved` when it starts.
"""

import logging

from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.storage.lifelines import Lifelines

_log = logging.getLogger(__name__)


def end_proved(store: Store, lifelines: Lifelines) -> None:
    """Deletes the sessions of processes that are certainly dead; all others expire by themselves."""
    for present in list(Sessions(store.keyspace).list(store.snapshot())):
        lifeline = present.lifeline
        if lifeline is not None and lifelines.is_dead(lifeline):
            if end_reaped(store, present.id):
                _log.info("ended session %s: its process on this machine is dead", present.id)
            lifelines.remove(lifeline)


def end_reaped(store: Store, session: SessionId) -> bool:
    """Deletes the session of a process that is certainly dead; False if it was gone already."""
    sessions = Sessions(store.keyspace)
    present = store.transact(lambda txn: sessions.find(txn, session))
    if present is None:
        return False
    for lane in present.lanes:
        store.engine.close_lane(lane)
    store.transact(lambda txn: sessions.release(txn, session))
    store.transact(lambda txn: sessions.forget_lanes(txn, session))
    return True
