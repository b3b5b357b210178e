"""Tasks that do not know each other: each gets an item and gives a text.

For what is not a graph of steps, such as merges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.dataflow.stop import Stop

Item = TypeVar("Item")


class Tasks(Protocol):
    """Runs tasks: Spark, this process, or in tests a loop."""

    @property
    def parallelism(self) -> int:
        """How many run at once."""
        ...

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Return what ``task`` gives for each item."""
        ...


@dataclass(frozen=True)
class TasksHere:
    """Tasks in this process, one after the other."""

    stop: Stop | None = None
    parallelism: int = 1

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Run one task for each item."""
        made = []
        for item in items:
            if self.stop is not None:
                self.stop.check()
            made.append(task(item))
        return made
