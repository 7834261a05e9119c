"""A process that answers every query with the same row: through the real door, or through a bare loop.

    python -m bench.sql.canned_server real    the wire protocol, with a session that does nothing
    python -m bench.sql.canned_server bare    canned bytes for each message: what asyncio itself costs

Prints its port and serves until its standard input is closed.

Walk: `bench.sql.canned` starts it and reads its CPU time.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo

from tenure.base.env import SystemEnv
from tenure.cluster.notifications import Arrival
from tenure.expr import type_of
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import UTF8
from tenure.expr.types.type_names import parse_type_name
from tenure.pgwire.door import RECEIVE_BYTES
from tenure.pgwire.server import Server
from tenure.sql.session.answers import Answer, BlockStatus, Endpoints, Notice, Pending, ResultColumn, Timeouts

INT4 = type_of(parse_type_name("int4"))


class CannedStatement:
    """Also its own portal: it has no values to keep."""

    parameters: Sequence[Type] = (INT4,)
    columns: Sequence[ResultColumn] | None = (ResultColumn("abalance", INT4),)
    is_short = True


class NoBuffers:
    def receive(self, size_bytes: int) -> None: ...

    def leave_unsent(self, size_bytes: int) -> None: ...


class CannedClient:
    """Every statement takes an int4 and answers with one row."""

    def __init__(self) -> None:
        self.env = SystemEnv()
        self.status = BlockStatus.IDLE
        self.doing = "canned"
        self.is_superuser = self.holds_locks = False
        self.notices: list[Notice] = []
        self.changed: dict[str, str] = {}
        self.zone: tzinfo = UTC
        self.encoding = UTF8
        self.has_arrivals = False
        self._statement = CannedStatement()

    def take_arrivals(self) -> list[Arrival]:
        return []

    def check_arrivals(self) -> None:
        pass

    def on_arrival(self, call: Callable[[], None]) -> None:
        pass

    def parameters(self) -> dict[str, str]:
        return {"server_version": "18.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}

    def timeouts(self) -> Timeouts:
        return Timeouts()

    @property
    def memory(self) -> NoBuffers:
        return NoBuffers()

    def split(self, text: str) -> Sequence[str]:
        return (text,)

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> CannedStatement:
        return self._statement

    def prepared(self, name: str) -> CannedStatement:
        return self._statement

    def bind(
        self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False
    ) -> CannedStatement:
        return self._statement

    def portal(self, name: str) -> CannedStatement:
        return self._statement

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> Answer | Pending:
        return Answer(((123,),), "SELECT", counts=True)

    def sync(self, *, inline: bool = False) -> Pending | None:
        return None

    def failed(self, error: BaseException | None = None) -> None:
        pass

    def close_prepared(self, name: str) -> None:
        pass

    def close_portal(self, name: str) -> None:
        pass

    def received(self, at: float | None) -> None:
        pass

    def start_reading(self) -> None:
        pass

    def check_time(self) -> None:
        pass

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


class CannedClients:
    def open(
        self, *, user: str, database: str, options: dict[str, str], endpoints: Endpoints, pid: int = 0
    ) -> CannedClient:
        return CannedClient()


class LetIn:
    def login(self, *, user: str, address: str, binding: bytes | None) -> None:
        return None


READY = b"Z\0\0\0\5I"
BARE_START = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0018.0\0" + READY
BARE_ANSWERS = {
    ord("P"): b"1\0\0\0\4",
    ord("B"): b"2\0\0\0\4",
    ord("D"): b"T\0\0\0\x21\0\1abalance\0\0\0\0\0\0\0\0\0\0\x17\0\4\xff\xff\xff\xff\0\0",
    ord("E"): b"D\0\0\0\x0d\0\1\0\0\0\x03123C\0\0\0\x0dSELECT 1\0",
    ord("S"): READY,
    ord("X"): b"",
}


class BareLoop(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.max_size = RECEIVE_BYTES  # type: ignore[attr-defined]
        self._has_started = False

    def data_received(self, data: bytes) -> None:
        if not self._has_started:
            self._has_started = True
            self._transport.write(BARE_START)
            return
        answers = []
        at = 0
        while at < len(data):
            answers.append(BARE_ANSWERS[data[at]])
            at += 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        self._transport.write(b"".join(answers))


async def _serve_bare() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(BareLoop, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def _serve_real() -> None:
    server = Server(CannedClients(), LetIn(), SystemEnv())
    _, port = server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        asyncio.run(_serve_bare())
    else:
        _serve_real()
