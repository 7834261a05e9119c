"""An archive of the classes that Spark loads, so that Java maps them instead of reading 280 jars.

    first session    starts without; then `make_in_background` starts a process of low priority, which opens
                     a session of its own, has it do a little of everything, and lets Java write down at its
                     exit which classes it had
    later sessions   -XX:SharedArchiveFile=..., about half the time

An archive fits one Java and one set of jars: both are part of its name, so a stale one is never used. Java
checks sums over it and passes over one that is damaged or does not fit. It is written under another name
and renamed when it is whole.

Walk: `pipeline.spark` calls `Archive.of`, `options`, `make_in_background`, which starts `archive_maker`.
"""

import hashlib
import logging
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tenure.pipeline.java import Java

PATTERN = "spark-*.jsa"

IN_BACKGROUND = 'nice -n 19 "$@" </dev/null >/dev/null 2>&1 &'
"""By a shell that ends at once, so that nobody has to wait for it."""

_log = logging.getLogger(__name__)


class Archive(NamedTuple):
    path: Path

    @classmethod
    def of(cls, directory: Path, java: Java, spark_home: Path) -> "Archive":
        jars = sorted((spark_home / "jars").iterdir())
        facts = [str(java.program), java.version, str(java.program.stat().st_mtime_ns), str(spark_home)]
        facts += [f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
        digest = hashlib.blake2b("\n".join(facts).encode(), digest_size=12).hexdigest()
        return cls(directory / PATTERN.replace("*", digest))

    def is_there(self) -> bool:
        return self.path.is_file()

    def options(self) -> str:
        return f"-XX:SharedArchiveFile={self.path} -Xshare:auto -XX:+VerifySharedSpaces"

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def make_in_background(self) -> None:
        command = [sys.executable, "-m", "tenure.pipeline.archive_maker", str(self.path)]
        try:
            # Mode 0700: whoever may write an archive decides what Java runs.
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            subprocess.run(["sh", "-c", IN_BACKGROUND, "sh", *command], check=True, start_new_session=True)
        except (OSError, subprocess.CalledProcessError) as error:
            _log.warning("no archive of Spark's classes: %s", error)
