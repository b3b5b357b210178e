"""Names of a query's outputs, by PostgreSQL's rules.

Tests: tests/sql/pg/test_translate.py.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from reclock.sql.pg.casts import type_name
from reclock.sql.pg.relations import CHARS, VECTORS

_UNNAMED: Final = "?column?"
_WEAK: Final = (_UNNAMED, "case")
_TYPES: Final = {
    "bigint": "int8", "boolean": "bool", "decimal": "numeric", "double": "float8", "int": "int4",
    "integer": "int4", "real": "float4", "smallint": "int2", "uint": "oid",
}  # fmt: skip
"""Types as PostgreSQL calls them inside, where an output is called after its type."""

_WORDS: Final[dict[type[exp.Expr], str]] = {
    exp.Case: "case",
    exp.Exists: "exists",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Array: "array",
    exp.Trim: "btrim",
    exp.Substring: "substring",
}


def name_outputs(query: exp.Expr) -> None:
    """Give every output of every SELECT the name that PostgreSQL gives it."""
    for select in query.find_all(exp.Select):
        named = []
        for output in select.expressions:
            if output.is_star or isinstance(output, exp.Alias | exp.Column):
                named.append(output)
            else:
                name = exp.to_identifier(output_name(output), quoted=True)
                named.append(exp.Alias(this=output, alias=name))
        select.set("expressions", named)


def output_name(output: exp.Expr) -> str:  # noqa: PLR0911 - one per kind
    """Return the name of an output that has none of its own."""
    match output:
        case exp.Column() | exp.Anonymous():
            return output.name.lower() if isinstance(output, exp.Anonymous) else output.name
        case exp.Dot():
            return output_name(output.expression)
        case exp.Identifier():
            return output.name
        case exp.Cast():
            inside = output.this
            while isinstance(inside, exp.Cast | exp.Paren):
                inside = inside.this
            inner, kind = output_name(inside), type_name(output.to).removesuffix("[]")
            return inner if inner not in _WEAK else _TYPES.get(kind, kind)
        case exp.Paren() | exp.Bracket() | exp.Collate() | exp.Filter() | exp.Window():
            return output_name(output.this)
        case exp.Subquery():
            inside = output.this.selects if isinstance(output.this, exp.Query) else ()
            return (inside[0].alias or output_name(inside[0])) if inside else _UNNAMED
    return _WORDS.get(type(output), _UNNAMED)


def special_outputs(query: exp.Expr) -> dict[str, str]:
    """Return the names under which columns come out that clients are told a type of.

    These are columns of the type ``"char"``, and vectors, which are arrays but are not shown so.
    """
    found = {}
    selects = query.find_all(exp.Select)
    whole = any(output.is_star for select in selects for output in select.expressions)
    for name in CHARS | VECTORS if whole else ():
        found[name] = "char" if name in CHARS else "vector"
    for column in query.find_all(exp.Column):
        if column.name in CHARS | VECTORS:
            parent = column.parent
            name = parent.alias if isinstance(parent, exp.Alias) else column.name
            found[name] = "char" if column.name in CHARS else "vector"
    return found
