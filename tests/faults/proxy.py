"""A small TCP proxy before PostgreSQL that knows where a commit begins and ends, and cuts there.

    cut_before   the client is cut; the request never reaches the server
    cut_after    the request is forwarded, then the client is cut, not waiting for the answer
    cut_answer   the server has answered; the client is cut instead of being told
    late         the client is cut; the request reaches the server only after the client has settled it
    blackhole    nothing goes either way for a while, then the client is cut
    delay        the request waits a little
    slice        one byte at a time

A request is all messages up to Sync. What it does is known from the statement it was prepared
with: "commit_group" or "settle". Faults hit commits with `rate`, and settles with a part of it.

Walk: `cuts` starts one in a thread of its own; workers get its port instead of the server's.
"""

import asyncio
import random
import struct
import threading
from collections import Counter

WEIGHTS = {
    "cut_before": 1,
    "cut_after": 4,
    "cut_answer": 4,
    "late": 4,
    "blackhole": 1,
    "delay": 2,
    "slice": 2,
}
KINDS = tuple(WEIGHTS)
LATE_SECONDS_MAX = 3.0
BLACKHOLE_SECONDS = 1.0
SETTLE_RATE = 0.3
"""Of the rate for commits: what settles an unknown commit is cut off as well, but not always."""


class Proxy:
    def __init__(self, port: int, seed: int, *, rate: float, kinds: tuple[str, ...] = KINDS) -> None:
        self._kinds = kinds
        self.rate = rate
        self.faults: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self._target = port
        self._rng = random.Random(seed)
        self._settled: set[bytes] = set()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        """Late requests get to the server first: that is what they are for."""
        self.rate = 0.0
        self._server.close()
        late = [task for task in self._tasks if task.get_name() == "late"]
        if late:
            await asyncio.wait(late, timeout=LATE_SECONDS_MAX + 1)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        link = _Link(self, reader, writer, *upstream)
        answers = self._keep(self._loop.create_task(link.answers()))
        try:
            await link.requests()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            if not link.is_late:
                answers.cancel()
                upstream[1].close()

    def _keep(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def choose(self, kind: str) -> str | None:
        """Which fault hits a request, if any."""
        self.requests[kind] += 1
        rate = {"commit": self.rate, "settle": self.rate * SETTLE_RATE}.get(kind, self.rate * 0.02)
        if self._rng.random() >= rate:
            return None
        fault = self._rng.choices(self._kinds, [WEIGHTS[kind] for kind in self._kinds])[0]
        if kind != "commit" and fault == "late":
            fault = "cut_after"
        self.faults[fault] += 1
        return fault

    def deliver_late(
        self, writer: asyncio.StreamWriter, request: bytes, lane: bytes, answered: asyncio.Event
    ) -> None:
        self._settled.discard(lane)
        late = self._late(writer, request, lane, answered)
        self._keep(self._loop.create_task(late, name="late"))

    async def _late(
        self, writer: asyncio.StreamWriter, request: bytes, lane: bytes, answered: asyncio.Event
    ) -> None:
        waited = 0.0
        while lane not in self._settled and waited < LATE_SECONDS_MAX:
            await asyncio.sleep(0.01)
            waited += 0.01
        is_after_settling = lane in self._settled
        await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        try:
            writer.write(request)
            await writer.drain()
            await asyncio.wait_for(answered.wait(), 5)
            self.faults["late, after settling" if is_after_settling else "late, before settling"] += 1
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()

    def settled(self, lane: bytes) -> None:
        self._settled.add(lane)

    def pause(self) -> float:
        return self._rng.uniform(0.02, 0.2)


class _Link:
    """One client's connection and its counterpart to the server."""

    def __init__(
        self,
        proxy: Proxy,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client, self._to_client = client, to_client
        self._server, self._to_server = server, to_server
        self._statements: dict[bytes, str] = {}
        self._is_muted = False
        self._answered = asyncio.Event()
        self.is_late = False

    async def answers(self) -> None:
        try:
            while data := await self._server.read(65536):
                self._answered.set()
                if not self._is_muted:
                    self._to_client.write(data)
                    await self._to_client.drain()
        except OSError:
            pass
        self._answered.set()
        self._to_client.close()

    async def requests(self) -> None:
        (size,) = struct.unpack(">I", head := await self._client.readexactly(4))
        self._to_server.write(head + await self._client.readexactly(size - 4))  # the start-up message
        while True:
            kind, lane, request = await self._request()
            fault = self._proxy.choose(kind)
            if fault is None:
                self._to_server.write(request)
                await self._to_server.drain()
            elif not await self._disturb(fault, request, lane):
                return
            if kind == "settle":
                self._proxy.settled(lane)

    async def _request(self) -> tuple[str, bytes, bytes]:
        """Reads up to and with Sync, Query or Terminate; returns kind, lane and the bytes."""
        parts: list[bytes] = []
        kind, lane = "other", b""
        while True:
            header = await self._client.readexactly(5)
            body = await self._client.readexactly(struct.unpack(">I", header[1:])[0] - 4)
            parts.append(header + body)
            letter = header[:1]
            if letter == b"P":
                name, query = body.split(b"\0")[:2]
                self._statements[name] = _kind_of(query)
            elif letter == b"B":
                kind = self._statements.get(body.split(b"\0", 2)[1], "other")
                lane = b"" if kind == "other" else _first_parameter(body)
            elif letter in b"SQX":
                return kind, lane, b"".join(parts)

    async def _disturb(self, fault: str, request: bytes, lane: bytes) -> bool:
        """Does one fault; False if the client was cut."""
        if fault == "delay":
            await asyncio.sleep(self._proxy.pause())
            self._to_server.write(request)
            return True
        if fault == "slice":
            for position in range(len(request)):
                self._to_server.write(request[position : position + 1])
                await self._to_server.drain()
            return True
        self._is_muted = True
        self._answered.clear()
        if fault in ("cut_after", "cut_answer"):
            self._to_server.write(request)
            await self._to_server.drain()
        if fault == "cut_answer":
            await asyncio.wait_for(self._answered.wait(), 5)
        elif fault == "blackhole":
            await asyncio.sleep(BLACKHOLE_SECONDS)
        elif fault == "late":
            self.is_late = True
            self._proxy.deliver_late(self._to_server, request, lane, self._answered)
        return False


def _kind_of(query: bytes) -> str:
    if b"commit_group" in query:
        return "commit"
    return "settle" if b"settle(" in query else "other"


def _first_parameter(bind: bytes) -> bytes:
    """The first value of a Bind message; commits and settles begin with their lane."""
    rest = bind.split(b"\0", 2)[2]
    (formats,) = struct.unpack_from(">H", rest)
    position = 2 + 2 * formats + 2
    (size,) = struct.unpack_from(">i", rest, position)
    return rest[position + 4 : position + 4 + size]
