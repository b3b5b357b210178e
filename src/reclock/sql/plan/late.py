"""Placeholders for unknown values, in a plan that is made once and used often.

A ``Late`` is the value of a literal: it is not NULL and has the literal's type, and nothing else is
known of it. Code that looks at it while a plan is made, to compare it, to convert it or to count
with it, is stopped: by ``Undecided``, or by the ``TypeError`` of an operation that it does not
have. So a plan in which every one of them is still there is right for all values (``bind``).

Tests: tests/sql/test_late.py.
"""

from __future__ import annotations

from typing import NoReturn, final


class Undecided(Exception):
    """Planning depends on a value that is not known: it must be planned with the value."""


@final
class Late:
    """The value of parameter ``index``, counted from 0."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise Undecided

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"${self.index + 1}"

    def __str__(self) -> NoReturn:
        raise Undecided

    def __bool__(self) -> NoReturn:
        raise Undecided
