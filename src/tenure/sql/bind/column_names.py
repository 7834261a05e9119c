"""Names of result columns without an alias: PostgreSQL's FigureColname.

Walk: `sql.bind.targets` asks.
"""

from tenure.sql.text.parse import Tree, child, items, kind, names, option, unwrap

UNNAMED = "?column?"


def column_name(tree: Tree) -> str:
    return _figured(unwrap(tree))[0] or UNNAMED


def _figured(tree: Tree) -> tuple[str, int]:
    """A name and how good it is: 2 is a real name, 1 a type's or CASE, 0 none."""
    if tree is None:
        return "", 0
    match kind(tree):
        case "ColumnRef":
            found = [each.sval for each in items(tree.fields) if kind(each) == "String"]
            return (found[-1], 2) if found else ("", 0)
        case "A_Indirection":
            found = [each.sval for each in items(tree.indirection) if kind(each) == "String"]
            return (found[-1], 2) if found else _figured(child(tree, "arg"))
        case "FuncCall":
            return names(tree.funcname)[-1], 2
        case "A_Expr" if option(tree, "kind") == "AEXPR_NULLIF":
            return "nullif", 2
        case "TypeCast":
            inner = _figured(child(tree, "arg"))
            return inner if inner[1] == 2 else (names(tree.type_name.names)[-1], 1)
        case "CollateClause":
            return _figured(child(tree, "arg"))
        case "GroupingFunc":
            return "grouping", 2
        case "SubLink":
            return _of_subquery(tree)
        case "CaseExpr":
            inner = _figured(child(tree, "defresult"))
            return inner if inner[1] == 2 else ("case", 1)
        case "A_ArrayExpr":
            return "array", 2
        case "RowExpr":
            return "row", 2
        case "JsonObjectConstructor":
            return "json_object", 2
        case "JsonArrayConstructor":
            return "json_array", 2
        case "CoalesceExpr":
            return "coalesce", 2
        case "MinMaxExpr":
            return ("greatest" if option(tree, "op") == "IS_GREATEST" else "least"), 2
        case "SQLValueFunction":
            return _of_keyword(option(tree, "op")), 2
        case _:
            return "", 0


def _of_keyword(form: str) -> str:
    return form.removeprefix("SVFOP_").removesuffix("_N").lower()


def _of_subquery(tree: Tree) -> tuple[str, int]:
    match option(tree, "sub_link_type"):
        case "EXISTS_SUBLINK":
            return "exists", 2
        case "ARRAY_SUBLINK":
            return "array", 2
        case "EXPR_SUBLINK":
            query = child(tree, "subselect")
            while query.HasField("larg"):
                query = query.larg
            if not len(query.target_list):
                return ("column1", 2) if len(query.values_lists) else ("", 0)
            target = unwrap(query.target_list[0])
            return (target.name, 2) if target.name else _figured(child(target, "val"))
        case _:
            return "", 0
