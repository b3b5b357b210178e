"""VACUUM and ANALYZE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class Maintain:
    """``VACUUM [FULL] [FREEZE] [VERBOSE] [ANALYZE] [tables]``, ``ANALYZE [VERBOSE] [tables]``.

    ``command`` is the first word, in upper case.
    """

    command: str
    names: tuple[Name, ...] = ()
