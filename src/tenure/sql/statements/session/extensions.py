"""CREATE EXTENSION, and DO: nothing can be loaded into a node, and nothing procedural runs in it.

Migrations begin with extensions whose usual functions are built in. These are accepted, and a notice says
what there is; others are refused as PostgreSQL refuses an extension that is not installed.

Walk: `statements.statement_table` -> `plan_create_extension`, `plan_do`.
"""

from tenure.base.errors import DuplicateObject, NotSupported
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.session.utility import Nothing
from tenure.sql.text.parse import Tree

BUILT_IN = "plpgsql"
"""In PostgreSQL it is there from the start, and tools say that it is to be."""

ACCEPTED = {
    "pgcrypto": "gen_random_uuid() is built in; the other functions of pgcrypto are not there",
    "uuid-ossp": "uuid_generate_v4() is built in; the other functions of uuid-ossp are not there",
}


def plan_create_extension(planner: Planner, tree: Tree) -> Nothing:
    name = tree.extname
    if name == BUILT_IN:
        if not tree.if_not_exists:
            raise DuplicateObject(f'extension "{name}" already exists')
        return Nothing("CREATE EXTENSION", f'extension "{name}" already exists, skipping', sqlstate="42710")
    if name not in ACCEPTED:
        raise NotSupported(
            f'extension "{name}" is not available', hint="Nothing can be loaded into Tenure's nodes."
        )
    return Nothing("CREATE EXTENSION", ACCEPTED[name])


def plan_do(planner: Planner, tree: Tree) -> Nothing:
    raise NotSupported(
        "DO is not supported: there is no procedural language",
        hint="Send its statements one by one; CREATE ... IF NOT EXISTS needs no handler of errors.",
    )
