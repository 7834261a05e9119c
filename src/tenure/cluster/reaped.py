"""A session whose process is known to be dead, ended by the parent of that process at once.

    the parent has reaped the process ──► close its lanes ──► delete the session ──► remove the note
              it sends nothing more           nothing lands late       others need not wait

Others delete a session only after its expiration, since until then its process may turn out to live. A parent
that has reaped its child knows better: the process is gone, so it speaks for it, as the node itself does when
it releases its session. What a release promises must hold first: no commit of the session is on its way. The
process may have died with a commit sent, which the engine still carries out. Closing a lane waits for a group
that the engine is at, and every later one is refused. So it comes before the deletion here; `cluster.deaths`
does it afterwards, because there the session could still be alive.

Whoever dies in between leaves a session without lanes: it can write nothing, and expires by itself.

Invariant (reaped-is-fenced): a reaped process's session is deleted only when its lanes are closed.

Walk: `processes` calls `end_reaped` for the sessions that a child had named before it was reaped.
"""

from tenure.cluster.sessions import SessionId, Sessions
from tenure.kv.store import Store


def end_reaped(store: Store, session: SessionId) -> bool:
    """Deletes the session of a process that the caller has reaped; False if it was gone already."""
    sessions = Sessions(store.keyspace)
    present = store.transact(lambda txn: sessions.find(txn, session))
    if present is None:
        return False
    for lane in present.lanes:
        store.engine.close_lane(lane)
    store.transact(lambda txn: sessions.release(txn, session))
    store.transact(lambda txn: sessions.forget_lanes(txn, session))
    return True
