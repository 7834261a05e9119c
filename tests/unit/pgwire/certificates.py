"""Certificates of the moment, made with the openssl binary."""

import subprocess
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    certificate: Path
    key: Path


def make_certificate(directory: Path, *options: str) -> Pair:
    """A self-signed one for localhost; `options` choose key and digest."""
    pair = Pair(directory / "node.crt", directory / "node.key")
    openssl(
        "req",
        *(
            "-x509",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ),
        *("-keyout", str(pair.key), "-out", str(pair.certificate)),
        *(options or ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")),
    )
    pair.key.chmod(0o600)
    return pair


def openssl(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout
