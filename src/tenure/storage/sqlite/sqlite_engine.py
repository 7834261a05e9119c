"""The SQLite engine: one file that several node processes on one machine share.

    readers (a pool) ──────────────► WAL snapshot: never wait, never block
    writer, urgent writer ─ turn ────► BEGIN IMMEDIATE … COMMIT (fsync)
    checkpointer ──────────────────► moves the WAL into the file, off the commit path
    poller ────────────────────────► asks `data_version`, then lanes: has another process committed? where?
                                     and says in the log which process a writer has waited for too long

Each writer has a connection of its own, so that a heartbeat never waits for this process's
queue of ordinary commits. Commits are durable (`synchronous=FULL`): an acknowledged one is on
disk. An fsync that fails is fatal, because the kernel may already have dropped the pages:
the engine then answers nothing but that, until its process starts again.

`:memory:` is the same code on a single connection, for tests and the simulator.

Invariant (I5): a group is durable before its outcomes are returned, and all or nothing.

Walk: `kv` -> `get`/`scan`/`history` (a reader) or `enter` and `commit` (-> `sqlite.section.decide`).
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import apsw

from tenure.base.clock import check_offset
from tenure.base.env import Env, Task
from tenure.base.errors import (
    CorruptData,
    DiskFull,
    InputOutput,
    InvalidParameter,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    StoreError,
    TenureError,
    Unavailable,
)
from tenure.base.interruptible import abandonable
from tenure.base.timestamp import LOGICAL_MAX, Timestamp, from_micros, micros_of, to_text
from tenure.storage.engine import (
    EVERY_HEAD,
    Commit,
    CommitStatus,
    Group,
    Guard,
    History,
    MovedHeads,
    Outcome,
    Portion,
    ReadResult,
    Revisions,
    Scan,
    Spread,
    StoreOrigin,
    WrittenHeads,
)
from tenure.storage.outcomes import decode_outcomes, encode_outcomes
from tenure.storage.signals import Signals
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite import section as sqlite_section
from tenure.storage.sqlite.database_file import MEMORY, connect, copy_file, inspect, lay_out
from tenure.storage.sqlite.head_clock import Execute, moved_heads, write_heads, written_heads
from tenure.storage.sqlite.poller import SqlitePoller
from tenure.storage.sqlite.section_turn import SectionTurn
from tenure.storage.sqlite.turnstile import Turnstile

T = TypeVar("T")

FATAL = frozenset({apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC})
"""Errors after which SQLite's word on what is durable can no longer be trusted."""

WAL_PAGES_KEPT = 2_048
"""8 MiB: from this size on, the WAL is made to start over."""

WAL_PAGES_LAST = 512
"""2 MiB: commits wait while no more than about this is moved, a few milliseconds."""

CHECKPOINT_PASSES_MAX = 4
"""Each pass finds what came during the one before, which is less; a disk that is too slow for that must not
keep the checkpointer busy for ever.
"""

__all__ = ["MEMORY", "SqliteEngine"]

_SET_LANE = "UPDATE lane SET seq = ?, outcomes = ? WHERE id = ?"


class SqliteEngine:
    """Shared by the threads of a process; see the contract in `storage.engine`."""

    name = "sqlite"

    def __init__(
        self, path: str, env: Env, *, host_micros: Callable[[], int] | None = None, vfs: str | None = None
    ) -> None:
        self._path = path
        self._env = env
        self._host_micros = host_micros or env.wall_micros
        self._vfs = vfs
        self._failure: StoreError | None = None
        self._urgent_lanes: set[bytes] = set()
        self._lanes: set[bytes] = set()
        """Lanes of this process; all other lanes belong to other processes."""
        self._turns: list[SectionTurn] = []
        self._entered: set[bytes] = set()
        """Lanes whose next group has the section."""
        self._signals = Signals(env)
        self._poller_lock = env.lock()
        self._poller: Task | None = None
        self._closing = env.event()
        self._readers: deque[_Connection] = deque()
        self._opened: list[_Connection] = []
        self.is_new = path == MEMORY
        """Whether the store was created by this open."""
        try:
            with self._translated():
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self._path == MEMORY:
            self._writer = self._urgent_writer = self._checkpointer = self._connect()
            lay_out(self._writer.execute, self._path)
            return
        self.is_new = _create(self._path)
        inspect(self._path, self._vfs)
        self._writer = self._connect(Turnstile(self._path))
        with self._section(self._writer) as execute:
            lay_out(execute, self._path)
        self._urgent_writer = self._connect(Turnstile(self._path, urgent=True))
        self._checkpointer = self._connect(Turnstile(self._path))

    def _connect(self, turnstile: Turnstile | None = None, *, query_only: bool = False) -> "_Connection":
        connection = connect(self._path, self._env, self._vfs, query_only=query_only)
        turn = None
        if turnstile is not None:
            turn = SectionTurn(self._env, turnstile)
            self._turns.append(turn)
        opened = _Connection(connection, self._env.lock(), turn)
        self._opened.append(opened)
        return opened

    # ── reads ──────────────────────────────────────────────────────────────────────────────────

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        """The hottest path: no context managers, and few calls."""
        reader = self._borrow()
        try:
            return sqlite_reads.get(reader.execute, key, guard, at)
        except apsw.Error as error:
            raise self._translate(error) from error
        finally:
            self._give_back(reader)

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        return self._read(sqlite_reads.get_many, tuple(keys), guard, at)

    def clock_at(self) -> Timestamp:
        return self._read(sqlite_reads.clock_at)

    def _read(self, read: Callable[..., T], *arguments: object) -> T:
        """Runs a read whose statements are snapshots by themselves. `get` has the same code inline."""
        reader = self._borrow()
        try:
            return read(reader.execute, *arguments)
        except apsw.Error as error:
            raise self._translate(error) from error
        finally:
            self._give_back(reader)

    def scan(self, query: Scan) -> ReadResult:
        with self._snapshot() as execute:
            return sqlite_reads.scan(execute, query)

    def history(self, query: History) -> ReadResult:
        with self._snapshot() as execute:
            return sqlite_reads.history(execute, query)

    def revisions(self, query: Revisions) -> ReadResult:
        with self._snapshot() as execute:
            return sqlite_reads.revisions(execute, query)

    def spread(self, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
        with self._snapshot() as execute:
            return sqlite_reads.spread(execute, lo, hi, since_at, every)

    def moved_heads(self, since_at: Timestamp) -> MovedHeads:
        return self._read(moved_heads, since_at)

    def written_heads(self) -> WrittenHeads:
        return self._read(written_heads)

    def portions(
        self, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
    ) -> list[Portion]:
        return self._read(sqlite_reads.portions, lo, hi, since_at, until_at, size_max)

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        with self._snapshot() as execute:
            clock_at = sqlite_reads.clock_at(execute)
            return clock_at, sqlite_section.failure(execute, commit, clock_at=clock_at)

    def wall_micros(self) -> int:
        return self._host_micros()

    @contextmanager
    def _snapshot(self) -> Iterator[Execute]:
        """Lends a connection inside a read transaction: all its statements see one state."""
        reader = self._borrow()
        try:
            with self._translated():
                reader.execute("BEGIN", ())
                try:
                    yield reader.execute
                finally:
                    reader.execute("ROLLBACK", ())
        finally:
            self._give_back(reader)

    def _borrow(self) -> "_Connection":
        if self._failure is not None:
            raise self._failure
        if self._path == MEMORY:
            self._writer.lock.__enter__()
            return self._writer
        try:
            return self._readers.pop()
        except IndexError:
            with self._translated():
                return self._connect(query_only=True)

    def _give_back(self, reader: "_Connection") -> None:
        if self._path == MEMORY:
            reader.lock.__exit__(None, None, None)
        else:
            self._readers.append(reader)

    # ── the section ────────────────────────────────────────────────────────────────────────────

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        turn = self._writer_of(lane).turn
        if turn is None:
            return True
        with self._translated():
            if wait:
                turn.enter()
            elif not turn.try_enter():
                return False
        self._entered.add(lane)
        return True

    def leave(self, lane: bytes) -> None:
        turn = self._writer_of(lane).turn
        if turn is not None:
            self._entered.remove(lane)
            turn.leave()

    def _writer_of(self, lane: bytes) -> "_Connection":
        return self._urgent_writer if lane in self._urgent_lanes else self._writer

    def commit(self, group: Group) -> list[Outcome]:
        writer = self._writer_of(group.lane)
        with self._section(writer, has_turn=group.lane in self._entered) as execute:
            check_offset(
                node_micros=micros_of(group.wall_at),
                engine_micros=self._host_micros(),
                max_offset_micros=group.max_offset_micros,
            )
            last_seq, _, clock_at = _lane_row(execute, group.lane, SessionLost)
            if last_seq >= group.seq:
                raise RetryError("the commit was given up before it arrived")
            outcomes, clock_at = sqlite_section.decide(
                execute, group.members, clock_at=clock_at, wall_at=group.wall_at
            )
            if not any(outcome.status is CommitStatus.COMMITTED for outcome in outcomes):
                execute("ROLLBACK", ())  # nothing changed, so an fsync would be wasted
                return outcomes
            moved = write_heads(execute, group.members, outcomes)
            execute("UPDATE clock SET at = ?", (clock_at,))
            execute(_SET_LANE, (group.seq, encode_outcomes(outcomes), group.lane))
        self._signals.wake(None if EVERY_HEAD in moved else moved)
        return outcomes

    def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
        with self._section(self._writer) as execute:
            last_seq, outcomes, _ = _lane_row(execute, lane, OutcomeUnknown)
            if last_seq > seq:
                raise OutcomeUnknown(f"the lane has gone on to group {last_seq}, past {seq}")
            if last_seq < seq:
                outcomes = None
                execute(_SET_LANE, (seq, None, lane))
            return None if outcomes is None else decode_outcomes(outcomes)

    def open_lane(self, *, urgent: bool = False) -> bytes:
        lane = self._env.rng.randbytes(16)
        with self._section(self._writer) as execute:
            self._lanes.add(lane)
            execute("INSERT INTO lane (id, seq) VALUES (?, 0)", (lane,))
        if urgent:
            self._urgent_lanes.add(lane)
        return lane

    def close_lane(self, lane: bytes) -> None:
        with self._section(self._writer) as execute:
            execute("DELETE FROM lane WHERE id = ?", (lane,))
        self._urgent_lanes.discard(lane)

    def push_clock(self, at: Timestamp) -> Timestamp:
        # The caller is a statement that reads at `at`: it can be canceled while another process has the
        # section.
        return abandonable(self._env, "push the clock", lambda: self._push_clock(at))

    def _push_clock(self, at: Timestamp) -> Timestamp:
        with self._section(self._writer) as execute:
            if at > from_micros(self._host_micros(), LOGICAL_MAX):
                raise InvalidParameter(f"timestamp {to_text(at)} lies in the future of the store's clock")
            ((clock_at,),) = execute("UPDATE clock SET at = max(at, ?) RETURNING at", (at,))
        return int(clock_at)

    @contextmanager
    def _section(self, writer: "_Connection", *, has_turn: bool = False) -> Iterator[Execute]:
        """One exclusive, durable transaction; nothing is changed if its body raises.

        `has_turn`: the caller has entered already, and leaves by itself.
        """
        if self._failure is not None:
            raise self._failure
        with nullcontext() if has_turn else writer.passing(), self._translated():
            writer.execute("BEGIN IMMEDIATE", ())
            try:
                yield writer.execute
                if writer.connection.in_transaction:
                    writer.execute("COMMIT", ())
            except BaseException:
                # SQLite may have rolled back by itself, for instance when the disk is full.
                if writer.connection.in_transaction:
                    writer.execute("ROLLBACK", ())
                raise

    # ── signals, upkeep ────────────────────────────────────────────────────────────────────────

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        with self._poller_lock:
            if self._poller is None and self._path != MEMORY:
                poller = SqlitePoller(
                    *(self._path, self._env, self._connect(query_only=True).execute, self._signals),
                    lanes=self._lanes,
                    turns=self._turns,
                )
                self._poller = self._env.spawn("sqlite poller", partial(poller.run, self._closing))
        return self._signals.subscribe(wake, spans)

    def origin(self) -> StoreOrigin:
        if self._path == MEMORY:
            return StoreOrigin(MEMORY)
        with self._translated():
            return StoreOrigin(f"inode {os.stat(self._path).st_ino}", os.path.realpath(self._path))

    def copy_to(self, path: str) -> None:
        """Writes a copy, as of one moment, to a file that is not there yet; commits go on meanwhile."""
        with self._translated():
            source = self._connect(query_only=True).connection
        try:
            copy_file(source, path)
        except (apsw.Error, OSError) as error:
            raise _translate(error, path) from error

    def checkpoint(self) -> None:
        """Moves the WAL into the file, so that no commit has to: one bounded step for a loop."""
        if self._path == MEMORY:
            return
        with self._translated(), self._checkpointer.lock:
            moved = 0
            for _ in range(CHECKPOINT_PASSES_MAX):
                pages = self._checkpointer.move_wal()
                if pages <= WAL_PAGES_KEPT:
                    return
                if pages - moved <= WAL_PAGES_LAST:
                    break
                moved = pages
            # Commits add to it all the time, so it would never start over and only grow: the little that came
            # during the last pass is moved while they wait.
            with self._checkpointer.passing():
                self._checkpointer.move_wal()

    def close(self) -> None:
        self._closing.set()
        if self._poller is not None:
            self._poller.join()
        while self._opened:
            self._opened.pop().close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> TenureError:
        translated = _translate(error, self._path)
        if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in FATAL:
            self._failure = InputOutput(
                "an fsync of the store's file failed, so what is on disk is not known",
                hint="Check the disk, then start this process again.",
                private=self._path,
            )
            return OutcomeUnknown(str(self._failure), hint=self._failure.hint, private=self._path)
        return translated


class _Connection:
    """An apsw connection, its one cursor, and what must be held to use it: a turn where other processes use
    the file too, else a lock.
    """

    def __init__(
        self, connection: apsw.Connection, lock: AbstractContextManager[object], turn: SectionTurn | None
    ) -> None:
        self.connection = connection
        self.lock = lock
        self.turn = turn
        self._run = connection.cursor().execute

    def execute(self, statement: str, values: Sequence[Any]) -> list[Any]:
        # All rows at once: a statement left half read would hold its snapshot open.
        return self._run(statement, values).fetchall()

    def move_wal(self) -> int:
        """Moves what no reader needs from the WAL into the file; returns the pages of the WAL."""
        try:
            pages, _ = self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            return 0  # another process is checkpointing
        return pages

    def passing(self) -> AbstractContextManager[object]:
        return self.lock if self.turn is None else self._in_turn(self.turn)

    @contextmanager
    def _in_turn(self, turn: SectionTurn) -> Iterator[None]:
        turn.enter()
        try:
            yield
        finally:
            turn.leave()

    def close(self) -> None:
        self.connection.close(force=True)
        if self.turn is not None:
            self.turn.close()


def _create(path: str) -> bool:
    """Creates the file with access for its owner alone, unless it exists."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        os.close(os.open(path, flags | os.O_EXCL, 0o600))
        return True
    except FileExistsError:
        os.close(os.open(path, flags, 0o600))
        return False


def _lane_row(
    execute: Execute, lane: bytes, closed: type[TenureError]
) -> tuple[int, bytes | None, Timestamp]:
    """A lane's last group and its outcomes, with the store clock."""
    rows = execute("SELECT seq, outcomes, (SELECT at FROM clock) FROM lane WHERE id = ?", (lane,))
    if not rows:
        raise closed("the node that sent this commit was declared dead: its lane is closed")
    seq, outcomes, clock_at = rows[0]
    return seq, outcomes, clock_at


def _translate(error: Exception, path: str) -> TenureError:
    reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
    message, private = f"the store's file: {reason}", f"{path}: {error}"
    if isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return DiskFull(message, hint="Free some space on its disk; nothing was changed.", private=private)
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        hint = "Restore the file from a backup; it was left as it is."
        return CorruptData(message, hint=hint, private=private)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Unavailable(message, hint="Another program holds the file's lock.", private=private)
    hint = "Check that the directory exists, is writable and its disk is well."
    return InputOutput(message, hint=hint, private=private)
