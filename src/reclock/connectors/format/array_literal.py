r"""Array literals as PostgreSQL writes them: ``{1,2,NULL}``, ``{"a b","c\"d",{…}}``.

An element is quoted, or bare: without quotes, braces, commas and backslashes, and not
empty; a bare NULL, in any case, is none. Elements of arrays of arrays are the inner
literals. Cost: linear in the text.

Tests: tests/connectors/format/test_literal.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reclock.connectors.format.decoder import Fault, shown
from reclock.sql.types import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE: Final = re.compile(r'(?:[^"\\{},]|\\.)+', re.DOTALL)
_BRACE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\\.|[{}]', re.DOTALL)
_BLANKS: Final = re.compile(r"[ \t\n\r\f\v]*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def elements_of(text: str, kind: Array) -> list[str | None]:
    r"""Return the texts of the elements, NULL as None.

    >>> from reclock.sql.types import TEXT
    >>> elements_of(r'{a, "b,\"c", NULL}', Array(TEXT))
    ['a', 'b,"c', None]
    """
    inside = text.strip(" \t\n\r\f\v")
    if not (inside.startswith("{") and inside.endswith("}")) or len(inside) < 2:
        raise _wrong(text, kind)
    if not inside[1:-1].strip(" \t\n\r\f\v"):
        return []
    return list(_elements(inside, text, kind))


def _elements(inside: str, text: str, kind: Array) -> Iterator[str | None]:
    end = len(inside) - 1
    at = 1
    while True:
        at = _skip(inside, at)
        element, at = _element(inside, at, end, text, kind)
        yield element
        at = _skip(inside, at)
        if at == end:
            return
        if inside[at] != ",":
            raise _wrong(text, kind)
        at += 1


def _element(inside: str, at: int, end: int, text: str, kind: Array) -> tuple[str | None, int]:
    """Return the element that begins at ``at``, and where it ends."""
    if inside[at] == "{" and isinstance(kind.element, Array):
        close = _closing(inside, at, end)
        if close is not None:
            return inside[at : close + 1], close + 1
    quoted = _QUOTED.match(inside, at, end)
    if quoted is not None:
        return _ESCAPE.sub(r"\1", quoted[1]), quoted.end()
    bare = _BARE.match(inside, at, end)
    if bare is None:
        raise _wrong(text, kind)
    word = bare[0].rstrip(" \t\n\r\f\v")
    if not word:
        raise _wrong(text, kind)
    return (None if word.upper() == "NULL" else _ESCAPE.sub(r"\1", word)), bare.end()


def _closing(inside: str, at: int, end: int) -> int | None:
    depth = 0
    for found in _BRACE.finditer(inside, at, end):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return None


def _skip(inside: str, at: int) -> int:
    found = _BLANKS.match(inside, at)
    return at if found is None else found.end()


def _wrong(text: str, kind: Array) -> Fault:
    return Fault(f"{shown(text)} is not of type {kind}")
