"""``format`` with a text that is known: its parts, one after the other.

Tests: tests/sql/pg/test_translate.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from reclock.errors import NotSupported
from reclock.sql.parse.node import position_of

if TYPE_CHECKING:
    from collections.abc import Callable

_PART: Final = re.compile(r"%(.)")


def formatted(call: exp.Anonymous, quote: Callable[[str, exp.Expr], exp.Expr]) -> exp.Expr:
    """Return ``format(text, …)`` as a concatenation; ``quote`` calls a function by its name."""
    first, *values = call.expressions
    if not (isinstance(first, exp.Literal) and first.is_string):
        message = "format needs a literal in queries over the catalog"
        raise NotSupported(message, hint="use ||", position=position_of(call))
    parts: list[exp.Expr] = []
    pieces = _PART.split(str(first.this))
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            parts.append(exp.Literal.string(piece))
        elif piece == "%":
            parts.append(exp.Literal.string("%"))
        elif piece in "sIL" and values:
            value = values.pop(0)
            function = {"I": "quote_ident", "L": "quote_literal"}.get(piece)
            parts.append(value.copy() if function is None else quote(function, value))
        else:
            message = f'unrecognized format() type specifier "{piece}", or too few arguments'
            raise NotSupported(message, code="22023", hint="use %s, %I, %L or %%")
    return exp.Anonymous(this="concat", expressions=parts)
