"""From PostgreSQL's text to DuckDB's, for queries over the catalog.

Invariant: what comes out reads only relations of ``relations``, calls only functions of
``functions``, and is one SELECT; every kind of node that is not listed is refused (0A000). So no
function, setting or file of DuckDB can be reached, whatever the text says. As a second wall,
DuckDB's own access to files is off.

Cost: a few milliseconds, once per statement.

Tests: tests/sql/pg/test_translate.py; break-ins: tests/server/pg_catalog/test_break_in.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from reclock.errors import InvalidSyntax, NotSupported, UndefinedName
from reclock.sql.parse.node import position_of
from reclock.sql.pg import casts
from reclock.sql.pg.allowed import check_allowed
from reclock.sql.pg.format import formatted
from reclock.sql.pg.functions import (
    BUILTINS,
    EFFECTS,
    MACROS,
    OWN,
    RENAMED,
    SESSION,
    TABLE_FUNCTIONS,
)
from reclock.sql.pg.output import name_outputs, special_outputs
from reclock.sql.pg.parameter import number_of, parameter_types
from reclock.sql.pg.recognise import SCHEMAS, tables
from reclock.sql.pg.relations import PG_CATALOG, VECTORS, find_relation
from reclock.sql.pg.unnest import named_unnest
from reclock.sql.statement.catalog_query import CatalogQuery

if TYPE_CHECKING:
    from collections.abc import Callable

_DATABASE: Final = "reclock"
_STORED: Final = {PG_CATALOG: "pgc", "information_schema": "infs"}
_OPERATORS: Final[dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "!~*": lambda a, b: exp.Not(this=exp.RegexpILike(this=a, expression=b)),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "!=": lambda a, b: exp.NEQ(this=a, expression=b),
    "<": lambda a, b: exp.LT(this=a, expression=b),
    "<=": lambda a, b: exp.LTE(this=a, expression=b),
    ">": lambda a, b: exp.GT(this=a, expression=b),
    ">=": lambda a, b: exp.GTE(this=a, expression=b),
    "||": lambda a, b: exp.DPipe(this=a, expression=b),
    "+": lambda a, b: exp.Add(this=a, expression=b),
    "-": lambda a, b: exp.Sub(this=a, expression=b),
}
_PRIVILEGES: Final = {"has_column_privilege": 4}
_SESSION_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentSchema: "current_schema",
    exp.CurrentCatalog: "current_catalog",
}


def translate(query: exp.Expr) -> CatalogQuery:
    """Return a query over the catalog as DuckDB's; refuse what it must not do."""
    if not isinstance(query, exp.Query):
        message = "only a query can read the catalog"
        raise InvalidSyntax(message, hint="write SELECT …", position=position_of(query))
    return _Translation(query).done()


class _Translation:
    """One query, rewritten in place from its leaves to its root."""

    def __init__(self, query: exp.Query) -> None:
        self._query: exp.Expr = query
        self._relations: set[tuple[str, str]] = set()
        self._macros: set[str] = set()
        self._session: list[str] = []

    def done(self) -> CatalogQuery:
        """Return the query, rewritten."""
        query = self._query
        check_allowed(query)
        special = special_outputs(query)
        parameters = parameter_types(query)
        casts.name_procedures(query)
        self._name_relations()
        name_outputs(query)
        effects = _effects(query)
        for node in reversed(list(query.walk())):
            after = self._rewritten(node)
            if after is not node:
                node.replace(after)
        text = DuckDB().generate(query, normalize_functions=False, comments=False)
        return CatalogQuery(
            text,
            frozenset(self._relations),
            frozenset(self._macros),
            tuple(self._session),
            parameters,
            special,
            effects,
        )

    def _name_relations(self) -> None:
        for table in self._query.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier | exp.Anonymous):
                message = "a query over the catalog can read relations of the catalog alone"
                raise NotSupported(message, hint="name one", position=position_of(table))
        for table in list(tables(self._query)):
            schema = table.db or PG_CATALOG
            if find_relation(schema, table.name) is None:
                message = f'relation "{schema}.{table.name}" does not exist'
                hint = "SELECT table_name FROM information_schema.tables lists what there is"
                raise UndefinedName(message, code="42P01", hint=hint, position=position_of(table))
            self._relations.add((schema, table.name))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("db", exp.to_identifier(_STORED[schema]))
            if table.catalog == _DATABASE:
                table.set("catalog", None)

    # One node, after what is below it.

    def _rewritten(self, node: exp.Expr) -> exp.Expr:  # noqa: PLR0911, PLR0912 - one per kind
        match node:
            case exp.Table() if isinstance(node.this, exp.Anonymous):
                return self._table_function(node)
            case exp.Unnest():
                return named_unnest(node)
            case exp.Anonymous() if not isinstance(node.parent, exp.Table):
                return self._call(node)
            case exp.Dot(this=exp.Identifier() as schema) if schema.name in SCHEMAS:
                return cast("exp.Expr", node.expression)
            case exp.Cast():
                made, macros = casts.rewrite_cast(node)
                self._macros |= set(macros)
                return made
            case exp.Operator():
                return _operator(node)
            case exp.Collate():
                return cast("exp.Expr", node.this)
            case exp.Column():
                return self._column(node)
            case exp.Parameter():
                return exp.Placeholder(this=f"p{number_of(node)}")
            case exp.Bracket():
                return _subscript(node)
            case exp.ByteString():
                return exp.Literal.string(_unescaped(str(node.this)))
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
            case exp.Literal() if node.is_string and _stands_for_array(node):
                of_any = isinstance(node.find_ancestor(exp.Any, exp.EQ, exp.NEQ), exp.Any)
                return _listed(node) if of_any else casts.as_list(node)
        if type(node) in _SESSION_NODES:
            return self._asked(_SESSION_NODES[type(node)])
        return node

    def _column(self, node: exp.Column) -> exp.Expr:
        bare = not node.table and not node.this.quoted
        if bare and node.name.lower() in {"user", "current_role"}:
            return self._asked("current_user")
        if node.name == "tableoid":
            return self._tableoid(node)
        if node.args.get("db") is not None:  # pg_catalog.pg_class.oid
            node.set("db", None)
        return node

    def _tableoid(self, node: exp.Column) -> exp.Expr:
        """Return the number of the relation that a row is of."""
        select = node.find_ancestor(exp.Select) or self._query
        for table in tables(select):
            if node.table in {"", table.alias_or_name}:
                self._macros.add("class_in")
                return casts.call("class_in", exp.Literal.string(table.name))
        return node

    def _asked(self, what: str) -> exp.Expr:
        """Return a value of the session."""
        if what not in self._session:
            self._session.append(what)
        return exp.Placeholder(this=f"s{self._session.index(what) + 1}")

    def _call(self, node: exp.Anonymous) -> exp.Expr:  # noqa: PLR0911 - one per kind
        name, arguments = str(node.this).lower(), node.expressions
        _check_schema(node, name)
        if name in SESSION:
            return self._asked(name)
        if name == "current_setting":
            if arguments and isinstance(arguments[0], exp.Literal):
                kind = "setting" if len(arguments) == 1 else "setting?"
                return self._asked(f"{kind}:{str(arguments[0].this).lower()}")
            self._macros.add("setting")
            return casts.call("setting", *arguments[:1])
        if name == "_pg_expandarray":
            self._macros.add("expandarray")
            return exp.Anonymous(this="unnest", expressions=[casts.call("expandarray", *arguments)])
        if name == "all" and len(arguments) == 1:
            return exp.All(this=exp.Paren(this=_listed(arguments[0])))
        if name == "format":
            return formatted(node, self._macro)
        if name in MACROS and name not in OWN:
            self._macros.add(name)
            wanted = _PRIVILEGES.get(name, 3)
            if name.startswith(("has_", "pg_has_")) and len(arguments) < wanted:
                arguments = [self._asked("current_user"), *arguments]
            return casts.call(name, *arguments)
        if name in EFFECTS:
            message = f"{name} can only be an output of a query, for a session's number"
            hint = f"write SELECT {name}(pid) FROM …"
            raise NotSupported(message, hint=hint, position=position_of(node))
        if name in BUILTINS or name in RENAMED:
            node.set("this", RENAMED.get(name, name))
            return node
        raise _unknown(node, name)

    def _macro(self, name: str, argument: exp.Expr) -> exp.Expr:
        self._macros.add(name)
        return casts.call(name, argument)

    def _table_function(self, node: exp.Table) -> exp.Expr:
        """Return a function in FROM; its name, or alias, is that of its column too."""
        called = node.this
        name = str(called.this if isinstance(called, exp.Anonymous) else "").lower()
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        if name in TABLE_FUNCTIONS and not called.expressions:
            self._relations.add((PG_CATALOG, name))
            return exp.Table(
                this=exp.to_identifier(name), db=exp.to_identifier("pgc"), alias=alias.copy()
            )
        if name == "pg_options_to_table":  # nothing has options
            return _empty(("option_name", "option_value"), alias)
        if not alias.args.get("columns"):
            alias.set("columns", [alias.this.copy()])
        if name == "unnest":
            return exp.Unnest(expressions=called.expressions, alias=alias.copy())
        if name == "generate_series":
            return exp.Table(this=called.copy(), alias=alias.copy())
        made = called if name == "generate_subscripts" else self._call(called)
        inside = exp.Select(expressions=[exp.Alias(this=made.copy(), alias=alias.this.copy())])
        return exp.Lateral(this=exp.Subquery(this=inside), alias=alias.copy())


def _effects(query: exp.Expr) -> dict[str, str]:
    """Have outputs that would do something be the numbers of whom they do it to; return both."""
    found: dict[str, str] = {}
    for output in query.expressions if isinstance(query, exp.Select) else ():
        call = output.this if isinstance(output, exp.Alias) else output
        schema = call
        while isinstance(call, exp.Dot):
            call = call.expression
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if name in EFFECTS and len(call.expressions) == 1:
            alias = output.alias if isinstance(output, exp.Alias) else name
            found[alias] = name
            made = exp.cast(call.expressions[0].copy(), "BIGINT")
            if isinstance(output, exp.Alias):
                schema.replace(made)
            else:
                output.replace(exp.Alias(this=made, alias=exp.to_identifier(name)))
    return found


def _empty(columns: tuple[str, ...], alias: exp.TableAlias) -> exp.Expr:
    """Return a relation without rows."""
    outputs = [
        exp.Alias(this=exp.cast(exp.Null(), "VARCHAR"), alias=exp.to_identifier(name))
        for name in columns
    ]
    made = exp.Select(expressions=outputs).where(exp.false())
    return exp.Subquery(this=made, alias=alias.copy())


def _operator(node: exp.Operator) -> exp.Expr:
    sign = str(node.args["operator"]).rpartition(".")[2]
    if sign not in _OPERATORS:
        message = f"operator {sign} is not supported in queries over the catalog"
        raise NotSupported(message, hint="write it another way", position=position_of(node))
    return _OPERATORS[sign](node.this.copy(), node.expression.copy())


def _subscript(node: exp.Bracket) -> exp.Expr:
    """Return a subscript: arrays begin at 1 in DuckDB too; vectors begin at 0."""
    inside = node.this
    while isinstance(inside, exp.Paren | exp.Cast):
        inside = inside.this
    node.set("offset", 1)  # as they are: of 1
    if isinstance(inside, exp.Column) and inside.name in VECTORS:
        moved = [
            exp.Add(this=exp.Paren(this=e.copy()), expression=exp.Literal.number(1))
            for e in node.expressions
        ]
        node.set("expressions", moved)
    return node


def _stands_for_array(literal: exp.Literal) -> bool:
    """Return whether a literal is the text of an array, compared with one."""
    text = str(literal.this)
    parent = literal.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    braces = text.startswith("{") and text.endswith("}")
    return braces and isinstance(parent, exp.EQ | exp.NEQ | exp.Any)


def _listed(value: exp.Expr) -> exp.Expr:
    """Return an array; if it is a literal, as DuckDB writes it."""
    if isinstance(value, exp.Literal) and value.is_string:
        return exp.cast(casts.as_list(value).copy(), "VARCHAR[]", dialect="duckdb")
    return value.copy()


def _unescaped(text: str) -> str:
    """Return the text that E'…' stands for."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _check_schema(node: exp.Expr, name: str) -> None:
    """Refuse a function of something: DuckDB gives it what stands before the point."""
    above = node.parent
    if isinstance(above, exp.Dot) and not (
        isinstance(above.this, exp.Identifier) and above.this.name in SCHEMAS
    ):
        raise _unknown(node, f"{above.this.sql()}.{name}")


def _unknown(node: exp.Expr, name: str) -> UndefinedName:
    message = f"function {name} does not exist in queries over the catalog"
    hint = "such queries can call what tools of PostgreSQL call"
    return UndefinedName(message, code="42883", hint=hint, position=position_of(node))
