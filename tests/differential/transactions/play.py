"""Plays a script on both sides, judges each answer, and in the end all that is stored.

What the page on differences says is no difference. In a block, rows that break a constraint which the
block adds may be refused by COMMIT instead of the statement. PostgreSQL then has failed already: what the
script says up to the end of the block, or up to ROLLBACK TO, is not asked here, and COMMIT has to give the
SQLSTATE.

Walk: `run` and `shrinking` call `recorded` for PostgreSQL's replies and `played` for Tenure's.
"""

import re
from enum import Enum
from typing import NamedTuple

from tests.differential.comparison import NOT_SUPPORTED, RUNTIME, Verdict, verdict
from tests.differential.sides import Answer, Statement
from tests.differential.transactions import catalog as catalogs
from tests.differential.transactions.catalog import Catalog, Relation
from tests.differential.transactions.cluster import Cluster, Keeper, Peer
from tests.differential.transactions.steps import IDLE, IN_BLOCK, Client, Reply, Step

WAITED = ("55P03", "57014")
"""A statement that had to wait: then the script's outcome is not determined."""
IN_USE = "55006"
"""PostgreSQL changes no table that a cursor of the session reads."""
REFUSALS = (NOT_SUPPORTED,)
IN_KEY = "42P16"
"""Columns of a primary key are not dropped."""
DEPENDENT = "2BP01"
_NEEDED = ("cannot drop constraint", "cannot drop index")
"""PostgreSQL's foreign keys need the very index that was found first; here any unique one will do."""
BROKEN = "23"
NOT_UNIQUE = "23505"
NO_SUCH_INDEX = "42P10"
"""Of ON CONFLICT; here it is found before constants are computed."""
READ_ONLY = "25006"
"""PostgreSQL computes constants before it looks whether it may write."""
_PROVES = re.compile(
    "ADD (CONSTRAINT|UNIQUE|PRIMARY|CHECK|FOREIGN)|SET NOT NULL|CREATE UNIQUE INDEX"
    "|ADD COLUMN .*(NOT NULL|UNIQUE|CHECK|REFERENCES|PRIMARY)"
)
_DEFINES = re.compile("CREATE|ALTER|DROP|TRUNCATE|COMMIT")
_DROPS = re.compile(r"DROP CONSTRAINT (?:IF EXISTS )?(\w+)")
_ADDS_TO_ITSELF = re.compile(r"UPDATE \S+ SET (\w+) = \1 ")


class Kind(Enum):
    SAME = "same"
    REFUSED = "refused"
    UNDETERMINED = "undetermined"
    DIFFERENT = "different"


class Outcome(NamedTuple):
    kind: Kind
    at: int = -1
    """The step that was answered otherwise; past the last one: what was stored in the end."""
    ours: str = ""
    theirs: str = ""
    states: tuple[str, str] = ("", "")
    about: str = ""
    """What kind of statement, or of thing stored, it is about."""


class Record(NamedTuple):
    """What PostgreSQL did."""

    replies: list[Reply]
    catalog: Catalog
    contents: dict[str, Answer]

    @property
    def is_determined(self) -> bool:
        return not any(each.answer.sqlstate in WAITED for each in self.replies)


def recorded(peer: Peer, steps: list[Step]) -> Record:
    with peer.clients() as clients:
        replies = [clients[step.client].ask_step(step.statement) for step in steps]
        _end(clients)
        catalog = catalogs.read(clients[0])
        return Record(replies, catalog, _contents(clients[0], catalog))


def played(cluster: Cluster, steps: list[Step], record: Record) -> Outcome:
    with cluster.clients() as (clients, keeper):
        play = _Play(clients, keeper)
        for at, (step, theirs) in enumerate(zip(steps, record.replies, strict=True)):
            found = play.step(at, step, theirs)
            if found is not None:
                return found
        _end(clients)
        return _stored(clients[0], record, len(steps))


class _Play:
    def __init__(self, clients: list[Client], keeper: Keeper | None) -> None:
        self._clients, self._keeper = clients, keeper
        self._proofs = [0 for _ in clients]
        """How many statements of the block prove something at COMMIT."""
        self._dropped: list[set[str]] = [set() for _ in clients]
        """The constraints that the block drops: a primary key among them is enforced until COMMIT."""
        self._late = ["" for _ in clients]
        """The SQLSTATE that COMMIT owes."""

    def step(self, at: int, step: Step, theirs: Reply) -> Outcome | None:
        """What ends the play, if anything does."""
        client, text = self._clients[step.client], step.statement.text
        owed = self._late[step.client]
        if owed:
            if not text.startswith(("COMMIT", "ROLLBACK")) or theirs.answer.sqlstate:
                return None
            self._late[step.client] = ""
        is_in_block = client.status == IN_BLOCK
        if is_in_block and _PROVES.search(text):
            self._proofs[step.client] += 1
        self._dropped[step.client].update(_DROPS.findall(text))
        ours = client.ask_step(step.statement)
        found = self._judged(at, step, ours, theirs, owed=owed, is_in_block=is_in_block)
        if ours.status == IDLE:
            self._proofs[step.client] = 0
            self._dropped[step.client].clear()
            if self._keeper and _DEFINES.match(text):
                self._keeper.settle()
                self._keeper.lease_all()
        return found

    def _judged(
        self, at: int, step: Step, ours: Reply, theirs: Reply, *, owed: str, is_in_block: bool
    ) -> Outcome | None:
        mine, other = ours.answer, theirs.answer
        states = (mine.sqlstate, other.sqlstate)
        shown = _shown(ours, other), _shown(theirs, mine)
        outcome = Outcome(Kind.DIFFERENT, at, *shown, states, step.head)
        if owed and step.statement.text.startswith("COMMIT"):
            if mine.sqlstate == owed:
                return None
            are_several = self._proofs[step.client] > 1 and mine.sqlstate.startswith(BROKEN)
            return outcome._replace(
                kind=Kind.UNDETERMINED if are_several else Kind.DIFFERENT, states=(mine.sqlstate, owed)
            )
        refusal = _refusal(mine, other, self._dropped[step.client])
        if refusal:
            return outcome._replace(kind=Kind.REFUSED, ours=refusal)
        if is_in_block and not mine.sqlstate and self._may_be_late(step, other):
            self._late[step.client] = other.sqlstate
            return None
        judged = verdict(step.statement, mine, other)
        if judged is Verdict.SAME and ours.status == theirs.status:
            return None
        has_changed = bool(self._proofs[step.client] or self._dropped[step.client])
        is_open = _is_open(step.statement.text, states, has_changed=has_changed)
        return outcome._replace(kind=Kind.UNDETERMINED) if is_open else outcome

    def _may_be_late(self, step: Step, theirs: Answer) -> bool:
        return bool(self._proofs[step.client]) and theirs.sqlstate.startswith(BROKEN)


def _refusal(ours: Answer, theirs: Answer, dropped: set[str]) -> str:
    """What the page on differences says of it; "" if it says nothing."""
    if ours.sqlstate == theirs.sqlstate:
        return ""
    needs_index = theirs.sqlstate == DEPENDENT and theirs.message.startswith(_NEEDED) and not ours.sqlstate
    if theirs.sqlstate == IN_USE or needs_index:
        return f"PostgreSQL: {theirs.message}"
    if ours.sqlstate in REFUSALS:
        return ours.message
    is_in_key = ours.sqlstate == IN_KEY and ours.message.endswith("is in a primary key")
    is_still_there = ours.sqlstate == NOT_UNIQUE and any(f'"{each}"' in ours.message for each in dropped)
    return ours.message if is_in_key or is_still_there else ""


def _is_open(text: str, states: tuple[str, str], *, has_changed: bool) -> bool:
    """Whether the answer depends on what is looked at first, or on a constraint that the block changes."""
    if "ON CONFLICT" in text and (has_changed or states[0] == NO_SUCH_INDEX):
        return True
    if all(each.startswith((BROKEN, *RUNTIME, READ_ONLY)) for each in states):
        return True
    return states[1] == NOT_UNIQUE and bool(_ADDS_TO_ITSELF.match(text))


def _shown(reply: Reply, other: Answer) -> str:
    return f"{reply.answer.shown_without(other.rows)} [{reply.status}]"


def _end(clients: list[Client]) -> None:
    for client in clients:
        client.must("ROLLBACK")
        client.must("SET default_transaction_read_only = off")


def _contents(client: Client, catalog: Catalog) -> dict[str, Answer]:
    """What all tables and views hold, and what is found by columns' values: through indexes, if there are."""
    found = {}
    for relation in (*catalog.tables, *catalog.views):
        for text in (f"SELECT * FROM {relation.name}", *_lookups(relation)):
            found[text] = client.ask(Statement(text))
    return found


def _lookups(relation: Relation) -> list[str]:
    return [
        f"SELECT x.{name}, (SELECT count(*) FROM {relation.name} y WHERE y.{name} = x.{name})"
        f" FROM {relation.name} x"
        for name, *_ in relation.columns
        if relation.indexes
    ]


def _stored(client: Client, record: Record, at: int) -> Outcome:
    ours = catalogs.read(client, catalogs.TENURE)
    if ours != record.catalog:
        return _defined_otherwise(list(ours.facts()), list(record.catalog.facts()), at)
    for text, theirs in record.contents.items():
        mine = client.ask(Statement(text))
        if verdict(Statement(text), mine, theirs) is not Verdict.SAME:
            shown = f"{text}\n    {mine.shown_without(theirs.rows)}", theirs.shown_without(mine.rows)
            return Outcome(Kind.DIFFERENT, at, *shown, (mine.sqlstate, theirs.sqlstate), "stored rows")
    return Outcome(Kind.SAME)


def _defined_otherwise(ours: list[str], theirs: list[str], at: int) -> Outcome:
    more = [each for each in ours if each not in theirs]
    lacking = [each for each in theirs if each not in ours]
    about = f"stored {(more or lacking or ['order'])[0].split()[0]}"
    return Outcome(Kind.DIFFERENT, at, f"more: {more}", f"more: {lacking}", about=about)
