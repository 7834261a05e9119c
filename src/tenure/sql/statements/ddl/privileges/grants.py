"""GRANT and REVOKE on databases, schemas, tables, views, columns, sequences and types, one by one or all of a
schema.

    GRANT SELECT, INSERT ON t TO ann WITH GRANT OPTION
    GRANT SELECT (a, b), UPDATE (b) ON t TO bob
    REVOKE GRANT OPTION FOR INSERT ON t FROM ann CASCADE
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA s TO PUBLIC

The grant is made in the name of the owner if the user has the owner's rights, else of the role of the user
that has most of the grant options. Privileges that it may not grant are left out with a warning, as in
PostgreSQL. A grant waits for no change of its object that is under way; one on columns does, since a column
may be about to be replaced. The privileges are read in the transaction, and changed in its draft: two grants
on one object do not both commit without having seen each other.

Walk: `statements.ddl.ddl_statements` -> `grant` -> `catalog.accounts.privileges`, the draft.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.base.errors import (
    InsufficientPrivilege,
    InvalidGrant,
    NotSupported,
    SyntaxFault,
    UndefinedColumn,
    WrongObjectType,
)
from tenure.catalog.accounts.column_privileges import column_names
from tenure.catalog.accounts.privileges import (
    OF_KIND,
    WORDS,
    Entries,
    best_grantor,
    check_known,
    granted,
    initial,
    kind_of,
    noun_of,
    revoked,
    without_orphans,
)
from tenure.catalog.accounts.rights import denied
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, View, is_dropped
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import (
    PUBLIC_ROLE,
    WHOLE_OBJECT,
    ObjectPrivileges,
    RecordKey,
)
from tenure.sql.statements.ddl.databases import database_named
from tenure.sql.statements.ddl.definition import Definer, path_of
from tenure.sql.statements.ddl.schemas import schema_named
from tenure.sql.text.parse import Tree, child, items, names, option

KINDS = {
    "OBJECT_DATABASE": "database",
    "OBJECT_SCHEMA": "schema",
    "OBJECT_TABLE": "table",
    "OBJECT_SEQUENCE": "sequence",
    "OBJECT_TYPE": "type",
}


class Act(NamedTuple):
    """What a GRANT or REVOKE does to the privileges of each object that it names."""

    is_grant: bool
    grantees: tuple[str, ...]
    with_option: bool
    """WITH GRANT OPTION, or GRANT OPTION FOR."""
    cascade: bool

    def on(self, entries: Entries, *, grantor: str, bits: int, owner: str) -> Entries:
        for grantee in self.grantees if bits else ():
            if self.is_grant:
                entries = granted(
                    entries,
                    grantee=grantee,
                    grantor=grantor,
                    bits=bits,
                    with_option=self.with_option,
                    owner=owner,
                )
            else:
                entries = revoked(
                    entries,
                    grantee=grantee,
                    grantor=grantor,
                    bits=bits,
                    option_only=self.with_option,
                    cascade=self.cascade,
                    owner=owner,
                )
        return entries


def grant(definer: Definer, tree: Tree) -> str | None:
    kind = KINDS.get(option(tree, "objtype"))
    if kind is None:
        raise NotSupported("GRANT and REVOKE on this kind of object are not supported")
    if child(tree, "grantor") is not None and definer.role(tree.grantor) != definer.owner:
        raise NotSupported("grantor must be current user")
    is_cascade = option(tree, "behavior") == "DROP_CASCADE"
    if is_cascade and tree.is_grant:
        raise SyntaxFault("GRANT takes no CASCADE")
    of_objects = [each for each in items(tree.privileges) if not each.cols]
    of_columns = [each for each in items(tree.privileges) if each.cols]
    if of_columns and kind != "table":
        raise InvalidGrant("column privileges are only valid for relations")
    words = [word_of(each) for each in of_objects]
    objects = list(_objects(definer, tree, kind, waits=bool(of_columns)))
    grantees = tuple(grantee_of(definer, each) for each in items(tree.grantees))
    act = Act(tree.is_grant, grantees, tree.grant_option, is_cascade)
    _read_ahead(definer, objects, has_columns=bool(of_columns) or not act.is_grant)
    for descriptor in objects:
        if words or not of_columns:
            _change(definer, act, descriptor, words)
        for column, bits in _column_bits(descriptor, of_columns).items():
            change_column(definer, act, descriptor, column, bits)
    return "GRANT" if tree.is_grant else "REVOKE"


def _read_ahead(definer: Definer, objects: Sequence[AnyDescriptor], *, has_columns: bool) -> None:
    columns = [(each.id, column) for each in objects for column in column_names(each)] if has_columns else []
    whole = [(each.id, WHOLE_OBJECT) for each in objects]
    definer.read_ahead(("privileges", *each) for each in (*whole, *columns))


def word_of(privilege: Tree) -> str:
    word: str = privilege.priv_name.upper()
    if word not in WORDS and word != "TEMP":
        raise SyntaxFault(f'unrecognized privilege type "{privilege.priv_name}"')
    return word


def _column_bits(descriptor: AnyDescriptor, privileges: Sequence[Tree]) -> dict[int, int]:
    """The privileges on each column, by its id."""
    ids = {name: id for id, name in column_names(descriptor).items()}
    found: dict[int, int] = {}
    for each in privileges:
        words = [word_of(each)] if each.priv_name else []
        bits = check_known(words, "column", "column") if words else OF_KIND["column"]
        for name in names(each.cols):
            if name not in ids:
                raise UndefinedColumn(f'column "{name}" of relation "{descriptor.name}" does not exist')
            found[ids[name]] = found.get(ids[name], 0) | bits
    return found


def grantee_of(definer: Definer, tree: Tree) -> str:
    return PUBLIC_ROLE if option(tree, "roletype") == "ROLESPEC_PUBLIC" else definer.role(tree)


def _objects(definer: Definer, tree: Tree, kind: str, *, waits: bool) -> Iterator[AnyDescriptor]:
    """`waits`: for a change under way. A column may be about to be replaced; the whole object stays."""
    if option(tree, "targtype") == "ACL_TARGET_ALL_IN_SCHEMA":
        for each in items(tree.objects):
            yield from _all_in(definer, each.sval, kind)
        return
    for each in items(tree.objects):
        match kind:
            case "database":
                yield database_named(definer, each.sval)
            case "schema":
                yield schema_named(definer, each.sval)
            case "type":
                yield definer.enum(names(each.items), waits=waits)
            case _:
                yield _relation(definer, each, kind, waits=waits)


def _relation(definer: Definer, tree: Tree, kind: str, *, waits: bool) -> AnyDescriptor:
    path = path_of(tree)
    found = definer.relation(path, tree.location + 1, waits=waits)
    if kind == "sequence" and not isinstance(found, SequenceDescriptor):
        raise WrongObjectType(f'"{path[-1]}" is not a sequence')
    return found


def _all_in(definer: Definer, schema: str, kind: str) -> Iterator[AnyDescriptor]:
    wanted = SequenceDescriptor if kind == "sequence" else (Table, View)
    found = schema_named(definer, schema)
    ids = dict.fromkeys([*definer.contents(found.database, found.id), *definer.draft.declared])
    for id in ids:
        each = definer.draft.declared.get(id) or definer.use.descriptor(id)
        if isinstance(each, wanted) and each.schema == found.id and not is_dropped(each):
            yield each


def _change(definer: Definer, act: Act, descriptor: AnyDescriptor, words: Sequence[str]) -> None:
    kind = kind_of(descriptor)
    bits = check_known(words, kind, noun_of(descriptor)) if words else OF_KIND[kind]
    before = entries_of(definer, descriptor, WHOLE_OBJECT)
    grantor, options = _grantor(definer, descriptor, before, bits)
    entries = act.on(before, grantor=grantor, bits=options, owner=descriptor.owner)
    put_entries(definer, descriptor, WHOLE_OBJECT, before, entries)
    if not act.is_grant:
        revoke_columns(definer, act, descriptor, entries, grantor=grantor, bits=options)
    _warn(definer, act, f'"{descriptor.name}"', options, bits, is_all=not words)


def _grantor(definer: Definer, descriptor: AnyDescriptor, entries: Entries, bits: int) -> tuple[str, int]:
    """Raises InsufficientPrivilege (42501) for somebody who has nothing to do with the object."""
    rights = definer.rights
    if rights.owns(descriptor):
        return descriptor.owner, bits
    grantor, options = best_grantor(entries, rights.roles, descriptor.owner, bits)
    if not options and not rights.held(descriptor):
        raise denied(descriptor)
    return grantor, options


def _warn(definer: Definer, act: Act, what: str, options: int, bits: int, *, is_all: bool) -> None:
    if options == bits or (is_all and options):
        return
    done, sqlstate = ("granted", "01007") if act.is_grant else ("revoked", "01006")
    count = "not all" if options else "no"
    could = "were" if act.is_grant else "could be"
    definer.session.notice(f"{count} privileges {could} {done} for {what}", "WARNING", sqlstate)


# ── columns ────────────────────────────────────────────────────────────────────────────────────


def change_column(definer: Definer, act: Act, descriptor: AnyDescriptor, column: int, bits: int) -> None:
    before = entries_of(definer, descriptor, column)
    above = entries_of(definer, descriptor, WHOLE_OBJECT)
    rights = definer.rights
    grantor, options = descriptor.owner, bits
    name = column_names(descriptor)[column]
    if not rights.owns(descriptor):
        # A grant option for the table counts for each of its columns.
        grantor, options = best_grantor((*above, *before), rights.roles, descriptor.owner, bits)
        if not options and not rights.held(descriptor) | rights.held_on_column(descriptor, column):
            raise InsufficientPrivilege(
                f'permission denied for column "{name}" of relation "{descriptor.name}"'
            )
    entries = act.on(before, grantor=grantor, bits=options, owner=descriptor.owner)
    put_entries(definer, descriptor, column, before, entries)
    what = f'column "{name}" of relation "{descriptor.name}"'
    _warn(definer, act, what, options, bits, is_all=bits == OF_KIND["column"])


def revoke_columns(
    definer: Definer, act: Act, descriptor: AnyDescriptor, above: Entries, *, grantor: str, bits: int
) -> None:
    """What is revoked on a table is revoked on its columns too, as is what was granted on them by an option
    for the table that is revoked."""
    for column in column_names(descriptor):
        before = entries_of(definer, descriptor, column)
        left = act.on(before, grantor=grantor, bits=bits & OF_KIND["column"], owner=descriptor.owner)
        left = without_orphans(left, above, cascade=act.cascade)
        put_entries(definer, descriptor, column, before, left)


# ── records ────────────────────────────────────────────────────────────────────────────────────


def entries_of(definer: Definer, descriptor: AnyDescriptor, column: int) -> Entries:
    """As the transaction reads them, or has changed them."""
    stored = definer.record(("privileges", descriptor.id, column))
    assert stored is None or isinstance(stored, ObjectPrivileges)
    if stored is not None:
        return stored.entries
    return initial(kind_of(descriptor) if column == WHOLE_OBJECT else "column")


def put_entries(
    definer: Definer, descriptor: AnyDescriptor, column: int, before: Entries, entries: Entries
) -> None:
    key: RecordKey = ("privileges", descriptor.id, column)
    if entries == before:
        return
    is_needed = bool(entries) or column == WHOLE_OBJECT
    definer.set_record(key, ObjectPrivileges(descriptor.id, column, entries) if is_needed else None)
