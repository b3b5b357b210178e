"""What no two rows of a table have in common: its primary key, or the columns of a unique index.

Definition. A row *has* a key if none of its columns is NULL, or NULL is a value like others
(``NULLS NOT DISTINCT``). Of each key that rows have, at most one row has it, at every time.
``engine.constraints`` sees to it; an index is what it looks keys up in.

Tests: tests/session/test_unique.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.dataflow.keying import Keying

if TYPE_CHECKING:
    from reclock.ids import ObjectId


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A key by the name that errors call it; without an ``index`` it is the primary key.

    ``columns`` are positions; a ``constraint`` can be named by ON CONFLICT.
    """

    name: str
    columns: tuple[int, ...]
    index: ObjectId | None = None
    nulls_distinct: bool = True
    constraint: bool = True

    def keying(self, primary: Keying) -> Keying:
        """Return how rows of the table are arranged by it; ``primary`` is the table's own way."""
        return primary if self.index is None else Keying(primary.types, self.columns)
