"""Judges SQL transactions and imports: whether they could have run one after the other, and did.

    attempts (what was said and answered)  +  facts (what the store holds, and since when)  ->  violations

A commit's timestamp is its place in the order. So the order need not be searched for: all that landed is run
again, one after the other, over plain dictionaries (`serial_model`), and each statement has to answer
what it answered to its client. An import is one transaction more, which reads and writes its whole table.

    answer      a statement saw something else than it must have: rows of a half import, a phantom, old rows
    lost        what was acknowledged is not there
    phantom     what was refused, or nobody asked for, is there
    half        a revision is missing, is another one, or two attempts share a time
    duplicate   two rows of one key were accepted; or rows were refused that no one was in the way of
    order       an attempt that began after another was acknowledged took effect before it
    watch       a watch went past an import without saying so, or its revisions are not those of its time
    error       an error that nobody has to expect

Attempts that failed were told the truth as well: as far as they got they are judged by the time they read at.

Walk: `import_history` calls `check`; `test_serial_checker` shows that each rule catches its mutants.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from tests.faults.serial_model import TABLES, Answer, Duplicate, Import, Row, State, Statement
from tests.faults.sql_history import ACKED, REFUSED

UNIQUE_VIOLATION = "23505"
OFFLINE, CANCELED = "55000", "57014"
ORDINARY = frozenset({"", "40001", "40P01", "40003", "57P01", "08006", OFFLINE, CANCELED, UNIQUE_VIOLATION})
SHOWN_MAX = 20


class Step(NamedTuple):
    statement: Statement
    answer: Answer | None
    """None of the last one if it failed."""


@dataclass(frozen=True)
class Attempt:
    """A transaction, or an import, as its client knows it; times by one monotonic clock."""

    number: int
    """Its own; it is written into a table of its own, or by an import into each row."""
    steps: tuple[Step, ...]
    state: str
    began: int
    ended: int
    read_at: int | None = None
    """As of when it read, as the node said after its last statement."""
    is_past: bool = False
    """Whether that was a time of its choice."""
    is_writer: bool = True
    sqlstate: str = ""
    message: str = ""

    @property
    def is_import(self) -> bool:
        return bool(self.steps) and isinstance(self.steps[0].statement, Import)


class Revision(NamedTuple):
    table: str
    id: int
    at: int
    row: Row | None


Changes = dict[tuple[str, int], Row | None]
"""By table and id, what a row is from then on."""


@dataclass(frozen=True)
class Life:
    """What one watch over tables told: everything of (since_at, resolved_at], and maybe to scan again."""

    tables: tuple[str, ...]
    since_at: int
    resolved_at: int
    told: tuple[tuple[str, int, int, bool], ...] | None
    """Table, id, time, and whether it is there; None of a watch over other indexes."""
    has_moved: bool


@dataclass
class Facts:
    """What the store and the lake hold in the end."""

    landed: dict[int, int]
    """When each transaction that noted its number was committed."""
    revisions: list[Revision]
    lives: list[Life] = field(default_factory=list)


def check(attempts: Sequence[Attempt], facts: Facts, *, allowed: Collection[str] = ORDINARY) -> list[str]:
    checking = _Checking(attempts, facts, allowed)
    found = list(checking.all())
    return found[:SHOWN_MAX] + ([f"... and {len(found) - SHOWN_MAX} more"] if len(found) > SHOWN_MAX else [])


class _Checking:
    def __init__(self, attempts: Sequence[Attempt], facts: Facts, allowed: Collection[str]) -> None:
        self._attempts = {each.number: each for each in attempts}
        self._facts = facts
        self._allowed = allowed
        self._landed = dict(facts.landed)
        self._imports: dict[str, list[int]] = defaultdict(list)
        self._by_at: dict[int, Changes] = defaultdict(dict)
        self._ats: list[int] = [0]
        self._states: list[State] = [{table: {} for table in TABLES}]
        """After each time of `_ats`."""

    def all(self) -> Iterator[str]:
        yield from self._place_imports()
        yield from self._outcomes()
        yield from self._replay()
        yield from self._reads()
        yield from self._refusals()
        yield from self._order()
        yield from self._watches()
        yield from self._errors()

    # ── what is there ──────────────────────────────────────────────────────────────────────────

    def _place_imports(self) -> Iterator[str]:
        """An import's rows say when it was published."""
        for revision in self._facts.revisions:
            self._by_at[revision.at][revision.table, revision.id] = revision.row
            attempt = None if revision.row is None else self._attempts.get(revision.row.tag)
            if attempt is not None and attempt.is_import:
                at = self._landed.setdefault(attempt.number, revision.at)
                if at != revision.at:
                    yield f"half: import {attempt.number} is there at {at} and at {revision.at}"
        for number, at in self._landed.items():
            attempt = self._attempts.get(number)
            if attempt is not None and attempt.is_import:
                self._imports[_table(attempt)].append(at)

    def _outcomes(self) -> Iterator[str]:
        for number in self._landed.keys() - self._attempts.keys():
            yield f"phantom: {number} is there and nobody asked for it"
        for number, attempt in self._attempts.items():
            is_there = number in self._landed
            if attempt.state == ACKED and attempt.is_writer and not is_there:
                yield f"lost: {_shown(attempt)} was acknowledged and is not there"
            if attempt.state == REFUSED and is_there:
                yield f"phantom: {_shown(attempt)} was refused ({attempt.sqlstate}) and is there"
        for at, count in Counter(self._landed.values()).items():
            if count > 1:
                yield f"half: {count} attempts are there at {at}"
        for at in self._by_at.keys() - set(self._landed.values()):
            yield f"phantom: revisions at {at} are nobody's: {sorted(self._by_at[at])[:3]}"

    # ── one after the other ────────────────────────────────────────────────────────────────────

    def _replay(self) -> Iterator[str]:
        for number, at in sorted(self._landed.items(), key=lambda item: item[1]):
            attempt = self._attempts.get(number)
            before = self._states[-1]
            after = dict(before)
            if attempt is not None:
                yield from _wrong_answers(attempt, after, at, has_landed=True)
            changes = _changes(before, after)
            there = {
                key: row
                for key, row in self._by_at.get(at, {}).items()
                if row is not None or key in changes or _row(before, key) is not None
            }
            yield from _differences(f"half: {number} at {at}", changes, there)
            self._ats.append(at)
            self._states.append(_with(before, there))

    def _state_at(self, at: int) -> State:
        return dict(self._states[bisect_right(self._ats, at) - 1])

    def _reads(self) -> Iterator[str]:
        for attempt in self._attempts.values():
            if attempt.read_at is not None:
                yield from _wrong_answers(attempt, self._state_at(attempt.read_at), attempt.read_at)

    def _refusals(self) -> Iterator[str]:
        """Whoever was told of a duplicate could have met one."""
        for attempt in self._attempts.values():
            if attempt.sqlstate != UNIQUE_VIOLATION:
                continue
            first = bisect_right(self._ats, self._acknowledged_before(attempt.began)) - 1
            states = [
                state
                for at, state in list(zip(self._ats, self._states, strict=True))[first:]
                if self._began_before(at, attempt.ended)
            ]
            if not any(_meets_duplicate(attempt, dict(state)) for state in states):
                yield f"duplicate: {_shown(attempt)} was refused for a key that nobody had: {attempt.message}"

    # ── when ───────────────────────────────────────────────────────────────────────────────────

    def _order(self) -> Iterator[str]:
        for number, attempt in self._attempts.items():
            floor = self._acknowledged_before(attempt.began)
            at = self._landed.get(number)
            if at is not None and at <= floor:
                yield f"order: {_shown(attempt)} took effect at {at}, below {floor} before it began"
            if attempt.read_at is not None and not attempt.is_past and attempt.read_at < floor:
                yield f"order: {_shown(attempt)} read at {attempt.read_at}, below {floor} before it began"

    def _acknowledged_before(self, moment: int) -> int:
        """The newest time that a client had heard of before a moment."""
        position = bisect_left(self._acks, moment, key=lambda each: each[0])
        return self._acks[position - 1][1] if position else 0

    @cached_property
    def _acks(self) -> list[tuple[int, int]]:
        """Moments of acknowledgements, each with the newest time acknowledged by then."""
        acked = [
            each for number, each in self._attempts.items() if each.state == ACKED and number in self._landed
        ]
        ends = sorted((each.ended, self._landed[each.number]) for each in acked)
        newest = accumulate((at for _, at in ends), max)
        return [(ended, at) for (ended, _), at in zip(ends, newest, strict=True)]

    def _began_before(self, at: int, moment: int) -> bool:
        attempt = self._attempts.get(self._numbers.get(at, -1))
        return attempt is None or attempt.began <= moment

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {at: number for number, at in self._landed.items()}

    # ── watches ────────────────────────────────────────────────────────────────────────────────

    def _watches(self) -> Iterator[str]:
        for life in self._facts.lives:
            span = range(life.since_at + 1, life.resolved_at + 1)
            for table in life.tables:
                for at in self._imports[table]:
                    if at in span:
                        yield f"watch: one over {table} went past the import at {at}, to {life.resolved_at}"
            if life.told is not None:
                imported = {at for table in life.tables for at in self._imports[table]}
                due = {
                    (table, id, at, row is not None)
                    for table, id, at, row in self._facts.revisions
                    if table in life.tables and at in span and at not in imported
                }
                told = set(life.told)
                # What was never there and is deleted is a revision for the store, and none for a scan.
                missing, extra = due - told, {each for each in told - due if each[3]}
                if missing or extra or len(told) != len(life.told):
                    yield f"watch: in {span} it lacks {sorted(missing)[:3]}, has in vain {sorted(extra)[:3]}"

    def _errors(self) -> Iterator[str]:
        for attempt in self._attempts.values():
            if attempt.sqlstate not in self._allowed:
                yield f"error: {_shown(attempt)}: {attempt.sqlstate} {attempt.message}"


def _table(attempt: Attempt) -> str:
    return attempt.steps[0].statement.table


def _wrong_answers(attempt: Attempt, state: State, at: int, *, has_landed: bool = False) -> Iterator[str]:
    """Runs an attempt's statements; yields the first answer that is not the one its client got.

    Of one that has landed all have run, whatever its client heard of it.
    """
    for number, (statement, answer) in enumerate(attempt.steps):
        if answer is None and not has_landed:
            return
        try:
            expected = statement.run(state)
        except Duplicate as error:
            yield f"duplicate: {_shown(attempt)} at {at}: {error} was accepted"
            return
        if answer is not None and answer != expected:
            what = f"{_shown(attempt)} at {at}, statement {number}, {statement}"
            yield f"answer: {what} gave {answer}, not {expected}"
            return


def _meets_duplicate(attempt: Attempt, state: State) -> bool:
    try:
        for statement, _ in attempt.steps:
            statement.run(state)
    except Duplicate:
        return True
    return False


def _changes(before: State, after: State) -> Changes:
    return {
        (table, id): after[table].get(id)
        for table in TABLES
        if after[table] is not before[table]
        for id in before[table].keys() | after[table].keys()
        if before[table].get(id) != after[table].get(id)
    }


def _differences(what: str, expected: Changes, there: Changes) -> Iterator[str]:
    keys = expected.keys() | there.keys()
    differing = sorted(key for key in keys if expected.get(key, ()) != there.get(key, ()))
    for key in differing[:1]:
        told, made = (each.get(key, "it was") for each in (there, expected))
        yield f"{what} has left {key} as {told}, and not as {made}; {len(differing)} such"


def _row(state: State, key: tuple[str, int]) -> Row | None:
    return state[key[0]].get(key[1])


def _with(state: State, changes: Changes) -> State:
    """The state that the store says there was: one mistake is not told again by all that follows."""
    changed = {table: dict(state[table]) for table, _ in changes}
    for (table, id), row in changes.items():
        if row is None:
            changed[table].pop(id, None)
        else:
            changed[table][id] = row
    return {**state, **changed}


def _shown(attempt: Attempt) -> str:
    kind = "import" if attempt.is_import else "transaction"
    return f"{kind} {attempt.number}"
