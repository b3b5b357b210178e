"""Tasks that do not know each other: each gets an item and gives a text.

For what is not a graph of steps, such as merges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")


class Tasks(Protocol):
    """Runs tasks: Spark, or in tests a loop."""

    @property
    def parallelism(self) -> int:
        """How many run at once."""
        ...

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Return what ``task`` gives for each item."""
        ...
