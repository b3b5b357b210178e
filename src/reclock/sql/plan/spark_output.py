"""Arrays and records as PostgreSQL's text, in Spark SQL: ``{1,NULL,"a b"}``, ``(1,,"a b")``.

An element is quoted if it is empty, is the word NULL (in arrays), or has a blank, a quote, a
backslash or what separates elements. The same in Python: ``reclock.rows.copy_text``.

Tests: tests/functions/test_net.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.spark_literal import quote_name
from reclock.sql.types import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.sql.types import Type

    Write = Callable[[str, Type], str]

_BLANKS: Final = r" \\t-\\r"
_IN_ARRAY: Final = rf"'[{{}}\",\\\\{_BLANKS}]'"
_IN_RECORD: Final = rf"'[()\",\\\\{_BLANKS}]'"


def array_as_text(value: str, element: Type, write: Write) -> str:
    """Return text for an array; ``write`` gives that of an element."""
    made = write("__a", element)
    if not isinstance(element, Array):
        made = _bound(made, _quoted(f"lower(__x) = 'null' OR rlike(__x, {_IN_ARRAY})", r"\\"))
    each = f"transform({value}, __a -> coalesce({made}, 'NULL'))"
    return f"concat('{{', array_join({each}, ','), '}}')"


def record_as_text(value: str, fields: Sequence[tuple[str, Type]], write: Write) -> str:
    """Return text for a record; NULL for NULL."""
    within = _quoted(f"rlike(__x, {_IN_RECORD})", _TWICE)
    texts = [write(f"{value}.{quote_name(name)}", kind) for name, kind in fields]
    parts = [f"coalesce({_bound(text, within)}, '')" for text in texts]
    inside = ", ',', ".join(parts) or "''"
    return f"CASE WHEN {value} IS NOT NULL THEN concat('(', {inside}, ')') END"


_TWICE: Final = '"'


def _quoted(special: str, quote: str) -> str:
    escaped = f"replace(replace(__x, '\\\\', '\\\\\\\\'), '\"', '{quote}\"')"
    return f"CASE WHEN __x = '' OR {special} THEN concat('\"', {escaped}, '\"') ELSE __x END"


def _bound(value: str, within: str) -> str:
    return f"element_at(transform(array({value}), __x -> {within}), 1)"
