"""Encryption of Spark's tasks on their way, so that others cannot read them.

Tasks say how to open the store and the lake, so they may carry passwords and the keys of object stores. By
default Spark writes them into files of a temporary directory, and sends them over the network in the clear.

    on this machine's disks     pyspark hands tasks over through a socket, and spilled data is encrypted
    between Spark's processes   encrypted, with a secret that each session makes, where the processes are ours
    Spark's displays            no web pages, no log of events; settings and options are shown without secrets

The processes of `local` and `local-cluster` are ours. Those of a standalone master, or of any other, were
started by an operator, who has given all of them one secret or none: see docs/reference/spark.md.

Java's command line shows its settings to all users of the machine: a secret is never among them. It is handed
over when Java runs.

Invariant (S24-tasks): no file, command line or plan shows the content of tasks, nor the secret.

Walk: `pipeline.spark` takes `settings` for Java's start, `secret_settings` for the session, and calls
`is_readable` for the session it has got.
"""

import secrets
from collections.abc import Callable

from tenure.pipeline.masters import is_ours

SECRET_BYTES = 32

HIDDEN_OPTIONS = "(?i)url|work"
"""Options of data sources that no plan shows: `frames` puts tasks into one."""


def settings(master: str) -> dict[str, str]:
    everywhere = {
        "spark.eventLog.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.io.encryption.keySizeBits": "256",
        "spark.sql.redaction.options.regex": HIDDEN_OPTIONS,
        "spark.ui.enabled": "false",
    }
    if not is_ours(master):
        return everywhere
    return everywhere | {
        "spark.authenticate": "true",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
    }


def secret_settings(master: str) -> dict[str, str]:
    return {"spark.authenticate.secret": secrets.token_hex(SECRET_BYTES)} if is_ours(master) else {}


def is_readable(setting: Callable[[str], str | None]) -> bool:
    """Whether others could read the data that a session with these settings sends."""
    encrypting = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    return not any(setting(name) == "true" for name in encrypting)
