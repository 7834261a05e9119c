"""A node whose sessions are spoken to directly, without a wire: as its door would, in this thread.

Walk: tests make a `node` once, and a `Speaker` for each client.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.front import Front, Listen
from tenure.node import Node, NodeOptions
from tenure.sql.clients.session import Session
from tenure.sql.session.answers import Answer, NotShort, Pending


@contextmanager
def a_node(directory: Path) -> Iterator[Node]:
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    try:
        yield node
    finally:
        node.stop()


def front_of(node: Node) -> Front:
    assert node.front is not None
    return node.front


class Speaker:
    """One client. What fails is reported to the session, as its door does."""

    def __init__(self, node: Node, **options: str) -> None:
        sessions = front_of(node).sessions
        self.env = front_of(node).services.env
        self.session: Session = sessions.open(user="root", database="defaultdb", options=options)

    def rows(self, text: str, values: Sequence[Any] = (), *, inline: bool = False) -> list[tuple[Any, ...]]:
        return self.run(text, values, inline=inline)[0]

    def tag(self, text: str, values: Sequence[Any] = ()) -> str:
        return self.run(text, values)[1]

    def run(
        self, text: str, values: Sequence[Any] = (), *, inline: bool = False
    ) -> tuple[list[tuple[Any, ...]], str]:
        """Each statement of a text, in a thread's way or, where it can be, in the loop's; the last one's."""
        found: tuple[list[tuple[Any, ...]], str] = ([], "")
        pieces = self.session.split(text)
        try:
            for number, piece in enumerate(pieces, 1):
                self.session.prepare("", piece, ())
                self.session.bind("", "", values)
                found = self._executed(ends=number == len(pieces), inline=inline)
            self.settled(self.session.sync())
        except BaseException:
            self.session.failed()
            raise
        return found

    def _executed(self, *, ends: bool, inline: bool) -> tuple[list[tuple[Any, ...]], str]:
        rows: list[tuple[Any, ...]] = []
        while True:
            try:
                answer = self.settled(self.session.execute("", ends=ends, inline=inline))
            except NotShort:
                assert inline, "only the loop may be told that something is not short"
                inline = False
                continue
            assert answer is not None
            rows += [tuple(row) for row in answer.rows]
            if answer.is_done:
                return rows, answer.tag

    def settled(self, answer: Answer | Pending | None) -> Answer | None:
        while answer is not None and not isinstance(answer, Answer):
            done = self.env.event()
            answer.submit(done.set)
            assert done.wait(30)
            answer = answer.result()
        return answer

    def refused(self, text: str) -> str:
        """The SQLSTATE of the error that it must get."""
        try:
            self.run(text)
        except TenureError as error:
            return error.sqlstate
        raise AssertionError(f"nothing refused: {text}")

    def close(self) -> None:
        self.session.close()
