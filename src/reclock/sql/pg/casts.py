"""Casts in queries over the catalog: types by their names, and ``regclass`` with its like.

A ``regclass`` is a number that is written as a name. Which of them a query means is seen where
the cast stands: as an output, before ``::text`` or in ``||`` it is the name; elsewhere, the number.

Tests: tests/sql/pg/test_translate.py.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from reclock.errors import NotSupported
from reclock.sql.parse.node import position_of
from reclock.sql.pg.functions import MACROS
from reclock.sql.pg.relations import VECTORS, type_of_column
from reclock.sql.pg.types import ColumnType, column_type

_OBJECTS: Final = {
    "regclass": "class",
    "regtype": "type",
    "regnamespace": "namespace",
    "regrole": "role",
    "regproc": "proc",
    "regprocedure": "proc",
}
_TEXT: Final = {"text", "name", "varchar"}


_PROCEDURES: Final = ("typinput", "typoutput", "typreceive", "typsend")
"""Columns that are a ``regproc``: ADBC knows types by the names of what receives them."""


def name_procedures(query: exp.Expr) -> None:
    """Have columns that are a ``regproc`` be the name where the answer, or a text, has them."""
    shown = query.expressions if isinstance(query, exp.Select) else []
    for column in list(query.find_all(exp.Column)):
        if column.name not in _PROCEDURES:
            continue
        parent = column.parent
        is_output = column in shown or (isinstance(parent, exp.Alias) and parent in shown)
        if is_output or (isinstance(parent, exp.Cast) and type_name(parent.to) in _TEXT):
            column.replace(exp.Cast(this=column.copy(), to=exp.ObjectIdentifier(this="regproc")))


def type_name(to: exp.Expr) -> str:
    """Return a type's name without its schema, in lower case."""
    match to:
        case exp.ObjectIdentifier():
            return str(to.this).lower()
        case exp.DataType(this=exp.DType.ARRAY) if to.expressions:
            return f"{type_name(to.expressions[0])}[]"
        case exp.DataType(this=exp.DType.USERDEFINED):
            kind = to.args["kind"]
            last = kind.expression if isinstance(kind, exp.Dot) else kind
            return str(getattr(last, "name", last)).lower()
    return str(to.this.value).lower()


def rewrite_cast(cast: exp.Cast) -> tuple[exp.Expr, tuple[str, ...]]:
    """Return what a cast is in DuckDB, and the macros that it calls."""
    name = type_name(cast.to)
    if name in _OBJECTS:
        return _object(cast, _OBJECTS[name])
    if name in _TEXT and (written := _array_text(cast.this)) is not None:
        return written, ()
    kind = _known(name, cast)
    cast.set("to", exp.DataType.build(kind.storage, dialect="duckdb"))
    if kind.storage.endswith("[]") and isinstance(cast.this, exp.Literal) and cast.this.is_string:
        cast.set("this", as_list(cast.this))
    return cast, ()


def _array_text(value: exp.Expr) -> exp.Expr | None:
    """Return an array's column as PostgreSQL writes it; None if it is something else."""
    kind = type_of_column(value.name) if isinstance(value, exp.Column) else None
    if kind is None or not kind.name.endswith("[]"):
        return None
    vector = value.name in VECTORS
    parts = [value.copy(), exp.Literal.string(" " if vector else ",")]
    joined = exp.Anonymous(this="array_to_string", expressions=parts)
    if vector:
        return joined
    begun = exp.DPipe(this=exp.Literal.string("{"), expression=joined)
    return exp.Paren(this=exp.DPipe(this=begun, expression=exp.Literal.string("}")))


def _known(name: str, cast: exp.Expr) -> ColumnType:
    try:
        return column_type(name)
    except KeyError:
        message = f'type "{name}" is not supported in queries over the catalog'
        hint = "cast to text instead"
        raise NotSupported(message, hint=hint, position=position_of(cast)) from None


def wanted_type(to: exp.Expr) -> ColumnType | None:
    """Return the type that a parameter has that is cast; of a name of an object, text."""
    try:
        return column_type("text" if type_name(to) in _OBJECTS else type_name(to))
    except KeyError:
        return None


def _object(cast: exp.Cast, what: str) -> tuple[exp.Expr, tuple[str, ...]]:
    number, name = f"{what}_in", f"{what}_out"
    given = isinstance(cast.this, exp.Literal | exp.Parameter)
    if not _is_shown(cast):
        return call(number, cast.this), (number,)
    if given:
        return call(name, call(number, cast.this)), (name, number)
    return call(name, cast.this), (name,)


def _is_shown(cast: exp.Cast) -> bool:
    """Return whether the name is wanted: the cast is an output, or becomes text."""
    parent = cast.parent
    while isinstance(parent, exp.Paren | exp.Alias | exp.Ordered | exp.Order | exp.If | exp.Case):
        parent = parent.parent
    match parent:
        case exp.Cast():
            return type_name(parent.to) in _TEXT
        case exp.Anonymous():
            return str(parent.this).lower() not in MACROS
    return isinstance(parent, exp.DPipe | exp.Select)


def call(macro: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a macro."""
    made = exp.Anonymous(this=macro, expressions=[a.copy() for a in arguments])
    return exp.Dot(this=exp.to_identifier("fn"), expression=made)


def as_list(literal: exp.Literal) -> exp.Literal:
    """Return the text of an array as DuckDB writes it: ``{1,2}`` is ``[1,2]``."""
    text = str(literal.this)
    if text.startswith("{") and text.endswith("}"):
        return exp.Literal.string(f"[{text[1:-1]}]")
    return literal
