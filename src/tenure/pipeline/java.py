"""The Java that Spark runs on: its path, and whether it is suitable.

Spark 4 needs Java 17 or newer with the module `jdk.incubator.vector`. A Java describes itself in a file
`release` beside its programs; where that is missing, the program is run.

    python -m tenure.pipeline.java      reports the fault, and exits with 1

Walk: `pipeline.spark` calls this before it starts a session, `pipeline.starter` before it starts a worker,
the Makefile before tests.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tenure.base.errors import NoJava

OLDEST = 17
MODULE = "jdk.incubator.vector"
HINT = f"Install Java {OLDEST} or newer; on Debian and Ubuntu: apt-get install openjdk-17-jre-headless."
ASK_SECONDS = 30.0


class Java(NamedTuple):
    program: Path
    version: str
    """In its own words: "17.0.15"."""


def find_java(environ: Mapping[str, str]) -> Java:
    """The Java that Spark will use: of JAVA_HOME, else the first on the PATH."""
    program = _program(environ)
    version, modules = _release(program.parent.parent / "release") or _reported(program)
    if _major(version) < OLDEST:
        raise NoJava(f'Spark needs Java {OLDEST} or newer; "{program}" is {version}', hint=HINT)
    if MODULE not in modules:
        raise NoJava(
            f'Spark needs a Java with the module {MODULE}; "{program}" ({version}) lacks it', hint=HINT
        )
    return Java(program, version)


def _program(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise NoJava("Spark needs Java, and there is none on the PATH", hint=HINT)
    program = Path(found).resolve()
    if not program.is_file():
        raise NoJava(f'Spark needs Java, and JAVA_HOME names none: "{home}"', hint=HINT)
    return program


def _release(path: Path) -> tuple[str, frozenset[str]] | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
    if "JAVA_VERSION" not in fields or "MODULES" not in fields:
        return None
    return fields["JAVA_VERSION"], frozenset(fields["MODULES"].split())


def _reported(program: Path) -> tuple[str, frozenset[str]]:
    """The output of `java --list-modules`: one line for each, such as java.base@17.0.15."""
    try:
        said = subprocess.run(
            [program, "--list-modules"], capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f'"{program}" does not run: {error}', hint=HINT) from error
    modules = dict(line.split("@", 1) for line in said.stdout.split() if "@" in line)
    return modules.get("java.base", "8 or older"), frozenset(modules)


def _major(version: str) -> int:
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0


if __name__ == "__main__":
    try:
        find_java(os.environ)
    except NoJava as error:
        sys.exit(f"{error}. {error.hint}")
