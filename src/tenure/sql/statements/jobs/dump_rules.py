"""The statements that a dump may have, as an explicit list. Others are refused before anything is changed.

    DEFINE   schemas, enums, sequences, tables, constraints, defaults, indexes, views, comments
    ROWS     COPY ... FROM stdin, INSERT of constants
    VALUE    SELECT pg_catalog.setval(...)
    PATH     where names are looked for: SET search_path, SELECT pg_catalog.set_config('search_path', ...)
    NOTHING  settings without effect here
    SKIP     owners, privileges, extension plpgsql, storage: not taken over, and counted

A dump is an untrusted program. It is judged by its parse trees, never by its text. Allowed statements run
like any other statement of the importing user, within a draft.

Invariant (dump-listed): nothing of a dump is run that is not on this list.

Walk: `sql.statements.jobs.import_dump` calls `judge` for each item of `bulk.dumps.scan`.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tenure.base.errors import BadDump, UserError
from tenure.bulk.dumps.scan import CopiedRows, InsertedRows, Item
from tenure.sql.text.parse import Tree, child, items, kind, names, one, option

SHOWN_LENGTH = 60


class Ruling(Enum):
    DEFINE = "define"
    ROWS = "rows"
    VALUE = "value"
    PATH = "path"
    NOTHING = "nothing"
    SKIP = "skip"


class RuledItem(NamedTuple):
    ruling: Ruling
    tree: Tree
    item: Item


class _Refused(Exception):
    def __init__(self, reason: str = "") -> None:
        self.reason = reason


def judge(item: Item, file: str) -> RuledItem | None:
    """The ruling for an item; None if it is empty. Raises BadDump for statements that are not allowed."""
    # One INSERT is judged for all of them: the scan has checked that their values are constants.
    text = f"{item.text} (NULL)" if isinstance(item, InsertedRows) else item.text
    try:
        found = one(text)
    except UserError as error:
        raise BadDump(str(error), file, item.line, error.sqlstate) from error
    if found is None:
        return None
    tree = found.tree
    try:
        rule = RULES.get(kind(tree))
        if rule is None:
            raise _Refused
        ruling = rule(tree)
        if (ruling is Ruling.ROWS) != isinstance(item, CopiedRows | InsertedRows):
            raise _Refused("rows come by COPY ... FROM stdin, or by INSERT with constants alone")
        return RuledItem(ruling, tree, item)
    except _Refused as error:
        raise _refusal(error.reason, item, file) from error


def _refusal(reason: str, item: Item, file: str) -> BadDump:
    words = " ".join(item.text.split())
    shown = words if len(words) <= SHOWN_LENGTH else f"{words[:SHOWN_LENGTH]}..."
    because = f": {reason}" if reason else ""
    return BadDump(
        f"a dump must not have this statement: {shown}{because}",
        file,
        item.line,
        "0A000",
        hint="Leave it out of the dump, and run it by itself afterwards. Nothing was changed.",
    )


# ── settings ───────────────────────────────────────────────────────────────────────────────────

WITHOUT_EFFECT = frozenset(
    (
        *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"),
        *("check_function_bodies", "xmloption", "client_min_messages", "row_security", "default_with_oids"),
        *(
            "default_tablespace",
            "default_table_access_method",
            "session_authorization",
            "escape_string_warning",
        ),
    )
)
REQUIRED = {"client_encoding": ("utf8", "unicode"), "standard_conforming_strings": ("on", "true")}


def _set(tree: Tree) -> Ruling:
    if option(tree, "kind") not in ("VAR_SET_VALUE", "VAR_SET_DEFAULT", "VAR_RESET"):
        raise _Refused
    if tree.name == "search_path":
        if not all(isinstance(constant(each), str) for each in items(tree.args)):
            raise _Refused
        return Ruling.PATH
    if tree.name in REQUIRED:
        values = [str(constant(each)).lower() for each in items(tree.args)]
        if len(values) != 1 or values[0] not in REQUIRED[tree.name]:
            raise _Refused(f"{tree.name} must be {REQUIRED[tree.name][0]}")
        return Ruling.NOTHING
    if tree.name not in WITHOUT_EFFECT:
        raise _Refused
    return Ruling.NOTHING


def _select(tree: Tree) -> Ruling:
    """Only one call of one of a few functions, with constants."""
    name, arguments = called(tree)
    match name, arguments:
        case "set_config", ["search_path", str(), bool()]:
            return Ruling.PATH
        case "setval", [str(), int(), *rest] if all(isinstance(each, bool) for each in rest[:1]):
            return Ruling.VALUE
    raise _Refused


def called(tree: Tree) -> tuple[str, list[object]]:
    """The function that a SELECT of nothing else calls, and its arguments."""
    if {field.name for field, _ in tree.ListFields()} - {"target_list", "limit_option", "op"}:
        raise _Refused
    targets = items(tree.target_list)
    call = child(targets[0], "val") if len(targets) == 1 else None
    if call is None or kind(call) != "FuncCall":
        raise _Refused
    if {field.name for field, _ in call.ListFields()} - {"funcname", "args", "funcformat", "location"}:
        raise _Refused
    path = names(call.funcname)
    if path[:-1] not in ([], ["pg_catalog"]):
        raise _Refused
    return path[-1], [constant(each) for each in items(call.args)]


def constant(tree: Tree) -> object:
    if kind(tree) == "TypeCast":  # 'x'::regclass
        tree = child(tree, "arg")
    if kind(tree) != "A_Const":
        raise _Refused
    which = tree.WhichOneof("val")
    if which is None:
        return None
    value = getattr(tree, which)
    match which:
        case "ival":
            return int(value.ival)
        case "fval" if value.fval.lstrip("-").isdigit():  # larger than an int4
            return int(value.fval)
        case "boolval":
            return bool(value.boolval)
        case "sval":
            return str(value.sval)
    raise _Refused


# ── definitions ────────────────────────────────────────────────────────────────────────────────

DEFINING = frozenset(("AT_AddConstraint", "AT_ColumnDefault", "AT_AddIdentity", "AT_SetNotNull"))
SKIPPED = frozenset(
    (
        *("AT_ChangeOwner", "AT_SetStatistics", "AT_SetStorage", "AT_SetCompression", "AT_ClusterOn"),
        *("AT_ReplicaIdentity", "AT_SetRelOptions", "AT_SetOptions", "AT_SetLogged", "AT_SetUnLogged"),
    )
)
CONSTRAINTS = frozenset(
    ("CONSTR_PRIMARY", "CONSTR_UNIQUE", "CONSTR_FOREIGN", "CONSTR_CHECK", "CONSTR_NOTNULL")
)


def _alter_table(tree: Tree) -> Ruling:
    actions = items(tree.cmds)
    subtypes = {option(each, "subtype") for each in actions}
    if subtypes <= SKIPPED:
        return Ruling.SKIP
    if not subtypes <= DEFINING or option(tree, "objtype") != "OBJECT_TABLE":
        raise _Refused
    added = [child(each, "def") for each in actions if option(each, "subtype") == "AT_AddConstraint"]
    if any(option(each, "contype") not in CONSTRAINTS for each in added):
        raise _Refused
    return Ruling.DEFINE


def _alter_sequence(tree: Tree) -> Ruling:
    if [each.defname for each in items(tree.options)] != ["owned_by"]:
        raise _Refused
    return Ruling.DEFINE


def _create_schema(tree: Tree) -> Ruling:
    if tree.schema_elts:
        raise _Refused
    return Ruling.DEFINE


def _comment(tree: Tree) -> Ruling:
    what = option(tree, "objtype")
    if what in ("OBJECT_EXTENSION", "OBJECT_DATABASE"):
        return Ruling.SKIP
    if what == "OBJECT_SCHEMA" and child(tree, "object").sval == "public":
        return Ruling.SKIP  # the schema exists already
    return Ruling.DEFINE


def _extension(tree: Tree) -> Ruling:
    if tree.extname != "plpgsql":
        raise _Refused("there are no extensions")
    return Ruling.SKIP


def _copy(tree: Tree) -> Ruling:
    plain = {"relation", "attlist", "is_from"}
    if {field.name for field, _ in tree.ListFields()} - plain or not tree.is_from:
        raise _Refused
    return Ruling.ROWS


def _always(ruling: Ruling) -> Callable[[Tree], Ruling]:
    return lambda tree: ruling


RULES: dict[str, Callable[[Tree], Ruling]] = {
    "AlterDefaultPrivilegesStmt": _always(Ruling.SKIP),
    "AlterOwnerStmt": _always(Ruling.SKIP),
    "AlterSeqStmt": _alter_sequence,
    "AlterTableStmt": _alter_table,
    "CommentStmt": _comment,
    "CopyStmt": _copy,
    "CreateEnumStmt": _always(Ruling.DEFINE),
    "CreateExtensionStmt": _extension,
    "CreateSchemaStmt": _create_schema,
    "CreateSeqStmt": _always(Ruling.DEFINE),
    "CreateStmt": _always(Ruling.DEFINE),
    "GrantStmt": _always(Ruling.SKIP),
    "IndexStmt": _always(Ruling.DEFINE),
    "InsertStmt": _always(Ruling.ROWS),
    "SelectStmt": _select,
    "VariableSetStmt": _set,
    "ViewStmt": _always(Ruling.DEFINE),
}
"""By PostgreSQL's names for the nodes; what is not here is not allowed."""
