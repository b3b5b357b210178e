"""Values that must not be shown: passwords, private keys.

A ``Secret`` shows ``***`` wherever it is printed, formatted or logged; the value comes out
by ``reveal`` alone. It survives pickling, because Spark carries connections to workers.
``scrub`` takes secrets out of texts that others wrote, such as a library's error.

Tests: tests/test_secret.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN: Final = "***"


@final
class Secret:
    """A text that is not shown.

    >>> password = Secret("hunter2")
    >>> password, f"{password}", {"password": password}
    (Secret(***), '***', {'password': Secret(***)})
    >>> password.reveal()
    'hunter2'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, for the code that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[object, ...]:
        return Secret, (self._value,)


def scrub(text: str, secrets: Iterable[Secret]) -> str:
    """Return ``text`` without any of ``secrets``.

    >>> scrub("login failed for joe:hunter2", [Secret("hunter2"), Secret("")])
    'login failed for joe:***'
    """
    for secret in secrets:
        if secret.reveal():
            text = text.replace(secret.reveal(), HIDDEN)
    return text
