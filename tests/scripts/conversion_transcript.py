"""Plays transcripts of SQL sessions on two nodes whose databases become schemas.

    == a case begins with its name
    a: CREATE DATABASE d -> CREATE DATABASE     a, a2, b, b2 are sessions of node a or b
    b: TABLE d.t -> 1                           rows as text; an error by its SQLSTATE
    a: start ALTER DATABASE ...                 the statement is on its way
    a: end -> ALTER DATABASE                    and has come back
    now: draining d                             until the object is seen to drain
    now: namespace -> 0/0/d=102 ...             system.namespace: parent, schema, name and id

Ids are those of a new store; what every store has is left out.
"""

from tenure.node import Node
from tests.scripts.transcript import Case, played
from tests.unit.sql.sessions import Said, Saying, Talk

FIRST_ID = 102
"""The first id that is not a new store's own."""


def play(case: Case, nodes: dict[str, Node]) -> list[str]:
    """Runs a case; returns its lines with what came of each command."""
    player = _Player(nodes)
    try:
        return [played(player.run, line) for line in case.lines]
    finally:
        player.close()


class _Player:
    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes
        self._talks: dict[str, Talk] = {}
        self._started: dict[str, Saying] = {}

    def run(self, who: str, command: str) -> str:
        if who == "now":
            verb, _, rest = command.partition(" ")
            return self._namespace() if verb == "namespace" else self._until_draining(rest)
        if command == "end":
            return _text(self._started.pop(who).result())
        talk = self._talk(who, command)
        if command.startswith("start "):
            self._started[who] = Saying(talk, command.removeprefix("start "))
            return ""
        return "connected" if command.startswith("connect") else _text(talk.say(command))

    def _talk(self, who: str, command: str) -> Talk:
        database = command.removeprefix("connect ") if command.startswith("connect") else "defaultdb"
        if who not in self._talks:
            self._talks[who] = Talk(self._nodes[who[0]], database)
        return self._talks[who]

    def _namespace(self) -> str:
        node = self._nodes["a"]
        entries = node.catalog.names(node.store.snapshot())
        rows = [(each.database, each.schema, each.name, each.id) for each in entries if each.id >= FIRST_ID]
        return " ".join(f"{database}/{schema}/{name}={id}" for database, schema, name, id in sorted(rows))

    def _until_draining(self, name: str) -> str:
        node = self._nodes["a"]
        for _ in range(600):
            found = [each for each in node.catalog.list(node.store.snapshot()) if each.draining]
            if any(each.name == name for each in found):
                return ""
            node.store.env.sleep(0.05)
        raise AssertionError(f"{name} does not drain")

    def close(self) -> None:
        for talk in self._talks.values():
            talk.close()


def _text(said: Said) -> str:
    if said.sqlstate:
        return said.sqlstate
    rows = " ".join(",".join(map(str, row)) for row in said.rows)
    return rows if said.columns else said.tag
