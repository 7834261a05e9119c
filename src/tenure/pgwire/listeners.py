"""Listeners: for a port of this process alone, or one that several processes share.

    alone      asyncio's server, which binds the port and listens
    shared     the parent binds the port and listens, once; each process inherits that socket
               and accepts from the one queue that all of them see

A shared socket is bound without SO_REUSEPORT, so the kernel lets no other cluster or program bind the port.
Connections that no process has accepted yet wait in the queue, and are not lost when a process dies or
drains.

The kernel wakes all processes for a connection, and the first that accepts gets it. To spread connections, a
process that has clients hesitates before it accepts, the longer the more it has, so that one with fewer comes
first. It accepts one at a time for the same reason.

Walk: `pgwire.server` makes one when it starts, pauses it when a drain begins, and closes it.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Protocol

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""

ACCEPTS_AT_ONCE = 16
"""Connections accepted in one turn of the loop: they are then served before more are accepted."""

HESITATION_SECONDS, HESITATION_SECONDS_MAX = 0.001, 0.020
"""The delay for each client of this process, and the greatest: a millisecond is longer than a wake takes, and
a connection may wait for twenty of them when all processes are busy.
"""

OUT_OF_RESOURCES_SECONDS = 1.0
"""The pause before the next attempt without descriptors or memory; asyncio's own server waits as long."""

_log = logging.getLogger(__name__)

MakeDoor = Callable[[], asyncio.Protocol]


class Listener(Protocol):
    @property
    def address(self) -> tuple[str, int]: ...
    def pause(self) -> None:
        """Accepts nothing more; accepted connections go on."""

    def close(self) -> None: ...


async def listen_alone(
    loop: asyncio.AbstractEventLoop, make_door: MakeDoor, host: str, port: int
) -> "LoneListener":
    server = await loop.create_server(make_door, host, port, backlog=ACCEPTS_AT_ONCE)
    for each in server.sockets:
        # asyncio has one number for both: how many the kernel keeps, and how many are accepted in a turn.
        with socket.socket(fileno=os.dup(each.fileno())) as listening:
            listening.listen(BACKLOG)
    return LoneListener(loop, server)


class LoneListener:
    def __init__(self, loop: asyncio.AbstractEventLoop, server: asyncio.Server) -> None:
        self._loop = loop
        self._server = server

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    def pause(self) -> None:
        for each in self._server.sockets:
            self._loop.remove_reader(each.fileno())

    def close(self) -> None:
        self._server.close()


class SharedListener:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make_door: MakeDoor,
        descriptor: int,
        *,
        connections: Callable[[], int],
    ) -> None:
        self._loop = loop
        self._make_door = make_door
        self._connections = connections
        os.set_inheritable(descriptor, False)  # a worker that this process starts must not hold the port
        self._socket = socket.socket(fileno=descriptor)
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_paused = False
        self._watch()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    def pause(self) -> None:
        self._is_paused = True
        self._loop.remove_reader(self._socket)

    def close(self) -> None:
        self.pause()
        self._socket.close()

    def _watch(self) -> None:
        if not self._is_paused:
            self._loop.add_reader(self._socket, self._hesitate)

    def _hesitate(self) -> None:
        self._loop.remove_reader(self._socket)
        seconds = min(HESITATION_SECONDS * self._connections(), HESITATION_SECONDS_MAX)
        self._loop.call_later(seconds, self._accept)

    def _accept(self) -> None:
        if self._is_paused:
            return
        try:
            client, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            self._watch()  # another process was first, or the client is gone
            return
        except OSError as error:
            # Out of descriptors or memory: the connection stays in the queue, for another process or for
            # later.
            _log.warning("accepting a connection: %s", error)
            self._loop.call_later(OUT_OF_RESOURCES_SECONDS, self._watch)
            return
        client.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(self._begin(client))
        self._tasks.add(task)  # the loop itself refers to tasks weakly
        task.add_done_callback(self._tasks.discard)
        self._watch()

    async def _begin(self, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_door, client)
        except OSError as error:
            _log.info("a client was gone before its connection began: %s", error)
            client.close()
