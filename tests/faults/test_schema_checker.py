"""The checker of rows, leases and changes is itself checked: one violation each, and a story without any."""

from typing import Any

from tenure.catalog.descriptors.definitions import (
    Column,
    DescriptorState,
    ElementState,
    Index,
    KeyPart,
    Table,
    TypeRef,
)
from tenure.catalog.leases.lease_rows import LeaseRow
from tenure.cluster.sessions.session_records import SessionId
from tests.faults.job_history import SessionRow
from tests.faults.schema_checker import check
from tests.faults.schema_history import LeaseRevision, RowRevision, SchemaHistory

A, B, C = SessionId(1, 10), SessionId(2, 11), SessionId(3, 12)
T = 102


class Story:
    """Three sessions and a table, whose versions come at 20, 40 and 60."""

    def __init__(self) -> None:
        self.history = SchemaHistory()
        self.events: list[dict[str, Any]] = []
        for session in (A, B, C):
            row = SessionRow(session.epoch_at, session, "existence", expires_at=100)
            self.history.jobs.sessions.append(row)
        for version, at in ((1, 20), (2, 40), (3, 60)):
            self.version(version, at)

    def version(self, version: int, at: int, *indexes: Index) -> "Story":
        self.history.versions[T].append(_table(version, at, indexes))
        return self

    def intent(self, op: str, *writes: tuple[int, int, int | None], **more: Any) -> "Story":
        fields = {"session": A, "uses": [(T, 1)], "writes": writes} | more
        self.events.append({"e": "intent", "m": 0, "op": op, **fields})
        return self

    def end(self, kind: str, op: str, **more: Any) -> "Story":
        self.events.append({"e": kind, "m": 0, "op": op, **more})
        return self

    def row(self, at: int, id: int, n: int | None, tag: str) -> "Story":
        self.history.rows.append(RowRevision(at, T, id, n, tag))
        return self

    def lease(
        self, at: int, lease_at: int, session: SessionId, *covered: int, is_gone: bool = False
    ) -> "Story":
        row = None if is_gone else LeaseRow(lease_at, *session, covered or None)
        self.history.leases.append(LeaseRevision(at, (lease_at, *session), row))
        return self

    def kinds(self) -> set[str]:
        verdict = check(self.history, [("p0.0", self.events)])
        assert bool(verdict.kinds) == bool(verdict.violations)
        return set(verdict.kinds)


def _table(version: int, at: int, indexes: tuple[Index, ...]) -> Table:
    columns = (Column(1, "id", TypeRef("int8"), is_nullable=False),)
    primary = Index(1, "pkey", (KeyPart(1),), is_unique=True, primary=1)
    return Table(
        T, version, at, "t", "root", DescriptorState.PUBLIC, (), (), 100, 101, columns, 1, (primary, *indexes)
    )


def _index(state: ElementState) -> Index:
    return Index(2, "i x", (KeyPart(1),), state=state, primary=1)


def _adding(story: Story, **more: Any) -> Story:
    return story.intent("x", change="index", table=T, adds="i x", uses=[], **more)


def test_a_story_without_violations() -> None:
    story = Story().intent("x", (T, 1, 5)).row(30, 1, 5, "x").end("ack", "x", at=30)
    story.intent("y", (T, 1, None), uses=[(T, 2)]).row(50, 1, None, "").end("ack", "y", at=50)
    story.intent("z", (T, 2, 0)).end("failed", "z", state="40001", why="", is_sure=True)
    story.intent("killed", (T, 3, 0), uses=[(T, 3)]).row(70, 3, 0, "killed")
    assert story.kinds() == set()


def test_an_acknowledged_row_that_is_not_there_is_lost() -> None:
    assert Story().intent("x", (T, 1, 5)).end("ack", "x", at=30).kinds() == {"lost"}


def test_a_row_of_a_transaction_that_failed_is_a_phantom() -> None:
    story = Story().intent("x", (T, 1, 5)).row(30, 1, 5, "x")
    assert story.end("failed", "x", state="40001", why="", is_sure=True).kinds() == {"phantom"}


def test_a_row_written_twice_by_one_transaction_is_seen() -> None:
    story = Story().intent("x", (T, 1, 5)).row(30, 1, 5, "x").row(31, 1, 5, "x")
    assert story.end("ack", "x", at=30).kinds() == {"twice"}


def test_half_a_transaction_is_seen() -> None:
    assert Story().intent("x", (T, 1, 5), (T, 2, 5)).row(30, 1, 5, "x").kinds() == {"half"}


def test_a_version_left_out_is_seen() -> None:
    assert Story().version(5, 80).kinds() == {"version"}


def test_a_commit_with_a_version_older_than_the_predecessor_is_seen() -> None:
    story = Story().intent("x", (T, 1, 5)).row(60, 1, 5, "x")
    assert story.end("ack", "x", at=60).kinds() == {"two versions"}


def test_a_commit_at_the_expiration_of_its_session_is_seen() -> None:
    story = Story().intent("x", (T, 1, 5), uses=[(T, 3)]).row(100, 1, 5, "x")
    assert story.end("ack", "x", at=100).kinds() == {"frontier"}


def test_a_version_published_over_older_leases_of_two_nodes_is_seen() -> None:
    story = Story().lease(15, 15, A).lease(16, 16, B)
    assert story.lease(50, 50, A).kinds() == {"leased"}


def test_the_publishers_own_older_lease_counts_as_narrowed() -> None:
    story = Story().lease(15, 15, A).lease(16, 16, B)
    assert story.lease(30, 15, A, is_gone=True).kinds() == set()


def test_a_lease_row_that_is_widened_is_seen() -> None:
    story = Story().lease(50, 50, A, 7).lease(55, 50, A, 7, 8)
    assert story.kinds() == {"widened"}


def test_an_index_that_was_acknowledged_and_never_public_is_seen() -> None:
    story = _adding(Story().version(4, 70, _index(ElementState.WRITE_ONLY)))
    assert story.end("ack", "x", at=70).kinds() == {"change"}


def test_an_index_whose_creation_failed_and_that_was_public_is_seen() -> None:
    story = _adding(Story().version(4, 70, _index(ElementState.PUBLIC)).version(5, 75))
    assert story.end("failed", "x", state="23505", why="", is_sure=True).kinds() == {"change"}


def test_rows_that_come_before_the_index_of_their_transaction_are_seen() -> None:
    story = Story().version(4, 70, _index(ElementState.PUBLIC)).row(65, 1, 0, "x#1")
    story.intent("x", (T, 1, 0), change="with_rows", table=T, adds="i x", uses=[])
    assert story.end("ack", "x", at=65).kinds() == {"half"}


def test_what_a_worker_claims_is_passed_on() -> None:
    story = Story()
    story.events.append({"e": "claim", "m": 0, "what": "a row is lost"})
    assert story.kinds() == {"claim"}
