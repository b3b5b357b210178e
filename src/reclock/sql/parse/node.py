"""Reading sqlglot's nodes so that nothing they hold is lost.

Rule. The converter of a node names the arguments that it understands; any other argument that is
set is refused with 0A000. So a clause that the grammar accepts and we do not implement
(``TABLESAMPLE``, ``FOR UPDATE``, ``QUALIFY`` …) is an error, never a silent loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported

if TYPE_CHECKING:
    from sqlglot import exp

_CLAUSES = {
    "sample": "TABLESAMPLE",
    "locks": "FOR UPDATE",
    "qualify": "QUALIFY",
    "pivots": "PIVOT",
    "laterals": "LATERAL VIEW",
    "into": "SELECT INTO",
    "hint": "a query hint",
    "exclude": "EXCLUDE in a window frame",
    "recursive": "WITH RECURSIVE",
    "index_predicate": "WHERE after the columns of ON CONFLICT",
    "only": "ONLY",
    "when": "temporal table syntax",
    "match": "MATCH_RECOGNIZE",
}
_HINTS = {
    "TABLESAMPLE": "choose rows with WHERE",
    "FOR UPDATE": "leave it out: UPDATE and DELETE read and write under one lock",
    "QUALIFY": "filter the window function's column in an outer query",
    "PIVOT": "use aggregates with FILTER (WHERE …)",
    "LATERAL VIEW": "use CROSS JOIN LATERAL unnest(…)",
    "SELECT INTO": "use CREATE TABLE … AS SELECT",
    "WITH RECURSIVE": "write as many levels as you need as joins",
    "WHERE after the columns of ON CONFLICT": "leave it out: no key is partial",
    "an expression in ON CONFLICT": "name the columns of the primary key",
    "this action of MERGE": "write INSERT, UPDATE SET, DELETE or DO NOTHING",
    "SIMILAR TO": "use LIKE, or ~ with a regular expression",
    "COLLATE": "leave it out: text is ordered by its bytes",
    "FETCH … WITH TIES": "use rank() OVER (ORDER BY …) in a subquery, and WHERE rank <= n",
    "a join without FROM": "write FROM before the join",
    "an alias on a parenthesised join": "write it as a subquery: (SELECT * FROM …) AS name",
    "LATERAL of this": "LATERAL stands before a subquery or a table function",
    "column aliases without a name": "write a name before them: AS t (a, b)",
    "column types in an alias": "cast the columns in the SELECT list",
    "GROUP BY ALL": "list the columns",
    "a named parameter": "write parameters as $1, $2, …",
    "an interval of an expression": "multiply: n * INTERVAL '1 day'",
    "ESCAPE": "ESCAPE stands after LIKE or ILIKE",
    "an array slice": "unnest the array WITH ORDINALITY, and choose with WHERE",
    "expansion of a record": "name the fields: (r).a, (r).b",
    "a JSON path": "use -> and ->> one step after the other",
    "ARRAY(SELECT …)": "use (SELECT array_agg(…) FROM …)",
    "IGNORE NULLS": "leave out the NULLs in a subquery",
    "this target": "write to a table by its name",
    "this assignment": "write column = expression, or (a, b) = (…)",
    "a qualified column in SET": "write the column's name alone",
    "EXCLUDE in a window frame": "subtract the row's own value, or use two windows",
    "ONLY": "leave it out: tables have no children",
    "MATCH_RECOGNIZE": "use lag() and lead() in a subquery",
}
_FIRST = "first"
"""Where the first name in a node begins, among what sqlglot lets one note about it."""

_INCIDENTAL = frozenset({"copy", "nested", "value_constructor", "safe", "typed"})


def position_of(node: exp.Expr) -> int | None:
    """Return where ``node`` begins, counting from 1, if any name in it remembers.

    What is found out about the parts of a node is kept with them, so that asking every node of a
    tree costs no more than looking at each once.
    """
    if "start" in node.meta:
        return int(node.meta["start"]) + 1
    waiting = [node]
    while waiting:
        last = waiting[-1]
        parts = [] if "start" in last.meta else list(last.iter_expressions())
        unknown = [part for part in parts if _FIRST not in part.meta]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        firsts = [last.meta.get("start"), *(part.meta[_FIRST] for part in parts)]
        last.meta[_FIRST] = min((first for first in firsts if first is not None), default=None)
    found = node.meta[_FIRST]
    return None if found is None else int(found) + 1


def expect_only(node: exp.Expr, *understood: str) -> None:
    """Refuse ``node`` if it holds anything beyond the arguments ``understood``."""
    for name, value in node.args.items():
        if name in understood or name in _INCIDENTAL or name.startswith("_"):
            continue
        if value is None or value is False or value == []:
            continue
        construct = _CLAUSES.get(name, f"{name.strip('_').upper()} in {type(node).__name__}")
        raise unsupported(construct, node)


def unsupported(construct: str, node: exp.Expr | None = None) -> NotSupported:
    """Return the error for a construct that is not implemented."""
    position = None if node is None else position_of(node)
    hint = _HINTS.get(construct, "leave it out")
    return NotSupported(f"{construct} is not supported", hint=hint, position=position)


def identifier(node: exp.Expr | str) -> str:
    """Return the name, folded to lower case unless it was quoted."""
    if isinstance(node, str):
        return node.lower()
    name = str(node.name)
    return name if node.args.get("quoted") else name.lower()
