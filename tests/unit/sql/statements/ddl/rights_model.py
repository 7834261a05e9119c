"""A model of privileges for the matrix: grants as data, and what a role may do by them.

    world        who owns the views, is a member of whom, and was granted what: drawn from a seed
    request      a statement and what it needs: objects, privileges and columns
    route        a way to run it: prepared, by a cursor, inside of a view of one's own, ...

It is kept apart from the code that it judges: nothing of `tenure` is used here.

Walk: `test_rights_matrix` makes a world here and on both sides, and runs every request by every route.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

ROLES = ("role_a", "role_b", "role_c", "role_d")
COLUMNS = {"app.t": ("a", "b"), "app.u": ("a",), "app.v": ("a", "b"), "app.w": ("a",)}
VIEWS = {"app.v": ("app.t", ("a", "b")), "app.w": ("app.v", ("a",))}
"""What each view reads, all by the rights of its owner."""


class Grant(NamedTuple):
    privilege: str
    object: str
    column: str
    """Empty: on the whole object."""
    role: str


class World(NamedTuple):
    owners: dict[str, str]
    memberships: frozenset[tuple[str, str, bool]]
    """Role, member, and whether the member inherits."""
    grants: frozenset[Grant]

    def statements(self) -> Iterator[str]:
        yield from (f"CREATE ROLE {role}" for role in ROLES)
        yield from (f"CREATE SCHEMA own_{role} AUTHORIZATION {role}" for role in ROLES)
        yield "CREATE SCHEMA app"
        yield "CREATE TABLE app.t (a int PRIMARY KEY, b int)"
        yield "CREATE TABLE app.u (a int PRIMARY KEY)"
        for view, (source, columns) in VIEWS.items():
            yield f"CREATE VIEW {view} AS SELECT {', '.join(columns)} FROM {source}"
            yield f"ALTER VIEW {view} OWNER TO {self.owners[view]}"
        for role, member, inherits in sorted(self.memberships):
            yield f"GRANT {role} TO {member} WITH INHERIT {inherits}"
        for each in sorted(self.grants):
            column = f" ({each.column})" if each.column else ""
            kind = "" if "." in each.object else "SCHEMA "
            yield f"GRANT {each.privilege}{column} ON {kind}{each.object} TO {each.role}"

    def roles_of(self, role: str) -> set[str]:
        found, waiting = {role, "PUBLIC"}, [role]
        while waiting:
            member = waiting.pop()
            for each, of, inherits in self.memberships:
                if of == member and inherits and each not in found:
                    found.add(each)
                    waiting.append(each)
        return found

    def has(self, role: str, privilege: str, object: str, column: str = "") -> bool:
        """On the whole object, or on the column."""
        roles = self.roles_of(role)
        if self.owners.get(object) in roles:
            return True
        return any(
            each.privilege == privilege and each.object == object and each.column in ("", column)
            for each in self.grants
            if each.role in roles
        )

    def may(self, role: str, request: "Request") -> bool:
        if not self.has(role, "USAGE", "app"):
            return False
        return all(self._meets(role, need) for need in request.needs)

    def _meets(self, role: str, need: "Need") -> bool:
        columns = need.columns or COLUMNS[need.object]
        each_has = [self.has(role, need.privilege, need.object, column) for column in columns]
        if not (all(each_has) if need.columns else any(each_has)):
            return False
        if need.object not in VIEWS:
            return True
        source, read = VIEWS[need.object]
        return self._meets(self.owners[need.object], Need("SELECT", source, read))


class Need(NamedTuple):
    privilege: str
    object: str
    columns: tuple[str, ...] = ()
    """Each of them; none: any column will do."""


class Request(NamedTuple):
    text: str
    needs: tuple[Need, ...]

    @property
    def is_query(self) -> bool:
        return self.text.startswith("SELECT")


def drawn(seed: int) -> World:
    rng = Random(seed)
    owners = {view: rng.choice(ROLES) for view in VIEWS}
    pairs = [(role, member) for at, role in enumerate(ROLES) for member in ROLES[at + 1 :]]
    memberships = {(role, member, rng.random() < 0.7) for role, member in pairs if rng.random() < 0.3}
    grants = {Grant("USAGE", "app", "", role) for role in ROLES if rng.random() < 0.8}
    for object, columns in COLUMNS.items():
        for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            if object in VIEWS and privilege != "SELECT":
                continue
            for role in (*ROLES, "PUBLIC"):
                grants |= set(_grants(rng, privilege, object, columns, role))
    return World(owners, frozenset(memberships), frozenset(grants))


def _grants(rng: Random, privilege: str, object: str, columns: tuple[str, ...], role: str) -> Iterator[Grant]:
    chance = 0.1 if role == "PUBLIC" else 0.35
    if rng.random() < chance:
        yield Grant(privilege, object, "", role)
    if privilege != "DELETE":
        yield from (Grant(privilege, object, column, role) for column in columns if rng.random() < chance)


def _read(object: str, *columns: str) -> Need:
    return Need("SELECT", object, columns)


REQUESTS = (
    Request("SELECT a FROM app.t", (_read("app.t", "a"),)),
    Request("SELECT b AS a FROM app.t WHERE a = 1", (_read("app.t", "a", "b"),)),
    Request("SELECT count(*) AS a FROM app.t", (_read("app.t"),)),
    Request("SELECT max(b) AS a FROM app.t", (_read("app.t", "b"),)),
    Request("SELECT x.a FROM app.t x JOIN app.u y USING (a)", (_read("app.t", "a"), _read("app.u", "a"))),
    Request(
        "SELECT a FROM app.u WHERE a IN (SELECT b FROM app.t)", (_read("app.u", "a"), _read("app.t", "b"))
    ),
    Request("SELECT a FROM app.v", (_read("app.v", "a"),)),
    Request("SELECT a FROM app.w", (_read("app.w", "a"),)),
    Request("SELECT 1 AS a FROM app.v ORDER BY b", (_read("app.v", "b"),)),
    Request("INSERT INTO app.t (a) VALUES (1)", (Need("INSERT", "app.t", ("a",)),)),
    Request("INSERT INTO app.t DEFAULT VALUES", (Need("INSERT", "app.t"),)),
    Request(
        "INSERT INTO app.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1",
        (Need("INSERT", "app.t", ("a",)), Need("UPDATE", "app.t", ("b",)), _read("app.t", "a")),
    ),
    Request(
        "INSERT INTO app.t (a, b) VALUES (1, 1) RETURNING b",
        (Need("INSERT", "app.t", ("a", "b")), _read("app.t", "b")),
    ),
    Request("INSERT INTO app.u SELECT a FROM app.v", (Need("INSERT", "app.u", ("a",)), _read("app.v", "a"))),
    Request("UPDATE app.t SET b = 1", (Need("UPDATE", "app.t", ("b",)),)),
    Request("UPDATE app.t SET b = 1 WHERE a = 1", (Need("UPDATE", "app.t", ("b",)), _read("app.t", "a"))),
    Request(
        "UPDATE app.t SET a = u.a FROM app.u",
        (Need("UPDATE", "app.t", ("a",)), _read("app.u", "a")),
    ),
    Request("DELETE FROM app.t", (Need("DELETE", "app.t"),)),
    Request("DELETE FROM app.t WHERE b = 1", (Need("DELETE", "app.t"), _read("app.t", "b"))),
)

ANY_ROUTES = {
    "plain": ("{0}",),
    "prepared": ("PREPARE q AS {0}", "EXECUTE q"),
    "explain": ("EXPLAIN {0}",),
    "explained as it runs": ("EXPLAIN ANALYZE {0}",),
}
QUERY_ROUTES = {
    **ANY_ROUTES,
    "cursor": ("DECLARE c CURSOR FOR {0}", "FETCH ALL FROM c"),
    "copy": ("COPY ({0}) TO STDOUT",),
    "subquery": ("SELECT 1 FROM ({0}) x",),
    "scalar": ("SELECT EXISTS ({0})",),
    "with": ("WITH x AS ({0}) SELECT a FROM x",),
    "union": ("SELECT 1 AS a UNION ALL ({0})",),
    "own view": ("CREATE VIEW own_{1}.x AS {0}", "SELECT a FROM own_{1}.x"),
    "own table": ("CREATE TABLE own_{1}.x AS {0}",),
}
OUR_ROUTES = {
    "past": ("{0} AS OF SYSTEM TIME '-1us'",),
    "past cursor": ("DECLARE c CURSOR FOR {0} AS OF SYSTEM TIME '-1us'", "FETCH ALL FROM c"),
    "past table": ("CREATE TABLE own_{1}.x AS {0} AS OF SYSTEM TIME '-1us'",),
}
"""PostgreSQL has none of these: the model alone judges them."""


def routes(request: Request) -> dict[str, tuple[str, ...]]:
    return QUERY_ROUTES | OUR_ROUTES if request.is_query else ANY_ROUTES
