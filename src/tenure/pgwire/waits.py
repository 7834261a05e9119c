"""The waits of the protocol, as data: the core has no I/O, and its driver nothing else.

A piece of the conversation that may have to wait is a generator, a `Talk`. It yields its wait and is sent the
result; errors are thrown into it.

    InThread(call)     run it in a thread, of one of the lanes: what it returns or raises
    Commit(pending)    submit it and wait until it is done: nothing
    PauseWait(pause)   wait until it calls back, or its time is over: nothing
    Delay(seconds)     nothing
    Need.PACKET        the next packet: its bytes
    Need.MESSAGE       the next message: its type and body
    Need.TLS           the handshake: what the client must prove that it saw (channel binding)
    Need.FLUSH         the client has read most of what was written: nothing

Walk: `pgwire.login.startup` and `pgwire.conversation` yield these, `pgwire.connection` answers PACKET and
MESSAGE from its input, `pgwire.door` the others.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from tenure.sql.session.answers import Pause, Pending


class Lane(Enum):
    """The threads that make a call."""

    STATEMENT = "statement"
    LOOKUP = "lookup"
    """Looks up a user."""
    OPENING = "opening"
    """Opens a session for an authenticated client."""
    CANCEL = "cancel"


class InThread(NamedTuple):
    call: Callable[[], Any]
    is_inside: bool = False
    """It belongs to an open transaction, whose locks others may wait for: it must not queue behind them."""
    can_stop: bool = True
    """It need not be done if it is canceled before it begins."""
    lane: Lane = Lane.STATEMENT


class CommitWait(NamedTuple):
    pending: Pending


class PauseWait(NamedTuple):
    pause: Pause


class Delay(NamedTuple):
    seconds: float


class Need(Enum):
    PACKET = "packet"
    MESSAGE = "message"
    TLS = "tls"
    FLUSH = "flush"


Wait = InThread | CommitWait | PauseWait | Delay | Need

T = TypeVar("T")
Talk = Generator[Wait, Any, T]
