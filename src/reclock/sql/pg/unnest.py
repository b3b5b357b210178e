"""``unnest`` in FROM, as DuckDB has it.

Tests: tests/sql/pg/test_translate.py, tests/server/pg_catalog/test_like_postgresql.py.
"""

from __future__ import annotations

from sqlglot import exp


def named_unnest(node: exp.Unnest) -> exp.Expr:
    """Return an unnest whose outputs have names; several arrays are gone through at once."""
    alias = node.args.get("alias")
    if len(node.expressions) > 1 and alias is not None:
        return _unnest_together(node, alias)
    if alias is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    return node


def _unnest_together(node: exp.Unnest, alias: exp.TableAlias) -> exp.Expr:
    arrays = [exp.Anonymous(this="unnest", expressions=[a.copy()]) for a in node.expressions]
    names = list(alias.args.get("columns") or ())
    offset = node.args.get("offset")
    if isinstance(offset, exp.Identifier):
        first = [node.expressions[0].copy(), exp.Literal.number(1)]
        arrays.append(exp.Anonymous(this="generate_subscripts", expressions=first))
        names.append(offset)
    outputs = [
        exp.Alias(this=array, alias=name.copy()) for array, name in zip(arrays, names, strict=False)
    ]
    inside = exp.Subquery(this=exp.Select(expressions=outputs))
    return exp.Lateral(this=inside, alias=exp.TableAlias(this=alias.this.copy()))
