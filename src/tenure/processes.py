"""Several processes behind one port: how a machine's cores are used.

    tenure start --processes 4

Python runs one thread at a time, so one node uses little more than a core. This starts several nodes, as
processes of their own, over the same store; they share the socket that the parent listens on. Each is an
ordinary node with a session, leases and jobs of its own. One that dies is started again after a pause; its
clients connect again and reach another.

A child names each of its sessions to the parent, on its standard output:

    ready sql=... instance=1 store=...
    session 1 1763323200000000        instance and epoch

When the parent has reaped it, it ends those sessions at once (`cluster.sessions.reaped_sessions`): a schema
change need not wait until they expire. A session that a child could not name in time expires as usual.

The parent only holds the port, and starts, watches and stops the children; it serves nothing. The children
end with it in every case: their standard input is a pipe that it holds.

Invariant (port-is-ours): while the parent lives, no socket but those that its children inherit has the port.

Walk: `cli` calls `run` -> `tenure start --inherited-port` for each process; `pgwire.listeners` accepts.
"""

import logging
import os
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import NoReturn

from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter, SessionLost, TenureError, for_operator
from tenure.base.machine_memory import PROCESSES_VARIABLE
from tenure.base.process_ending import Ending
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.reaped_sessions import end_reaped
from tenure.cluster.sessions.session_records import SessionId
from tenure.front import Listen
from tenure.kv.store import Store
from tenure.pgwire.listeners import BACKLOG
from tenure.storage.addresses import open_engine

RESTART_SECONDS = 1.0
"""The pause before a process that died is started again: one that cannot run must not use a core by trying.
"""

POLL_SECONDS = 0.2
PROCESSES_MAX = 64

STOP_SLACK_SECONDS = 5.0
"""Added to the drain's time before a process is killed: on a busy machine it ends a little late."""

_log = logging.getLogger(__name__)

SESSION = "session"
"""The first word of the line that names a session on a child's standard output."""

STORE_VARIABLE, LAKE_VARIABLE = "TENURE_STORE", "TENURE_LAKE"
"""Environment variables for the store and the lake, where the command line does not name them."""


def run(options: Namespace, listen: Listen, env: Env) -> int:
    """Returns the exit code when all processes have ended."""
    if not 1 <= options.processes <= PROCESSES_MAX:
        raise InvalidParameter(f"--processes takes a number from 1 to {PROCESSES_MAX}")
    listen.check()
    os.environ.update(in_environment(options))
    os.environ[PROCESSES_VARIABLE] = str(options.processes)
    children: list[Child] = []
    # The parent's own bound is the last resort: the children's bounds are shorter.
    stop_seconds = options.drain_timeout + STOP_SLACK_SECONDS
    ending = Ending(
        env, drain_seconds=stop_seconds + STOP_SLACK_SECONDS, before_force=lambda: _kill(children)
    )
    with ending:
        try:
            with _listening(listen) as port:
                start = partial(Child, _command(options, listen.host, port), port, env)
                for _ in range(options.processes):
                    children.append(start())
                _await_ready(children)
                _watch(children, start, options.store, env)
        except KeyboardInterrupt:
            return _end(children, stop_seconds)
        except BaseException:
            _end(children, stop_seconds)
            raise


def in_environment(options: Namespace) -> dict[str, str]:
    """Options that are passed in the environment, as they may contain passwords: all users can read a command
    line.
    """
    return {STORE_VARIABLE: options.store, LAKE_VARIABLE: options.lake}


def on_command_line(options: Namespace) -> list[str]:
    """The other options that the nodes and workers started by a process share."""
    told = ["--with-parent", "--drain-timeout", str(options.drain_timeout)]
    told += ["--compat-version", str(options.compat_version)]
    told += ["--files", options.files, "--spark-master", options.spark_master]
    for endpoint in options.s3_endpoint:
        told += ["--s3-endpoint", endpoint]
    return [*told, "--s3-implicit"] if options.s3_implicit else told


def _listening(listen: Listen) -> socket.socket:
    """Binds the port for this process and its children alone: without SO_REUSEPORT no other can bind it."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    port = socket.socket(family, socket.SOCK_STREAM)
    # Allows a port whose last connections linger; it never lets two sockets listen.
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        port.bind((listen.host, listen.port))
        port.listen(BACKLOG)
    except OSError as error:
        port.close()
        raise InputOutput(
            f"listening on {listen.host}:{listen.port}: {error.strerror or error}",
            hint="Give another address with --sql HOST:PORT; port 0 takes a free one.",
        ) from error
    port.setblocking(False)  # for all processes: the flag belongs to the shared socket
    return port


def _command(options: Namespace, host: str, port: socket.socket) -> list[str]:
    address = f"{host}:{port.getsockname()[1]}"
    command = [sys.executable, "-m", "tenure.cli", "start", "--inherited-port", str(port.fileno())]
    command += ["--sql", address, *on_command_line(options)]
    if options.cert:
        command += ["--cert", options.cert, "--key", options.key]
    return [*command, "--insecure"] if options.insecure else command


def _await_ready(children: Sequence["Child"]) -> None:
    for child in children:
        child.has_spoken.wait()
        if not child.ready_line:
            raise InputOutput("a process could not be started; its log says why")
    # One of them may have created the store, and then reports it.
    first = max((child.ready_line for child in children), key=lambda line: "created=" in line)
    print(f"{first} processes={len(children)}", flush=True)


def _watch(children: "list[Child]", start: Callable[[], "Child"], store: str, env: Env) -> NoReturn:
    while True:
        env.sleep(POLL_SECONDS)
        for position, child in enumerate(children):
            code = child.process.poll()
            if code is not None:
                _log.warning("process %d ended with %d; starting another", child.process.pid, code)
                # In a thread: a store that hangs must not keep the next process from starting.
                env.spawn("reaped sessions", partial(_end_sessions, child, store, env))
                env.sleep(RESTART_SECONDS)
                children[position] = start()


def _end_sessions(child: "Child", store: str, env: Env) -> None:
    """Ends the sessions of a process that was reaped; those that fail here expire by themselves."""
    sessions = child.sessions()
    try:
        with closing(open_engine(store, env)) as engine, closing(Store(engine, env)) as opened:
            for session in sessions:
                if end_reaped(opened, session):
                    _log.info("ended session %s of process %d", session, child.process.pid)
    except TenureError as error:
        _log.warning(
            "the sessions of process %d are left to expire: %s", child.process.pid, for_operator(error)
        )


class Child:
    """A process that was started here, with its output."""

    def __init__(self, command: list[str], port: socket.socket, env: Env) -> None:
        # A group of its own: Ctrl-C reaches the parent alone, which then stops them in order.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
            start_new_session=True,
            pass_fds=(port.fileno(),),
        )
        self.ready_line = ""
        """Empty if it ended before it was ready."""
        self.has_spoken = env.event()
        self._sessions: list[SessionId] = []
        self._reading = env.spawn(f"output of {self.process.pid}", self._read)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *rest = line.split()
            if word == "ready":
                self.ready_line = line.strip()
                self.has_spoken.set()
            elif word == SESSION:
                instance, epoch_at = map(int, rest)
                self._sessions.append(SessionId(instance, epoch_at))
        self.has_spoken.set()

    def sessions(self) -> list[SessionId]:
        """All sessions that it has named, once it has ended."""
        self._reading.join()
        return self._sessions


class SessionTeller:
    """The child's side: names each new session of the node to the parent."""

    def __init__(self, session: Callable[[], NodeSession]) -> None:
        self._session = session
        self._told: SessionId | None = None

    def step(self) -> None:
        # Without a session there is nothing to name; without a parent this process is about to end.
        with suppress(SessionLost, OSError):
            session = self._session().id
            if session != self._told:
                print(SESSION, session.instance, session.epoch_at, flush=True)
                self._told = session


def _end(children: Sequence["Child"], stop_seconds: float) -> int:
    for child in children:
        child.process.terminate()
    codes = []
    for child in children:
        try:
            codes.append(child.process.wait(stop_seconds))
        except subprocess.TimeoutExpired:
            child.process.kill()
            codes.append(1)
    return max((abs(code) for code in codes), default=0)


def _kill(children: Sequence["Child"]) -> None:
    for child in children:
        child.process.kill()
