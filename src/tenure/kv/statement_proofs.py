"""What the statements of a READ COMMITTED transaction have read for their writes: each with its own time.

    statement 1 reads at t1 ──► rows at t1 ─────────┐
    statement 2 reads at t2 ──► rows at t2          ├──► proved from their own time on, at the commit
                                constraint at t2 ───┘

The rows that a statement found are no reads of the transaction: the next statement may find others. What
remains to be proved is of two kinds:

    rows          keys that it writes or has locked; a change of one makes the commit fail (40001)
    constraints   keys or spans that a constraint depends on: a unique key that must be absent, the target
                  of a reference. If one has changed, the constraint is looked at again at the newest time
                  (`Constraint.look_again`): it raises the constraint's own error, or acts on rows that came.

Going back to a savepoint gives up the proofs since then, with the writes that needed them.

Invariant (statement-proofs): a row that is written or locked is unchanged from the time at which it was first
read under its lock up to `commit_at`, and so are the keys and spans that a constraint was last looked at by.

Walk: `kv.commit_proof` keeps one for a READ COMMITTED transaction, and proves it before the commit.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Keyspace
from tenure.kv.reads import NOTHING_READ, Reads, RefreshSpans

Check = Callable[[Timestamp, RefreshSpans], bool]
"""Whether reads of a time are still unchanged."""


class RowProof(NamedTuple):
    """The rows that were read for writing at one time."""

    at: Timestamp
    reads: RefreshSpans


class Constraint(NamedTuple):
    at: Timestamp
    reads: RefreshSpans
    look_again: Callable[[], None]
    """Looks at it again at the newest time; counts what it reads then, or raises."""


class StatementProofs:
    __slots__ = ("constraints", "rows", "unproved")

    def __init__(self, keyspace: Keyspace) -> None:
        self.rows: list[RowProof] = []
        self.constraints: list[Constraint] = []
        self.unproved = RefreshSpans(keyspace)
        """Counts the reads by which a statement finds its rows; nobody proves them."""

    @property
    def is_empty(self) -> bool:
        return not (self.rows or self.constraints)

    def times(self) -> Iterator[Timestamp]:
        yield from (each.at for each in self.rows)
        yield from (each.at for each in self.constraints)

    def set_aside(self, at: Timestamp, reads: RefreshSpans) -> None:
        """Keeps the rows of a statement that is over; the next one counts its own."""
        self.rows.append(RowProof(at, reads.take(NOTHING_READ)))

    def add_constraint(self, at: Timestamp, reads: RefreshSpans, look_again: Callable[[], None]) -> None:
        self.constraints.append(Constraint(at, reads, look_again))

    def forget(self, since: Reads, current: RefreshSpans) -> None:
        """Gives up all proofs since a mark; `current` are the rows of the statement under way."""
        if since.groups < len(self.rows):
            current.forget(NOTHING_READ)
            self.rows[since.groups].reads.forget(since)
            has_some = since.points or since.spans
            del self.rows[since.groups + (1 if has_some else 0) :]
        else:
            current.forget(since)
        del self.constraints[since.constraints :]

    def changed_rows(self, at: Timestamp, is_unchanged: Check) -> RowProof | None:
        """The first rows of an earlier time that have changed; the others hold at `at` from now on."""
        for number, proof in enumerate(self.rows):
            if proof.at != at:
                if not is_unchanged(*proof):
                    return proof
                self.rows[number] = proof._replace(at=at)
        return None

    def changed_constraints(self, at: Timestamp, is_unchanged: Check) -> list[Constraint]:
        """The constraints of earlier times that must be looked at again; the others hold at `at` from now
        on."""
        changed: list[Constraint] = []
        by_time: dict[Timestamp, list[int]] = {}
        for number, constraint in enumerate(self.constraints):
            if constraint.at != at:
                by_time.setdefault(constraint.at, []).append(number)
        for time, numbers in by_time.items():
            of_time = [self.constraints[number] for number in numbers]
            is_whole = len(of_time) > 1 and is_unchanged(time, of_time[0].reads.joined(of_time[1:]))
            for number, constraint in zip(numbers, of_time, strict=True):
                if is_whole or is_unchanged(time, constraint.reads):
                    self.constraints[number] = constraint._replace(at=at)
                else:
                    changed.append(constraint)
        return changed

    def drop(self, changed: list[Constraint]) -> None:
        """Drops constraints that are about to be looked at again."""
        dropped = set(map(id, changed))
        self.constraints = [each for each in self.constraints if id(each) not in dropped]

    def clear(self) -> None:
        """The transaction is over."""
        self.rows.clear()
        self.constraints.clear()
        self.unproved.clear()
