"""Conversations with a server, by seed: messages of the extended and the simple protocol, in any order.

Statements are few, and names are fewer, so that portals, statements and cursors meet each other often: bound
and never executed, executed again after their error, outlived by their transaction, closed by SQL.

    script   what is said, message by message, as text; `pieces` are the same as bytes, as they are sent

Walk: `test_conversations` compares some by seed; `python -m tests.differential --conversations` many.
"""

from dataclasses import dataclass, field
from random import Random

from tests.unit.pgwire.wire import FLUSH, SYNC, bind, close, describe, execute, message, parse, query

ROWS = (
    "SELECT id, v FROM w ORDER BY id",
    "SELECT id FROM w ORDER BY id DESC LIMIT 3",
    "SELECT n FROM generate_series(1, 5) AS g (n)",
    "VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "SELECT 6 / (4 - id) AS q FROM w ORDER BY id",
    "SELECT 1 / (id - 2) FROM w WHERE id = 2",
    "INSERT INTO w VALUES (21, 'new'), (22, 'new'), (23, 'new') RETURNING id",
    "UPDATE w SET v = v || '!' WHERE id = 2 RETURNING id, v",
    "DELETE FROM w WHERE id = 5 RETURNING *",
    "SHOW statement_timeout",
    "FETCH 2 FROM c",
    "FETCH FORWARD ALL FROM c",
    "FETCH 2 FROM p1",
    "EXECUTE s1",
)
OTHERS = (
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "RELEASE a",
    "INSERT INTO w VALUES (31, 'other')",
    "INSERT INTO w VALUES (1, 'taken')",
    "UPDATE w SET v = 'x' WHERE id < 3",
    "DELETE FROM w WHERE id = 6",
    "DECLARE c CURSOR FOR SELECT id FROM w ORDER BY id",
    "MOVE 1 IN c",
    "MOVE 1 IN p1",
    "MOVE ALL IN p2",
    "CLOSE c",
    "CLOSE p1",
    "CLOSE ALL",
    "PREPARE s1 AS SELECT 7 AS seven",
    "DEALLOCATE s1",
    "DEALLOCATE ALL",
    "DISCARD ALL",
    "SET application_name = 'here'",
    "SET LOCAL application_name = 'there'",
    "RESET application_name",
    "SET client_min_messages = error",
    "nonsense",
    "",
)
WITH_VALUE = (
    "SELECT id, v FROM w WHERE id > $1::int ORDER BY id",
    "SELECT $1::int + 1",
    "INSERT INTO w VALUES ($1::int, 'given') RETURNING v",
)
EXECUTED = ROWS[:9]
COPIES = ("COPY w FROM STDIN", "COPY (SELECT id, v FROM w ORDER BY id) TO STDOUT")
STATEMENTS, PORTALS = ("", "", "", "s1", "s2"), ("", "", "p1", "p1", "p2")
PORTALS_NAMED = ("p1", "p1", "p2", "c")
INT4 = 23


@dataclass
class Conversation:
    script: list[str] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    has_value: dict[str, bool] = field(default_factory=dict)
    """Whether the statement that was parsed last under a name takes a value."""
    is_unnamed_bound: bool = False
    """Since the last Sync. PostgreSQL may crash where the portal without a name is a failed one's remains."""

    def say(self, said: str, data: bytes, *, goes_along: bool = False) -> None:
        """`goes_along`: it comes in one piece with what was said before."""
        self.script.append(f"    {said}" if goes_along else said)
        if goes_along and self.pieces:
            self.pieces[-1] += data
        else:
            self.pieces.append(data)


def conversation(seed: int | str, length: int) -> Conversation:
    random, found = Random(seed), Conversation()
    if random.random() < 0.5:
        found.say("Query BEGIN", query("BEGIN"))
    while len(found.script) < length:
        _exchange(random, found)
    return found


def _exchange(random: Random, found: Conversation) -> None:
    """Some messages, and what makes the server answer them."""
    is_one_piece = random.random() < 0.6
    found.is_unnamed_bound = False
    match random.choices(("simple", "several", "pipeline", "loose", "copy"), (3, 1, 5, 4, 0.4))[0]:
        case "simple":
            text = _text(random)
            found.say(f"Query {text}", query(text))
        case "several":
            text = "; ".join(_text(random) for _ in range(random.randrange(2, 4)))
            found.say(f"Query {text}", query(text))
        case "pipeline":
            for _ in range(random.choice((1, 1, 1, 2))):
                _prepared(random, found, is_one_piece)
            found.say("Sync", SYNC, goes_along=is_one_piece)
        case "loose":
            for _ in range(random.randrange(1, 5)):
                _loose(random, found, is_one_piece)
            found.say("Sync", SYNC, goes_along=is_one_piece)
        case "copy":
            _copy(random, found)


def _text(random: Random) -> str:
    return random.choice(random.choice((ROWS, OTHERS)))


def _prepared(random: Random, found: Conversation, is_one_piece: bool) -> None:
    statement, portal = random.choice(STATEMENTS), random.choice(PORTALS)
    _parse(random, found, statement, is_one_piece)
    if random.random() < 0.3:
        found.say(f"Describe S {statement}", describe("S", statement), goes_along=is_one_piece)
    _bind(random, found, statement, portal, is_one_piece)
    if random.random() < 0.7:
        found.say(f"Describe P {portal}", describe("P", portal), goes_along=is_one_piece)
    for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3))):
        _execute(random, found, portal, is_one_piece)


def _parse(random: Random, found: Conversation, statement: str, is_one_piece: bool) -> None:
    text = random.choice(WITH_VALUE) if random.random() < 0.2 else _text(random)
    if statement == "s1":
        text = random.choice(EXECUTED)  # EXECUTE of anything else may end PostgreSQL's session
    if statement and random.random() < 0.7:
        found.say(f"Close S {statement}", close("S", statement), goes_along=is_one_piece)
    types = (INT4,) if "$1" in text and random.random() < 0.5 else ()
    found.say(f"Parse {statement} {text}", parse(text, statement, types), goes_along=is_one_piece)
    found.has_value[statement] = "$1" in text


def _bind(random: Random, found: Conversation, statement: str, portal: str, is_one_piece: bool) -> None:
    values = (b"3",) if found.has_value.get(statement) else ()
    found.is_unnamed_bound = found.is_unnamed_bound or not portal
    results = random.choice(((), (), (0,), (1,)))
    if portal and random.random() < 0.3:
        found.say(f"Close P {portal}", close("P", portal), goes_along=is_one_piece)
    said = f"Bind {portal} {statement} {list(values)} {list(results)}"
    found.say(
        said, bind(*values, statement=statement, portal=portal, results=results), goes_along=is_one_piece
    )


def _execute(random: Random, found: Conversation, portal: str, is_one_piece: bool) -> None:
    limit = random.choice((0, 0, 1, 2, 3))
    portal = portal if found.is_unnamed_bound else portal or "p1"
    found.say(f"Execute {portal} {limit}", execute(limit, portal), goes_along=is_one_piece)


def _loose(random: Random, found: Conversation, is_one_piece: bool) -> None:
    """A message that need not fit to those before."""
    statement, portal = random.choice(STATEMENTS), random.choice(PORTALS)
    match random.choice(("parse", "bind", "execute", "execute", "execute", "describe", "close", "flush")):
        case "parse":
            _parse(random, found, statement, is_one_piece)
        case "bind":
            _bind(random, found, statement, portal, is_one_piece)
        case "execute":
            _execute(random, found, random.choice(PORTALS_NAMED), is_one_piece)
        case "describe":
            kind, name = random.choice((("S", statement), ("P", portal or "c")))
            found.say(f"Describe {kind} {name}", describe(kind, name), goes_along=is_one_piece)
        case "close":
            kind, name = random.choice((("S", statement), ("P", portal)))
            found.say(f"Close {kind} {name}", close(kind, name), goes_along=is_one_piece)
        case "flush":
            found.say("Flush", FLUSH, goes_along=is_one_piece)


def _copy(random: Random, found: Conversation) -> None:
    text = random.choice(COPIES)
    data = [message("d", b"41\tcopied\n"), message("c")]
    if "FROM" in text and random.random() < 0.3:
        data[-1] = message("f", b"given up\0")
    is_incoming = "FROM" in text
    if random.random() < 0.5:
        found.say(f"Query {text}", query(text))
    else:
        found.say(f"Parse, Bind, Execute {text}", b"".join([parse(text), bind(), execute()]))
    if is_incoming:
        found.say("CopyData, CopyDone or CopyFail", b"".join(data))
    if found.script[-1 - is_incoming].startswith("Parse"):
        found.say("Sync", SYNC)
