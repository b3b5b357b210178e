"""The length that a value may have, and templates that check it before they make one.

Invariant: a function whose value can be much longer than its arguments makes none of more than
``MAX_BYTES``: that is an error of the row (54000), and nothing is allocated for it, neither in a
task nor where Spark computes constants while it plans. So a value that a statement makes has
a bounded size, however its functions are nested: what does not look (``upper``, ``encode``)
multiplies the bytes of a value at most by a small constant, once.

``||`` and ``concat`` of texts of which all but one are short, as ``x || '/' || n``, add so little
that the length is not checked: they cannot fail, and may be keys of joins.

Cost: the length of a text is known without reading it; ``replace`` is counted only where the
product of lengths is too large.

Tests: tests/sql/test_spark_text.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.functions.overload import Failure
from reclock.sql.plan.scalar import Call, Case, Cast, Coalesce, Literal
from reclock.sql.types import BYTEA, JSON, TEXT, Array, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type

MAX_BYTES: Final = 64 << 20
"""How many bytes a value that is made of others may have."""

MAX_SERIES: Final = 10_000_000
"""How many elements a series may have."""

SPLIT: Final = "4L * octet_length({0})"
"""What is asked of a text that is cut into pieces, each of which has a cost of its own."""

_MESSAGE: Final = "requested length too large"
TOO_LONG: Final = Failure("54000", _MESSAGE)
"""For functions that are NULL only if an argument is."""

_SHORT_FUNCTIONS: Final = frozenset({"chr", "md5", "to_hex"})


def too_long(when: str) -> Failure:
    """Return the failure of a function that looks at NULL arguments by itself."""
    return Failure(TOO_LONG.code, _MESSAGE, when, even_null=True)


def bytes_of(argument: str) -> str:
    """Return text for the bytes of an argument of any type; 0 for NULL.

    >>> bytes_of("{0}")
    'coalesce(bigint(octet_length(CAST({0} AS STRING))), 0L)'
    """
    return f"coalesce(bigint(octet_length(CAST({argument} AS STRING))), 0L)"


def within(size: str, value: str, most: int = MAX_BYTES) -> str:
    """Return text for a value that is NULL, and not computed, if ``size`` is more than ``most``."""
    return f"CASE WHEN {size} <= {most} THEN {value} END"


def has_length(kind: Type) -> bool:
    """Return whether values of a type can be long."""
    return kind in {TEXT, JSON, BYTEA} or isinstance(kind, Array | Record)


def is_short(scalar: Scalar) -> bool:  # noqa: PLR0911  # one per case
    """Return whether a text is one of a few bytes, or stands in the statement."""
    match scalar:
        case Literal():
            return True
        case Cast():
            return not has_length(scalar.operand.type)
        case Call():
            if scalar.function.name in {"||", "concat"}:
                return all(map(is_short, scalar.arguments))
            return scalar.function.name in _SHORT_FUNCTIONS
        case Coalesce():
            return all(map(is_short, scalar.operands))
        case Case():
            return all(map(is_short, (*(r for _, r in scalar.branches), scalar.otherwise)))
    return False


def adds_little(arguments: Sequence[Scalar]) -> bool:
    """Return whether texts side by side are hardly longer than the longest of them."""
    return sum(not is_short(a) for a in arguments) <= 1
