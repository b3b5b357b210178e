r"""Array literals as PostgreSQL writes them: ``{1,NULL}``, ``{"a,b","\"",plain}``, ``{{1},{2}}``.

Tests: tests/sql/test_array_text.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reclock.sql.types import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.types import Type


def read_array(text: str, element: Type, read: Callable[[str, Type], object]) -> tuple[Any, ...]:
    """Return the elements of an array literal; ``ValueError`` if it is none.

    ``read`` reads an element that is no array.

    >>> from reclock.sql.types import TEXT
    >>> read_array('{"a,b",NULL,"NULL"}', TEXT, lambda text, _: text)
    ('a,b', None, 'NULL')
    """
    elements = _Elements(text.strip(), read)
    found = elements.array(element)
    elements.end()
    return found


class _Elements:
    """Reads the text of an array from left to right."""

    def __init__(self, text: str, read: Callable[[str, Type], object]) -> None:
        self._text = text
        self._read = read
        self._at = 0

    def array(self, element: Type) -> tuple[Any, ...]:
        """Read an array."""
        self._expect("{")
        self._blanks()
        found: list[Any] = []
        while not self._accept("}"):
            if found:
                self._expect(",")
            self._blanks()
            if isinstance(element, Array):
                found.append(None if self._null() else self.array(element.element))
            else:
                found.append(self._value(element))
            self._blanks()
        return tuple(found)

    def end(self) -> None:
        """Refuse anything that is left."""
        if self._at != len(self._text):
            raise ValueError(self._text)

    def _null(self) -> bool:
        null = self._text[self._at : self._at + 4].upper() == "NULL"
        self._at += 4 * null
        return null

    def _value(self, element: Type) -> Any:
        if self._accept('"'):
            return self._read(self._until('"', quoted=True), element)
        raw = self._until(",}", quoted=False).strip()
        if not raw:
            raise ValueError(self._text)
        return None if raw.upper() == "NULL" else self._read(raw, element)

    def _until(self, ends: str, *, quoted: bool) -> str:
        """Return the text up to one of ``ends``, which is read only if it is a quote."""
        made = []
        while (character := self._peek()) not in ends:
            if not quoted and character in '{"':
                raise ValueError(self._text)
            self._at += 1
            if character == "\\":
                character = self._peek()
                self._at += 1
            made.append(character)
        self._at += quoted
        return "".join(made)

    def _blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise ValueError(self._text)
        return self._text[self._at]

    def _accept(self, character: str) -> bool:
        found = self._peek() == character
        self._at += found
        return found

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise ValueError(self._text)
