"""The privileges on sequences that the calls of an expression need.

    nextval    USAGE or UPDATE          currval    USAGE or SELECT          setval    UPDATE

As in PostgreSQL, a default draws values by the rights of the user that inserts, so that nobody draws from the
sequence of another by a table of one's own. The sequence of an identity column is a part of its table, and
needs none.

Walk: `sql.names.session_names` asks while it binds calls; INSERT, UPDATE, COPY, IMPORT and ALTER TABLE for
the defaults that they use; `bulk.importing.job` asks again at each run.
"""

from collections.abc import Iterable, Iterator

from tenure.catalog.accounts.privileges import SELECT, UPDATE, USAGE
from tenure.catalog.descriptors.definitions import Column
from tenure.expr.functions.sequence_functions import CURRENT, NEXT, SET
from tenure.expr.tree.expressions import Call, Const, Node, decode, nodes

_NEEDED = {NEXT: USAGE | UPDATE, CURRENT: USAGE | SELECT, SET: UPDATE}
"""By function, the privileges of which one is enough."""


def sequence_needs(tree: Node) -> Iterator[tuple[int, int]]:
    """The sequences that are called, each with the privileges of which one is needed."""
    for node in nodes(tree):
        if isinstance(node, Call) and node.arguments and isinstance(node.arguments[0], Const):
            privilege = _NEEDED.get(node.function.partition("(")[0])
            if privilege is not None:
                yield node.arguments[0].packed, privilege


def default_needs(columns: Iterable[Column]) -> Iterator[tuple[int, int]]:
    """The same of the defaults of columns."""
    for each in columns:
        if each.default is not None and each.default.sequences and not each.identity:
            yield from sequence_needs(decode(each.default.tree))
