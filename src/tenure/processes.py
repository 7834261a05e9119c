"""Several processes behind one port: how a machine's cores are used.

    tenure start --processes 4

Python runs one thread at a time, so one node uses little more than a core. This starts several nodes, as
processes of their own, over the same store and on the same port; the kernel spreads the connections. Each
is an ordinary node with a session, leases and jobs of its own. One that dies is started again after a
pause; its clients connect again and reach another.

The parent only holds the port, starts, watches and stops the others; it serves nothing.

Walk: `cli` calls `run` -> `tenure start --shared-port` for each process.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from typing import IO, NoReturn

from tenure.base.env import Env
from tenure.base.errors import InputOutput, InvalidParameter
from tenure.front import Listen

RESTART_SECONDS = 1.0
"""Before a process that died is started again: one that cannot run must not take a core by trying."""

POLL_SECONDS = 0.2
STOP_SECONDS = 60.0
PROCESSES_MAX = 64

_log = logging.getLogger(__name__)


class _Stop(BaseException):
    pass


STORE_VARIABLE, LAKE_VARIABLE = "TENURE_STORE", "TENURE_LAKE"
"""In the environment: the store and the lake, where the command line does not name them."""


def run(options: Namespace, listen: Listen, env: Env) -> int:
    """Returns the exit code, when all of them have ended."""
    if not 1 <= options.processes <= PROCESSES_MAX:
        raise InvalidParameter(f"--processes takes a number from 1 to {PROCESSES_MAX}")
    listen.check()
    os.environ.update(in_environment(options))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    with _reserved(listen) as port:
        command = _command(options, f"{listen.host}:{port.getsockname()[1]}")
        children: list[subprocess.Popen[str]] = []
        try:
            for _ in range(options.processes):
                children.append(_started(command))
            _await_ready(children)
            _watch(children, command, env)
        except _Stop:
            return _end(children)
        except BaseException:
            _end(children)
            raise


def in_environment(options: Namespace) -> dict[str, str]:
    """What other processes are told there, as it may have passwords: all can read a command line."""
    return {STORE_VARIABLE: options.store, LAKE_VARIABLE: options.lake}


def on_command_line(options: Namespace) -> list[str]:
    """What nodes and workers are told alike, besides."""
    told = ["--compat-version", str(options.compat_version)]
    told += ["--files", options.files, "--spark-master", options.spark_master]
    for endpoint in options.s3_endpoint:
        told += ["--s3-endpoint", endpoint]
    return [*told, "--s3-implicit"] if options.s3_implicit else told


def _stop(number: int, frame: object) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, frame: None)
    raise _Stop


def _reserved(listen: Listen) -> socket.socket:
    """Holds the port, without listening, so that nobody else takes it while a process is restarted."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        held.bind((listen.host, listen.port))
    except OSError as error:
        held.close()
        raise InputOutput(f"listening on {listen.host}:{listen.port}: {error.strerror or error}") from error
    return held


def _command(options: Namespace, address: str) -> list[str]:
    command = [sys.executable, "-m", "tenure.cli", "start", "--shared-port"]
    command += ["--sql", address, *on_command_line(options)]
    if options.cert:
        command += ["--cert", options.cert, "--key", options.key]
    return [*command, "--insecure"] if options.insecure else command


def _started(command: list[str]) -> "subprocess.Popen[str]":
    # A group of its own: Ctrl-C reaches the parent alone, which then stops them in order.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ, start_new_session=True
    )


def _await_ready(children: "list[subprocess.Popen[str]]") -> None:
    lines = []
    for child in children:
        assert child.stdout is not None
        lines.append(_ready_line(child.stdout))
    # One of them may have made the store, and says so.
    first = max(lines, key=lambda line: "created=" in line)
    print(f"{first} processes={len(children)}", flush=True)


def _ready_line(output: IO[str]) -> str:
    line = output.readline().strip()
    if not line.startswith("ready"):
        raise InputOutput("a process could not be started; its log says why")
    return line


def _watch(children: "list[subprocess.Popen[str]]", command: list[str], env: Env) -> NoReturn:
    while True:
        env.sleep(POLL_SECONDS)
        for position, child in enumerate(children):
            if child.poll() is not None:
                _log.warning("process %d ended with %d; starting another", child.pid, child.returncode)
                env.sleep(RESTART_SECONDS)
                children[position] = _started(command)


def _end(children: "list[subprocess.Popen[str]]") -> int:
    for child in children:
        child.terminate()
    codes = []
    for child in children:
        try:
            codes.append(child.wait(STOP_SECONDS))
        except subprocess.TimeoutExpired:
            child.kill()
            codes.append(1)
    return max((abs(code) for code in codes), default=0)
