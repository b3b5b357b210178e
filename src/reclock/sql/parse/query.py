"""From sqlglot's queries to ``syntax.query``; what is not listed is refused."""

from __future__ import annotations

from functools import reduce
from itertools import chain, combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.dialect import COMMA
from reclock.sql.parse.expression import ExpressionConverter
from reclock.sql.parse.node import expect_only, identifier, position_of, unsupported
from reclock.sql.parse.translate import NAME, translated
from reclock.sql.syntax import query as q
from reclock.sql.syntax.expression import Name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.syntax.expression import Expression

_SETS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}
_SELECT_PARTS = (
    "expressions", "from_", "joins", "where", "group", "having", "distinct", "windows",
)  # fmt: skip
_QUERY_PARTS = ("with_", "order", "limit", "offset")
_MAX_GROUPING_SETS = 256


def convert_query(node: exp.Expr) -> q.Query:
    """Return a whole query as our syntax."""
    common = convert_common(node.args.get("with_"))
    order, limit, offset = (node.args.get(part) for part in ("order", "limit", "offset"))
    return q.Query(
        _body(node),
        common,
        () if order is None else convert_expression.sort_items(order),
        None if limit is None else _limit(limit),
        None if offset is None else _offset(offset),
    )


convert_expression = ExpressionConverter(convert_query)


def _body(node: exp.Expr) -> q.Select | q.SetOperation | q.Values | q.Query:
    if isinstance(node, exp.Select):
        return _select(node)
    if isinstance(node, exp.Union | exp.Except | exp.Intersect):
        expect_only(node, "this", "expression", "distinct", *_QUERY_PARTS)
        operator = _SETS[type(node)]
        left, right = convert_query(node.this), convert_query(node.args["expression"])
        return q.SetOperation(operator, not node.args.get("distinct"), left, right)
    if isinstance(node, exp.Values):
        expect_only(node, "expressions", *_QUERY_PARTS)
        return _values(node)
    if isinstance(node, exp.Subquery):
        expect_only(node, "this", *_QUERY_PARTS)
        return convert_query(node.this)
    if isinstance(node, exp.Paren):
        return convert_query(node.this)
    raise unsupported(type(node).__name__ + " as a query", node)


def _values(node: exp.Expr) -> q.Values:
    rows = []
    for row in node.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        rows.append(convert_expression.all(cells))
    return q.Values(tuple(rows))


def convert_common(with_: exp.Expr | None) -> tuple[q.CommonTable, ...]:
    """Return the queries that WITH names."""
    if with_ is None:
        return ()
    expect_only(with_, "expressions")
    tables = []
    for table in with_.expressions:
        expect_only(table, "this", "alias", "materialized")
        alias = _alias(table.args["alias"])
        if alias is None:
            msg = "WITH without a name"
            raise unsupported(msg, table)
        tables.append(q.CommonTable(alias, convert_query(table.this)))
    return tuple(tables)


def _limit(node: exp.Expr) -> Expression | None:
    if isinstance(node, exp.Fetch):
        expect_only(node, "direction", "count", "limit_options")
        options = node.args.get("limit_options")
        if options is not None:
            if options.args.get("with_ties"):
                msg = "FETCH … WITH TIES"
                raise unsupported(msg, node)
            expect_only(options, "rows")
        return convert_expression(node.args.get("count") or exp.Literal.number(1))
    expect_only(node, "expression")
    bound = node.args["expression"]
    if isinstance(bound, exp.Null) or (isinstance(bound, exp.Var) and bound.name.upper() == "ALL"):
        return None
    return convert_expression(bound)


def _offset(node: exp.Expr) -> Expression:
    expect_only(node, "expression")
    return convert_expression(node.args["expression"])


def _select(node: exp.Expr) -> q.Select:
    expect_only(node, *_SELECT_PARTS, *_QUERY_PARTS)
    where, having, distinct = (node.args.get(part) for part in ("where", "having", "distinct"))
    on: tuple[Expression, ...] = ()
    if distinct is not None:
        expect_only(distinct, "on")
        listed = distinct.args.get("on")
        if listed is not None:
            on = convert_expression.all(
                listed.expressions if isinstance(listed, exp.Tuple) else [listed]
            )
    return q.Select(
        tuple(convert_item(item) for item in node.expressions),
        _from(node),
        None if where is None else convert_expression(where.this),
        _group(node.args.get("group")),
        None if having is None else convert_expression(having.this),
        distinct is not None and not on,
        on,
        tuple(
            (identifier(w.this), convert_expression.window(w))
            for w in node.args.get("windows") or ()
        ),
    )


def convert_item(node: exp.Expr) -> q.SelectItem:
    """Return one output of SELECT or RETURNING."""
    if isinstance(node, exp.Alias):
        expect_only(node, "this", "alias")
        return q.SelectItem(convert_expression(node.this), identifier(node.args["alias"]))
    return q.SelectItem(convert_expression(node))


def _from(node: exp.Expr) -> q.FromItem | None:
    source = node.args.get("from_")
    if source is None:
        if node.args.get("joins"):
            msg = "a join without FROM"
            raise unsupported(msg, node)
        return None
    expect_only(source, "this")
    return _listed(convert_from(source.this), node.args.get("joins") or ())


def convert_source(node: exp.Expr) -> q.FromItem:
    """Return what stands after FROM in UPDATE, or USING: commas are among the first's joins."""
    return _listed(_from_primary(node), node.args.get("joins") or ())


def _listed(first: q.FromItem, joins: Iterable[exp.Expr]) -> q.FromItem:
    """Return the items of a FROM: a comma binds less tightly than all other joins."""
    items = [first]
    for join in joins:
        if COMMA in join.meta:
            items.append(convert_from(join.this))
        else:
            items[-1] = _join(items[-1], join)
    return reduce(lambda left, right: q.JoinText("cross", left, right), items)


def _join(left: q.FromItem, node: exp.Expr) -> q.FromItem:
    expect_only(node, "this", "side", "kind", "on", "using", "method")
    method = str(node.args.get("method") or "").upper()
    side = str(node.args.get("side") or "").lower()
    kind = str(node.args.get("kind") or "").lower()
    if COMMA in node.meta:
        message = "a comma inside a join"
        raise _misjoined(message, "write CROSS JOIN: commas separate whole items of FROM", node)
    if method not in {"", "NATURAL"} or kind not in {"", "inner", "outer", "cross"}:
        msg = f"{method or kind.upper()} JOIN"
        raise unsupported(msg, node)
    on = node.args.get("on")
    using = tuple(identifier(c) for c in node.args.get("using") or ())
    natural = method == "NATURAL"
    given = natural + (on is not None) + bool(using)
    if kind == "cross" and (given or side):
        message, hint = "CROSS JOIN with a condition or a side", "leave one of the two out"
        raise _misjoined(message, hint, node)
    if kind != "cross" and given != 1:
        message = "a join without ON or USING" if not given else "a join with two conditions"
        raise _misjoined(message, "write ON, USING, NATURAL JOIN, or CROSS JOIN", node)
    return q.JoinText(
        side or ("cross" if kind == "cross" else "inner"),
        left,
        convert_from(node.this),
        None if on is None else convert_expression(on),
        using,
        natural,
    )


def _misjoined(what: str, hint: str, node: exp.Expr) -> InvalidSyntax:
    return InvalidSyntax(f"syntax error: {what}", hint=hint, position=position_of(node.this))


def convert_from(node: exp.Expr) -> q.FromItem:
    """Return one item of FROM, with the joins behind it."""
    made = _from_primary(node)
    for join in node.args.get("joins") or ():
        made = _join(made, join)
    return made


def _from_primary(node: exp.Expr) -> q.FromItem:
    if isinstance(node, exp.Table):
        return _table(node)
    if isinstance(node, exp.Lateral):
        return _lateral(node)
    if isinstance(node, exp.Unnest):
        return _unnest(node)
    alias = _alias(node.args.get("alias"))
    if isinstance(node, exp.Values):
        expect_only(node, "expressions", "alias", "joins")
        return q.DerivedTable(q.Query(_values(node)), alias)
    if isinstance(node, exp.Subquery):
        inside = node.this
        if isinstance(inside, exp.Table | exp.Lateral | exp.Unnest) or (
            isinstance(inside, exp.Subquery) and inside.args.get("joins")
        ):
            if alias is not None:
                msg = "an alias on a parenthesised join"
                raise unsupported(msg, node)
            expect_only(node, "this", "joins")
            return convert_from(inside)
        expect_only(node, "this", "alias", "joins", *_QUERY_PARTS)
        return q.DerivedTable(convert_query(node if alias is None else _bare(node)), alias)
    raise unsupported(type(node).__name__ + " in FROM", node)


def _bare(node: exp.Expr) -> exp.Expr:
    kept = {name: part for name, part in node.args.items() if name not in {"alias", "joins"}}
    made = type(node)(**kept)  # with the same parts: copies of copies would take long
    made.meta.update(node.meta)
    return made


def _table(node: exp.Expr) -> q.FromItem:
    expect_only(node, "this", "db", "catalog", "alias", "joins", "ordinality")
    alias = _alias(node.args.get("alias"))
    if isinstance(node.this, exp.Anonymous):
        expect_only(node.this, "this", "expressions")
        if _is_translate(node):
            query = convert_query(translated(node.this))
            source = convert_expression(node.this.expressions[0])
            return q.DerivedTable(query, alias or q.Alias(NAME), source=source)
        return _function(node.this, alias, ordinality=bool(node.args.get("ordinality")))
    if isinstance(node.this, exp.Values):  # in parentheses, with a join behind it
        return q.DerivedTable(q.Query(_values(node.this)), alias)
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(type(node.this).__name__ + " in FROM", node)
    parts = (node.args.get("catalog"), node.args.get("db"), node.this)
    name = Name(tuple(identifier(p) for p in parts if p is not None), position_of(node))
    return q.TableName(name, alias)


def _is_translate(node: exp.Expr) -> bool:
    schema = node.args.get("db")
    return schema is not None and (identifier(schema), identifier(node.this.this)) == (
        "reclock",
        NAME,
    )


def _function(call: exp.Expr, alias: q.Alias | None, *, ordinality: bool) -> q.FromItem:
    arguments = convert_expression.all(call.expressions)
    return q.TableFunction(identifier(call.this), arguments, alias, ordinality, position_of(call))


def _lateral(node: exp.Expr) -> q.FromItem:
    expect_only(node, "this", "alias", "ordinality", "joins")
    alias = _alias(node.args.get("alias"))
    if isinstance(node.this, exp.Anonymous):
        return _function(node.this, alias, ordinality=bool(node.args.get("ordinality")))
    if isinstance(node.this, exp.Unnest):
        return _unnested(node.this, alias)
    if isinstance(node.this, exp.Subquery):
        return q.DerivedTable(convert_query(node.this), alias, lateral=True)
    msg = "LATERAL of this"
    raise unsupported(msg, node)


def _unnest(node: exp.Expr) -> q.FromItem:
    expect_only(node, "expressions", "alias", "offset", "joins")
    return _unnested(node, _alias(node.args.get("alias")))


def _unnested(node: exp.Expr, alias: q.Alias | None) -> q.FromItem:
    offset = node.args.get("offset")
    if isinstance(offset, exp.Identifier) and alias is not None:
        alias = q.Alias(alias.name, (*alias.columns, identifier(offset)))
    arguments = convert_expression.all(node.expressions)
    return q.TableFunction("unnest", arguments, alias, bool(offset), position_of(node))


def _alias(node: exp.Expr | None) -> q.Alias | None:
    if node is None:
        return None
    expect_only(node, "this", "columns")
    if node.this is None:
        msg = "column aliases without a name"
        raise unsupported(msg, node)
    columns = []
    for column in node.args.get("columns") or ():
        if not isinstance(column, exp.Identifier):
            msg = "column types in an alias"
            raise unsupported(msg, node)
        columns.append(identifier(column))
    return q.Alias(identifier(node.this), tuple(columns))


def _group(node: exp.Expr | None) -> tuple[q.GroupingSets, ...]:
    if node is None:
        return ()
    expect_only(node, "expressions", "all")
    if node.args.get("all"):
        msg = "GROUP BY ALL"
        raise unsupported(msg, node)
    return tuple(q.GroupingSets(_sets(item)) for item in node.expressions)


def _sets(node: exp.Expr) -> tuple[tuple[Expression, ...], ...]:
    """Return the grouping sets one GROUP BY item stands for."""
    if isinstance(node, exp.Rollup):
        units = [_unit(u) for u in node.expressions]
        prefixes = [units[:n] for n in range(len(units), -1, -1)]
        return tuple(tuple(chain.from_iterable(p)) for p in prefixes)
    if isinstance(node, exp.Cube):
        units = [_unit(u) for u in node.expressions]
        if 2 ** len(units) > _MAX_GROUPING_SETS:
            msg = f"more than {_MAX_GROUPING_SETS} grouping sets"
            raise unsupported(msg, node)
        chosen = chain.from_iterable(combinations(units, n) for n in range(len(units), -1, -1))
        return tuple(tuple(chain.from_iterable(c)) for c in chosen)
    if isinstance(node, exp.GroupingSets):
        return tuple(s for item in node.expressions for s in _sets(item))
    return (_unit(node),)


def _unit(node: exp.Expr) -> tuple[Expression, ...]:
    if isinstance(node, exp.Tuple):
        return convert_expression.all(node.expressions)
    return (convert_expression(node),)
