"""COPY between a client and its session, simple or extended: the same messages.

    in     G, then from the client d ..., c or f     write, finish or fail
    out    H, d for each row, c                      batches

Walk: `pgwire.conversation` hands over when an answer carries a copy, and goes on with the tag.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tenure.base.errors import ProtocolViolation
from tenure.pgwire.messages import COPY_DONE, Body, copy_data, copy_response
from tenure.pgwire.waits import InThread, Need, Talk
from tenure.sql.session.answers import Answer, CopyFormat, CopyIn, CopyOut, Pending

WRITE_BYTES = 256 * 1024
"""Bytes gathered before the session gets them: a client sends a message for each row, and a thread costs
more.
"""

COPY_DATA, COPY_END, COPY_FAIL = ord("d"), ord("c"), ord("f")
FLUSH, SYNC = ord("H"), ord("S")

ToThread = Callable[[Callable[[], Any]], InThread]


def copy_out(copy: CopyOut, output: list[bytes], to_thread: ToThread) -> Talk[str]:
    """Returns the tag."""
    is_binary = copy.format is CopyFormat.BINARY
    output.append(copy_response(b"H", columns=copy.columns, is_binary=is_binary))
    batches = iter(copy.batches())
    while (rows := (yield to_thread(partial(next, batches, None)))) is not None:
        output.append(b"".join(map(copy_data, rows)))
        yield Need.FLUSH
    output.append(COPY_DONE)
    return copy.tag()


def copy_in(copy: CopyIn, output: list[bytes], to_thread: ToThread) -> Talk[Answer | Pending]:
    is_binary = copy.format is CopyFormat.BINARY
    output.append(copy_response(b"G", columns=copy.columns, is_binary=is_binary))
    gathered = bytearray()
    while True:
        kind, body = yield Need.MESSAGE
        if kind == COPY_DATA:
            gathered += body
        if len(gathered) >= WRITE_BYTES or (kind == COPY_END and gathered):
            yield to_thread(partial(copy.write, bytes(gathered)))
            gathered.clear()
        if kind == COPY_END:
            begun: Answer | Pending = yield to_thread(copy.finish)
            return begun
        if kind == COPY_FAIL:
            yield to_thread(partial(copy.fail, Body(body).string()))
        # Flush and Sync are ignored: a client may have sent them before it knew of the COPY.
        if kind not in (COPY_DATA, FLUSH, SYNC):
            raise ProtocolViolation(f"unexpected message type 0x{kind:02X} during COPY from stdin")
