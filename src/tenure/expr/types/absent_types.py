"""Overloads of PostgreSQL for types that do not exist here, as far as they change which overload is chosen.

    get_bit('101', 1)         PostgreSQL takes the literal for a bit string: refused (0A000)
    trunc('1')                numeric, float8 or macaddr8: not unique (42725), as in PostgreSQL
    time '12:00' AT TIME ZONE 'UTC'      gives a timetz: refused (0A000)

A literal without a type may be meant for one of them, and a time of day may be cast to timetz. Without these
entries such calls would be answered with another overload than PostgreSQL's. All other overloads of absent
types make no difference and are left out.

Walk: `expr.tree.overload_resolution` asks for `foreign_overloads` where a literal has no type.
"""

from typing import NamedTuple

CATEGORIES = {
    **dict.fromkeys(("timetz",), "D"),
    **dict.fromkeys(("line", "lseg", "path", "point", "polygon"), "G"),
    **dict.fromkeys(("anymultirange", "anyrange"), "P"),
    **dict.fromkeys(("macaddr8", "tsvector", "xid"), "U"),
    **dict.fromkeys(("bit",), "V"),
}
"""PostgreSQL's categories of these types. No type that exists here is of the categories G, P and V."""


class Foreign(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    is_variadic: bool = False


def foreign_overloads(name: str) -> list[Foreign]:
    return [Foreign(name, tuple(each.split(","))) for each in _OVERLOADS.get(name, "").split()]


_OVERLOADS = {
    "#": "path polygon",
    "&&": "anymultirange,anyrange anymultirange,anymultirange",
    "<@": "anyelement,anyrange anyelement,anymultirange anymultirange,anyrange",
    "?|": "point,point lseg line",
    "@>": "anyrange,anyelement anymultirange,anyelement anyrange,anymultirange",
    "age": "xid",
    "bit_count": "bit",
    "get_bit": "bit,int4",
    "set_bit": "bit,int4,int4",
    "timezone": "text,timetz interval,timetz timetz",
    "trunc": "macaddr8",
    "unnest": "tsvector anymultirange",
}
"""By name: the types of the arguments of each."""
