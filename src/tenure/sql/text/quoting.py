"""Names as SQL text: in quotes where they need them.

Walk: the writers of SQL text (defaults, CHECKs, SHOW CREATE) call `quoted` and `literal`.
"""

import re

from tenure.sql.text.parse import is_reserved

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and not is_reserved(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
