"""An S3 on loopback for tests: moto, in a process of its own.

In this process it would wait for the interpreter's lock, which pyarrow holds while it waits for S3.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

SERVE = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until whoever started it is gone
"""


@contextmanager
def running() -> Iterator[str]:
    """Yields the endpoint; the environment's credentials are ones that moto takes."""
    with stoppable() as server:
        yield server.endpoint


class S3Server(NamedTuple):
    endpoint: str
    process: "subprocess.Popen[bytes]"

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Meanwhile it accepts connections, and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def stoppable() -> Iterator[S3Server]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "AWS_ACCESS_KEY_ID": "server", "AWS_SECRET_ACCESS_KEY": "server"},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield S3Server(f"http://127.0.0.1:{int(process.stdout.readline())}", process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def make_bucket(endpoint: str, name: str) -> None:
    from pyarrow import fs

    fs.S3FileSystem(
        access_key="test",
        secret_key="test",
        region="us-east-1",
        scheme="http",
        endpoint_override=endpoint.removeprefix("http://"),
        allow_bucket_creation=True,
    ).create_dir(name)
