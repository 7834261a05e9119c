"""Casts by a type's name, named arguments, subscripts, and what the session answers."""

from dataclasses import replace
from functools import partial
from itertools import cycle
from uuid import UUID

import pytest

from tenure.base.errors import UserError
from tenure.expr import compile
from tenure.expr.functions.function import Context
from tenure.expr.functions.session_functions import FACTS
from tenure.expr.tree.build import Typed, call, call_named, cast, const, literal
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg
from tests.unit.expr.oracle import CONTEXT, Answer, Operand, Oracle, Value, named, ours
from tests.unit.expr.values import MOOD, mood

INTS = named("int4[]")


def value_of(tree: Typed, context: Context = CONTEXT) -> Datum:
    return compile(tree.node, {})({}, context)


@pytest.mark.parametrize(
    "sql", ["int4('7')", "text(12)", "date('2024-02-29 10:00'::timestamp)", "numeric(1.5::float8)"]
)
def test_a_types_name_casts_its_one_argument(oracle: Oracle, sql: str) -> None:
    arguments = {
        "int4": literal("7"),
        "text": const(12, named("int4")),
        "date": Operand("2024-02-29 10:00", "timestamp").built,
        "numeric": const(1.5, named("float8")),
    }
    name = sql.partition("(")[0]
    quoted = sql.replace(name, f'"{name}"', 1)
    assert oracle.ask([quoted]) == [ours(lambda: call(name, arguments[name]))]


def test_arguments_may_be_named(oracle: Oracle) -> None:
    made = call_named("make_interval", [], {"days": const(3, named("int4")), "secs": literal("1.5")})
    assert oracle.ask(["make_interval(days => 3, secs => 1.5)"]) == [ours(lambda: made)]


def test_an_argument_of_another_name_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        call_named("make_interval", [], {"nope": literal("1")})
    assert caught.value.sqlstate == "42883"


def test_slices_are_those_of_postgres(oracle: Oracle) -> None:
    array = const((1, 2, 3, None), INTS)
    bounds = [(1, 2), (0, 3), (2, 9), (3, 1), (-5, 0), (None, 2), (2, None)]
    asked = [
        f"('{{1,2,3,NULL}}'::int4[])[{'' if a is None else a}:{'' if b is None else b}]" for a, b in bounds
    ]
    ends = [(1 if a is None else a, 2**31 - 1 if b is None else b) for a, b in bounds]
    parts = [[const(each, named("int4")) for each in pair] for pair in ends]
    assert _answers("array_slice", array, parts) == oracle.ask(asked)


def _answers(name: str, array: Typed, parts: list[list[Typed]]) -> list[Answer]:
    return [ours(partial(call, name, array, *given)) for given in parts]


def test_elements_are_found_as_in_postgres(oracle: Oracle) -> None:
    array = const(((1, 2), (3, 4)), INTS)
    places = [(1, 1), (2, 2), (0, 1), (1, 3), (1,), (1, 1, 1)]
    asked = ["('{{1,2},{3,4}}'::int4[])" + "".join(f"[{each}]" for each in place) for place in places]
    parts = [[const(each, named("int4")) for each in place] for place in places]
    assert _answers("array_element", array, parts) == oracle.ask(asked)


def test_pg_typeof_names_the_type(oracle: Oracle) -> None:
    kinds = ["int4", "varchar(3)", "timestamptz", "numeric(5,2)[]", "char(3)", "name"]
    asked = [f"pg_typeof(NULL::{kind})::oid::int8" for kind in kinds]
    regs = [value_of(call("pg_typeof", const(None, named(kind)))) for kind in kinds]
    assert [Value(str(each.oid), "bigint") for each in regs] == oracle.ask(asked)
    texts = oracle.ask([f"pg_typeof(NULL::{kind})::text" for kind in kinds])
    assert [Value(each.name, "text") for each in regs] == texts


def test_types_are_named_by_oid_and_modifier_as_in_postgres(oracle: Oracle) -> None:
    pairs: list[tuple[int | None, int | None]]
    pairs = [(16, -1), (1043, 14), (1043, -1), (1042, 9), (1042, -1), (1042, None), (1700, 327686)]
    pairs += [(1700, -1), (1114, 3), (1184, -1), (1231, 655366), (1009, -1), (1015, 7), (2205, -1)]
    pairs += [(None, -1), (23, None)]
    asked = [f"format_type({oid or 'NULL'}, {'NULL' if mod is None else mod})" for oid, mod in pairs]
    trees = [[const(oid, named("oid")), const(mod, named("int4"))] for oid, mod in pairs]
    assert [ours(partial(call, "format_type", *given)) for given in trees] == oracle.ask(asked)


def test_the_labels_of_an_enum_are_a_range() -> None:
    none, ok = const(None, mood()), const("ok", mood())
    lookup = {"columns": {}, "enum": lambda id: MOOD}
    ranges = [
        call("enum_range", none),
        call("enum_range", ok, none),
        call("enum_first", none),
        call("enum_last", none),
    ]
    values = [compile(each.node, **lookup)({}, CONTEXT) for each in ranges]  # type: ignore[arg-type]
    assert values == [("sad", "meh", "ok", "happy"), ("ok", "happy"), "sad", "happy"]


def test_a_session_answers_for_itself() -> None:
    context = replace(CONTEXT, session={"user": "ada", "schemas": ("app", "public")})
    assert value_of(call("current_user"), context) == "ada"
    assert value_of(call("current_schema"), context) == "app"
    assert value_of(call("current_schemas", const(True, named("bool"))), context) == (
        "pg_catalog",
        "app",
        "public",
    )
    assert value_of(call("current_database"), context) == FACTS["database"]


def test_settings_are_read_and_written_through_the_session() -> None:
    settings = {"timezone": "UTC"}

    def put(name: str, value: str | None, is_local: bool) -> str:
        settings[name] = value or ""
        return settings[name]

    context = replace(CONTEXT, setting=settings.get, set_setting=put)
    changed = call("set_config", literal("timezone"), literal("Asia/Tokyo"), literal("f"))
    assert value_of(changed, context) == "Asia/Tokyo"
    assert value_of(call("current_setting", literal("timezone")), context) == "Asia/Tokyo"
    assert value_of(call("current_setting", literal("nope"), literal("t")), context) is None
    with pytest.raises(UserError) as caught:
        value_of(call("current_setting", literal("nope")), context)
    assert caught.value.sqlstate == "42704"


def test_names_of_objects_are_found_by_the_session() -> None:
    def find(kind: str, sought: Datum) -> Reg:
        return Reg(77, "app.users") if sought in ("users", 77) else Reg(0, "-")

    context = replace(CONTEXT, find_object=find)
    regclass = cast(literal("users"), named("regclass"))
    assert value_of(regclass, context) == Reg(77, "app.users")
    assert value_of(cast(regclass, named("oid")), context) == 77
    assert value_of(call("=", const(77, named("oid")), regclass), context) is True
    assert (
        named("regclass").render(value_of(cast(const(77, named("oid")), named("regclass")), context))
        == "app.users"
    )


def test_random_numbers_come_from_the_context() -> None:
    context = replace(CONTEXT, uuid=cycle([UUID(int=2**31), UUID(int=0)]).__next__)
    assert value_of(call("random"), context) == 0.5
    assert value_of(call("random", const(1, named("int4")), const(6, named("int4"))), context) in range(1, 7)


def test_a_uuid_of_version_7_tells_its_time() -> None:
    context = replace(CONTEXT, clock_micros=lambda: 1_700_000_000_123_456, uuid=lambda: UUID(int=5))
    made = value_of(call("uuidv7"), context)
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    at = value_of(call("uuid_extract_timestamp", const(made, named("uuid"))), context)
    assert named("timestamptz").render(at) == "2023-11-14 22:13:20.123+00"
