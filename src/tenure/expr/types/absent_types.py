"""What PostgreSQL has for types that do not exist here: a literal without a type may be meant for one.

    trunc('1')         numeric, float8, macaddr: not unique (42725), there and here
    '1' << '2'         which of them is meant, nobody can tell

They take part in the choice between overloads. Where one of them is chosen, the call is refused (0A000).

Walk: `expr.tree.overload_resolution` asks for `foreign_overloads` where a literal has no type.
"""

from typing import NamedTuple

CATEGORIES = {
    **dict.fromkeys(("_aclitem", "oidvector"), "A"),
    **dict.fromkeys(("timetz",), "D"),
    **dict.fromkeys(("box", "circle", "line", "lseg", "path", "point", "polygon"), "G"),
    **dict.fromkeys(("inet",), "I"),
    **dict.fromkeys(("money",), "N"),
    **dict.fromkeys(("anymultirange", "anyrange", "record"), "P"),
    **dict.fromkeys(
        ("aclitem", "cid", "macaddr", "macaddr8", "pg_lsn", "tid", "tsquery", "tsvector", "xid", "xid8"), "U"
    ),
    **dict.fromkeys(("bit", "varbit"), "V"),
}
"""PostgreSQL's categories of types; G, V and their like are no category of a type that there is here."""
PREFERRED = ("inet", "varbit")


class Foreign(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    is_variadic: bool = False


def foreign_overloads(name: str) -> list[Foreign]:
    return [Foreign(name, tuple(each.split(","))) for each in _OVERLOADS.get(name, "").split()]


_OVERLOADS = {
    "#": "path box,box polygon lseg,lseg line,line bit,bit",
    "&": "macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit",
    "&&": (
        "polygon,polygon box,box circle,circle inet,inet tsquery,tsquery anyrange,anyrange "
        "anyrange,anymultirange anymultirange,anyrange anymultirange,anymultirange"
    ),
    "*": (
        "point,point path,point box,point money,float4 float4,money money,float8 money,int8 "
        "money,int4 money,int2 float8,money int8,money int4,money int2,money circle,point "
        "anyrange,anyrange anymultirange,anymultirange"
    ),
    "+": (
        "point,point path,path path,point box,point money,money _aclitem,aclitem date,timetz "
        "timetz,date circle,point inet,int8 int8,inet timetz,interval interval,timetz "
        "pg_lsn,numeric numeric,pg_lsn anyrange,anyrange anymultirange,anymultirange"
    ),
    "-": (
        "point,point path,point box,point money,money _aclitem,aclitem circle,point inet,int8 "
        "inet,inet timetz,interval pg_lsn,pg_lsn pg_lsn,numeric anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    "/": (
        "point,point path,point box,point money,float4 money,float8 money,int8 money,int4 "
        "money,int2 money,money circle,point"
    ),
    "<": (
        "xid8,xid8 tid,tid box,box oidvector,oidvector path,path money,money timetz,timetz "
        "circle,circle lseg,lseg macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit varbit,varbit "
        "pg_lsn,pg_lsn tsvector,tsvector tsquery,tsquery record,record anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    "<<": (
        "polygon,polygon box,box point,point circle,circle inet,inet bit,int4 anyrange,anyrange "
        "anyrange,anymultirange anymultirange,anyrange anymultirange,anymultirange"
    ),
    "<=": (
        "xid8,xid8 tid,tid box,box oidvector,oidvector path,path money,money timetz,timetz "
        "circle,circle lseg,lseg macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit varbit,varbit "
        "pg_lsn,pg_lsn tsvector,tsvector tsquery,tsquery record,record anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    "<>": (
        "xid,xid xid,int4 xid8,xid8 tid,tid oidvector,oidvector point,point money,money "
        "timetz,timetz circle,circle lseg,lseg macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit "
        "varbit,varbit pg_lsn,pg_lsn tsvector,tsvector tsquery,tsquery record,record "
        "anyrange,anyrange anymultirange,anymultirange"
    ),
    "<@": (
        "polygon,polygon box,box point,box point,path point,polygon point,circle circle,circle "
        "point,line point,lseg lseg,line lseg,box tsquery,tsquery anyelement,anyrange "
        "anyrange,anyrange anyelement,anymultirange anyrange,anymultirange "
        "anymultirange,anymultirange anymultirange,anyrange"
    ),
    "=": (
        "xid,xid xid,int4 xid8,xid8 cid,cid tid,tid box,box oidvector,oidvector path,path "
        "money,money aclitem,aclitem timetz,timetz circle,circle lseg,lseg line,line "
        "macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit varbit,varbit pg_lsn,pg_lsn "
        "tsvector,tsvector tsquery,tsquery record,record anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    ">": (
        "xid8,xid8 tid,tid box,box oidvector,oidvector path,path money,money timetz,timetz "
        "circle,circle lseg,lseg macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit varbit,varbit "
        "pg_lsn,pg_lsn tsvector,tsvector tsquery,tsquery record,record anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    ">=": (
        "xid8,xid8 tid,tid box,box oidvector,oidvector path,path money,money timetz,timetz "
        "circle,circle lseg,lseg macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit varbit,varbit "
        "pg_lsn,pg_lsn tsvector,tsvector tsquery,tsquery record,record anyrange,anyrange "
        "anymultirange,anymultirange"
    ),
    ">>": (
        "polygon,polygon box,box point,point circle,circle inet,inet bit,int4 anyrange,anyrange "
        "anyrange,anymultirange anymultirange,anyrange anymultirange,anymultirange"
    ),
    "?|": "point,point lseg line",
    "@>": (
        "polygon,polygon box,box box,point path,point polygon,point circle,point _aclitem,aclitem "
        "circle,circle tsquery,tsquery anyrange,anyelement anyrange,anyrange "
        "anymultirange,anyelement anymultirange,anyrange anymultirange,anymultirange "
        "anyrange,anymultirange"
    ),
    "age": "xid",
    "bit_and": "bit",
    "bit_count": "bit",
    "bit_length": "bit",
    "bit_or": "bit",
    "bit_xor": "bit",
    "date_part": "text,timetz",
    "extract": "text,timetz",
    "get_bit": "bit,int4",
    "length": "lseg path bit tsvector",
    "lower": "anyrange anymultirange",
    "max": "timetz money record tid inet pg_lsn xid8",
    "min": "timetz money record tid inet pg_lsn xid8",
    "octet_length": "bit",
    "overlaps": "timetz,timetz,timetz,timetz",
    "overlay": "bit,bit,int4,int4 bit,bit,int4",
    "position": "bit,bit",
    "set_bit": "bit,int4,int4",
    "substring": "bit,int4,int4 bit,int4",
    "sum": "money",
    "timezone": "text,timetz interval,timetz timetz",
    "trunc": "macaddr macaddr8",
    "unnest": "tsvector anymultirange",
    "upper": "anyrange anymultirange",
    "|": "macaddr,macaddr macaddr8,macaddr8 inet,inet bit,bit",
    "||": "varbit,varbit tsvector,tsvector tsquery,tsquery",
    "~": "macaddr macaddr8 inet bit",
}
"""By name: the types of the arguments of each."""
