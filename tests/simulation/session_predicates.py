"""What must hold of sessions: I13 and I14, I20 and I21, and that the dead's commits land nowhere (I5).

Walk: `job_predicates.check` runs each of `PREDICATES` over a `JobIndex`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Set

from tenure.base.timestamp import Timestamp, to_text
from tenure.cluster.sessions.session_records import SessionId
from tests.simulation.job_history import JobIndex, Life
from tests.simulation.job_knobs import TTL_MAX, JobKnobs
from tests.simulation.predicates import Violation


def frontiers(index: JobIndex) -> Iterator[Violation]:
    """I13: what a node takes its expiration for was committed and acknowledged, of the same epoch."""
    acked = {id: _acknowledged(life) for id, life in index.lives.items()}
    for step, session, expires_at in index.trace.frontiers:
        if index.trace.owners.get(session, index.tenant) != index.tenant:
            continue
        known = [expires for ended, expires in acked.get(session, ()) if ended <= step]
        if expires_at > max(known, default=0):
            yield Violation("I13", f"{session} was taken to expire at {to_text(expires_at)}", step)


def _acknowledged(life: Life) -> list[tuple[int, Timestamp]]:
    """(when the node was told, what) for each expiration that this session's node was told of."""
    told = [(life.inserted.writer, life.first_expires_at())]
    told += [(version.writer, expires) for version, expires in life.expirations if expires is not None]
    return [(txn.ended, expires) for txn, expires in told if txn.state == "committed"]


def frontier_uses(index: JobIndex) -> Iterator[Violation]:
    """I13: what committed below the frontier did so while the session was there."""
    for txn in index.trace.txns:
        use = index.trace.frontier_uses.get(txn.id)
        if use is None or txn.landed_at is None or txn.tenant != index.tenant:
            continue
        is_released = use.session in index.trace.releases
        if not is_released and not index.is_present_before(use.session, txn.landed_at):
            message = f"t{txn.id} committed at {to_text(txn.landed_at)} below the frontier of {use.session}"
            yield Violation("I13", f"{message}, which was gone", txn.landed, (txn.id,))


def epochs(index: JobIndex) -> Iterator[Violation]:
    """I14: an epoch is the timestamp of its insert; expirations do not fall; frozen ones do not grow."""
    for life in index.lives.values():
        txn = life.inserted.writer
        if life.id.epoch_at != life.inserted.at:
            yield Violation("I14", f"{life.id} has not its insert's time", life.inserted.step, (txn.id,))
        last_at = life.first_expires_at()
        for version, expires_at in life.expirations:
            if expires_at is None:
                continue
            if expires_at < last_at:
                message = f"the expiration of {life.id} fell to {to_text(expires_at)}"
                yield Violation("I14", message, version.step, (version.writer.id,))
            if expires_at > last_at and any(mark.at < version.at for mark in life.freezes):
                message = f"the frozen {life.id} lives on to {to_text(expires_at)}"
                yield Violation("I14", message, version.step, (version.writer.id,))
            last_at = max(last_at, expires_at)


def instances(index: JobIndex) -> Iterator[Violation]:
    """I14: no two sessions that are there at once have one instance id; a later one outlives the former."""
    by_instance: dict[int, list[Life]] = {}
    for life in sorted(index.lives.values(), key=lambda life: life.inserted.at):
        lives = by_instance.setdefault(life.id.instance, [])
        lives.append(life)
        if len(lives) == 1:
            continue
        index.trace.seen["instance id recycled"] += 1
        former, txns = lives[-2], (life.inserted.writer.id,)
        if former.is_present_before(life.inserted.at):
            yield Violation("I14", f"{life.id} beside {former.id}", life.inserted.step, txns)
        deleted = former.deleted
        if deleted is None or former.id in index.trace.releases:
            continue
        if life.first_expires_at() <= former.expires_before(deleted.at):
            yield Violation("I14", f"{life.id} expires before {former.id}", life.inserted.step, txns)


def resurrections(index: JobIndex) -> Iterator[Violation]:
    """I20: a session is inserted once, deleted once, with all its rows, and never written again."""
    for session, version in index.orphans:
        yield Violation("I20", f"{session} never was, and is written", version.step, (version.writer.id,))
    for life in index.lives.values():
        deleted = life.deleted
        rows = [*life.versions, *(version for version, _ in life.expirations), *life.freezes]
        for version in rows:
            is_again = version in life.versions[1:] and version.value is not None
            is_late = deleted is not None and version.at > deleted.at
            if is_again or is_late:
                yield Violation("I20", f"{life.id} is written again", version.step, (version.writer.id,))
        for last in (life.expirations and life.expirations[-1][0], life.freezes and life.freezes[-1]):
            if last and deleted is not None and last.value is not None:
                yield Violation("I20", f"a row of {life.id} outlives it", deleted.step, (deleted.writer.id,))


def deletions(index: JobIndex) -> Iterator[Violation]:
    """I21: others delete a session only after its stored expiration."""
    for life in index.lives.values():
        deleted = life.deleted
        if deleted is None:
            continue
        owner, by = index.process_of(life.inserted.writer), index.process_of(deleted.writer)
        is_own_release = owner == by and index.trace.releases.get(life.id) == by
        if owner != by:
            index.trace.seen["session deleted by another"] += 1
            if any(mark.value is not None for mark in life.freezes):
                index.trace.seen["frozen session died"] += 1
        expires_at = life.expires_before(deleted.at)
        if not is_own_release and expires_at >= deleted.at:
            message = f"{life.id} was deleted at {to_text(deleted.at)}, but lived to {to_text(expires_at)}"
            yield Violation("I21", message, deleted.step, (deleted.writer.id,))


def answers(index: JobIndex) -> Iterator[Violation]:
    """I21, I26: "dead" is said of what is gone; the store's word "alive" of what was there when asked.

    A wait that gives up although the session was gone before it began rests on something else.
    """
    for began, step, question, session, answer, tenant in index.trace.answers:
        if tenant != index.tenant:
            continue
        life = index.lives.get(session)
        if answer == "dead" and life is not None and not life.is_deleted_by_step(step):
            yield Violation("I21", f"{question} says that {session} is dead, and it is there", step)
        if answer == "alive" and (life is None or life.is_deleted_by_step(began - 1)):
            number = "I26" if question == "await_death" else "I21"
            yield Violation(number, f"{question} says that {session} lives, and it was gone before", step)
        is_observed = question == "observe" and answer == "alive" and life is not None
        if is_observed and life is not None and _is_expired(index, life, step):
            index.trace.seen["expired session observed"] += 1


def _is_expired(index: JobIndex, life: Life, step: int) -> bool:
    position = bisect_right(index.trace.landings, step, key=lambda landing: landing.step)
    clock_at = index.trace.landings[position - 1].at if position else 0
    return life.expires_before(clock_at + 1) < clock_at


def burials(index: JobIndex) -> Iterator[Violation]:
    """I5: once a session is buried, nothing lands that its node had sent under it."""
    buried: dict[SessionId, int] = {}
    for burial in index.trace.burials:
        life = index.lives.get(burial.session)
        deleted = None if life is None else life.deleted
        if deleted is None or not burial.began < deleted.step < burial.step:
            continue
        if index.process_of(deleted.writer) == burial.process:
            buried.setdefault(burial.session, burial.step)
    for landing in index.trace.landings:
        left, session = index.trace.left_under.get(landing.txn.id, (0, None))
        if session is not None and left < buried.get(session, 0) < landing.step:
            message = f"t{landing.txn.id}, sent under {session}, landed after its burial"
            yield Violation("I5", message, landing.step, (landing.txn.id,))


def lanes(index: JobIndex, open_lanes: Set[bytes]) -> Iterator[Violation]:
    """I20: an open lane that a session has named is named by one that is there, or by a note."""
    named = {lane for life in index.lives.values() if life.deleted is None for lane in life.lanes}
    named |= {lane for _, lanes in index.noted_lanes.values() for lane in lanes}
    for life in index.lives.values():
        if life.deleted is not None and not open_lanes.isdisjoint({*life.lanes} - named):
            message = f"a lane of {life.id} outlives it, and nothing says so"
            yield Violation("I20", message, life.deleted.step, (life.deleted.writer.id,))


def notes(index: JobIndex, knobs: JobKnobs) -> Iterator[Violation]:
    """I26: whatever was broken off, the lanes of the dead are closed in the end."""
    reaped = knobs.seconds - 2 * TTL_MAX - knobs.adoption_seconds
    for session, (version, _) in index.noted_lanes.items():
        if index.t[version.writer.id] < reaped:
            message = f"the lanes of {session} are still to be closed"
            yield Violation("I26", message, version.step, (version.writer.id,))


PREDICATES: tuple[Callable[[JobIndex], Iterator[Violation]], ...] = (
    frontiers,
    frontier_uses,
    epochs,
    instances,
    resurrections,
    deletions,
    answers,
    burials,
)
