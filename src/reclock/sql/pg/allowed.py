"""The parts that a query over the catalog may have.

Invariant: what is not listed is refused (0A000): nothing is allowed by being forgotten, or by
being new in sqlglot.

Tests: tests/server/pg_catalog/test_break_in.py.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from reclock.errors import NotSupported
from reclock.sql.parse.node import position_of

_ALLOWED: Final = frozenset(
    [
        "Add",
        "Alias",
        "All",
        "And",
        "Any",
        "Anonymous",
        "Array",
        "Between",
        "BitwiseAnd",
        "BitwiseOr",
        "Boolean",
        "Bracket",
        "ByteString",
        "CTE",
        "Case",
        "Cast",
        "Coalesce",
        "Collate",
        "Column",
        "CurrentCatalog",
        "CurrentDate",
        "CurrentSchema",
        "CurrentTimestamp",
        "CurrentUser",
        "DPipe",
        "DataType",
        "DataTypeParam",
        "Distinct",
        "Div",
        "Dot",
        "EQ",
        "Escape",
        "Except",
        "Exists",
        "Fetch",
        "Filter",
        "From",
        "GT",
        "GTE",
        "Group",
        "Having",
        "ILike",
        "Identifier",
        "If",
        "In",
        "Intersect",
        "Is",
        "Join",
        "LT",
        "LTE",
        "Lateral",
        "Like",
        "Limit",
        "Literal",
        "Mod",
        "Mul",
        "NEQ",
        "Neg",
        "Not",
        "Null",
        "NullSafeEQ",
        "NullSafeNEQ",
        "ObjectIdentifier",
        "Offset",
        "Operator",
        "Or",
        "Order",
        "Ordered",
        "Paren",
        "Parameter",
        "RegexpILike",
        "RegexpLike",
        "Select",
        "SessionUser",
        "Star",
        "StrPosition",
        "Sub",
        "Subquery",
        "Substring",
        "Table",
        "TableAlias",
        "Trim",
        "Tuple",
        "Union",
        "Unnest",
        "Values",
        "Var",
        "Where",
        "Window",
        "WindowSpec",
        "With",
        "WithinGroup",
    ]
)
_FORBIDDEN: Final = ("into", "locks", "sample", "pivots", "hint", "laterals", "qualify", "kind")


def check_allowed(query: exp.Expr) -> None:
    """Refuse every kind of node, and every clause, that is not known to be harmless."""
    for node in query.walk():
        kind = type(node).__name__
        if kind not in _ALLOWED:
            message = f"{kind} is not supported in queries over the catalog"
            raise NotSupported(message, hint="ask for less", position=position_of(node))
        for clause in _FORBIDDEN:
            if node.args.get(clause) and not isinstance(node, exp.DataType | exp.Join):
                message = f"{clause} is not supported in queries over the catalog"
                raise NotSupported(message, hint="leave it out", position=position_of(node))
