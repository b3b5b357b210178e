"""The progress of a first load in parts, for an observer in another thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Load:
    """So many parts of all stages are done, of so many; one thread writes, any reads."""

    done: int = 0
    total: int = 0

    def begin(self, total: int) -> None:
        """Note how many parts there are."""
        self.done, self.total = 0, total

    def reach(self, done: int) -> None:
        """Note that so many are done; stages without work count, too."""
        self.done = max(self.done, done)
