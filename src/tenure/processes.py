"""Several processes behind one port: how a machine's cores are used.

    tenure start --processes 4

Python runs one thread at a time, so one node uses little more than a core. This starts several nodes, as
processes of their own, over the same store; they share the socket that the parent listens on. Each is an
ordinary node with a session, leases and jobs of its own. One that dies is started again after a pause; its
clients connect again and reach another.

The parent only holds the port, starts, watches and stops the others; it serves nothing. The others end with
it, however it ends: their standard input is a pipe that it holds.

Invariant (port-is-ours): while the parent lives, no socket but those that its children inherit has the port.

Walk: `cli` calls `run` -> `tenure start --inherited-port` for each process; `pgwire.listeners` accepts.
"""

import logging
import os
import socket
import subprocess
import sys
from argparse import Namespace
from typing import IO, NoReturn

from tenure.base.ending import Ending
from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter
from tenure.front import Listen
from tenure.pgwire.listeners import BACKLOG

RESTART_SECONDS = 1.0
"""Before a process that died is started again: one that cannot run must not take a core by trying."""

POLL_SECONDS = 0.2
PROCESSES_MAX = 64

STOP_SLACK_SECONDS = 5.0
"""Beyond the time that a process has for its drain: it ends by itself, on a busy machine a little later."""

_log = logging.getLogger(__name__)


STORE_VARIABLE, LAKE_VARIABLE = "TENURE_STORE", "TENURE_LAKE"
"""In the environment: the store and the lake, where the command line does not name them."""


def run(options: Namespace, listen: Listen, env: Env) -> int:
    """Returns the exit code, when all of them have ended."""
    if not 1 <= options.processes <= PROCESSES_MAX:
        raise InvalidParameter(f"--processes takes a number from 1 to {PROCESSES_MAX}")
    listen.check()
    os.environ.update(in_environment(options))
    children: list[subprocess.Popen[str]] = []
    # The parent's own bound is the last resort: the children's end before it.
    stop_seconds = options.drain_timeout + STOP_SLACK_SECONDS
    ending = Ending(
        env, drain_seconds=stop_seconds + STOP_SLACK_SECONDS, before_force=lambda: _kill(children)
    )
    with ending, _listening(listen) as port:
        command = _command(options, f"{listen.host}:{port.getsockname()[1]}", port)
        try:
            for _ in range(options.processes):
                children.append(_started(command, port))
            _await_ready(children)
            _watch(children, command, port, env)
        except KeyboardInterrupt:
            port.close()  # nobody waits in a queue that is not served any more
            return _end(children, stop_seconds)
        except BaseException:
            _end(children, stop_seconds)
            raise


def in_environment(options: Namespace) -> dict[str, str]:
    """What other processes are told there, as it may have passwords: all can read a command line."""
    return {STORE_VARIABLE: options.store, LAKE_VARIABLE: options.lake}


def on_command_line(options: Namespace) -> list[str]:
    """What nodes and workers that a process starts are told alike, besides."""
    told = ["--with-parent", "--drain-timeout", str(options.drain_timeout)]
    told += ["--compat-version", str(options.compat_version)]
    told += ["--files", options.files, "--spark-master", options.spark_master]
    for endpoint in options.s3_endpoint:
        told += ["--s3-endpoint", endpoint]
    return [*told, "--s3-implicit"] if options.s3_implicit else told


def _listening(listen: Listen) -> socket.socket:
    """Takes the port for this process and its children alone: without SO_REUSEPORT nobody can join."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    port = socket.socket(family, socket.SOCK_STREAM)
    # For a port whose last connections linger; it never lets two listen.
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
    port.setblocking(False)  # for all: it belongs to what they share
    return port


def _command(options: Namespace, address: str, port: socket.socket) -> list[str]:
    command = [sys.executable, "-m", "tenure.cli", "start", "--inherited-port", str(port.fileno())]
    command += ["--sql", address, *on_command_line(options)]
    if options.cert:
        command += ["--cert", options.cert, "--key", options.key]
    return [*command, "--insecure"] if options.insecure else command


def _started(command: list[str], port: socket.socket) -> "subprocess.Popen[str]":
    # A group of its own: Ctrl-C reaches the parent alone, which then stops them in order.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        start_new_session=True,
        pass_fds=(port.fileno(),),
    )


def _await_ready(children: "list[subprocess.Popen[str]]") -> None:
    lines = []
    for child in children:
        assert child.stdout is not None
        lines.append(_ready_line(child.stdout))
    first = lines[0]
    print(f"{first} processes={len(children)}", flush=True)


def _ready_line(output: IO[str]) -> str:
    line = output.readline().strip()
    if not line.startswith("ready"):
        raise InputOutput("a process could not be started; its log says why")
    return line


def _watch(
    children: "list[subprocess.Popen[str]]", command: list[str], port: socket.socket, env: Env
) -> NoReturn:
    while True:
        env.sleep(POLL_SECONDS)
        for position, child in enumerate(children):
            if child.poll() is not None:
                _log.warning("process %d ended with %d; starting another", child.pid, child.returncode)
                env.sleep(RESTART_SECONDS)
                children[position] = _started(command, port)


def _end(children: "list[subprocess.Popen[str]]", stop_seconds: float) -> int:
    for child in children:
        child.terminate()
    codes = []
    for child in children:
        try:
            codes.append(child.wait(stop_seconds))
        except subprocess.TimeoutExpired:
            child.kill()
            codes.append(1)
    return max((abs(code) for code in codes), default=0)


def _kill(children: "list[subprocess.Popen[str]]") -> None:
    for child in children:
        child.kill()
