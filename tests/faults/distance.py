"""A TCP proxy that makes a server seem far away: what goes through it comes half a round trip later.

Nothing is lost, and nothing waits for what is before it: bytes keep their distance in time.

Walk: `far_from` runs one in a process of its own: some calls of libpq block the process that makes them.
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 1 << 16


@contextmanager
def far_from(target: int, *, round_trip_seconds: float) -> Iterator[int]:
    """Lends a port that leads to the target, from far away."""
    command = [sys.executable, "-m", "tests.faults.distance", str(target), str(round_trip_seconds)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()  # it ends with that
        process.wait()
        process.stdout.close()


class Distance:
    """Listens on `port`, for a server on `target` of this machine."""

    def __init__(self, target: int, *, round_trip_seconds: float) -> None:
        self._target = target
        self._one_way_seconds = round_trip_seconds / 2
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

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = self._loop.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                self._loop.call_later(self._one_way_seconds, _write, sink, data)
        finally:
            self._loop.call_later(self._one_way_seconds, sink.close)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _write(sink: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(OSError, RuntimeError):
        sink.write(data)


if __name__ == "__main__":
    distance = Distance(int(sys.argv[1]), round_trip_seconds=float(sys.argv[2]))
    print(distance.port, flush=True)
    sys.stdin.read()
    distance.close()
