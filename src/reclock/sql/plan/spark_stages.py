"""Columns that expressions need before they can be computed, in stages.

Definition. A column of stage n is a text over the columns of the row and of stages before n; a
stage is added by one SELECT. Equal texts are one column. ``kept`` says which columns of earlier
stages are still needed at each, so that who has many stages carries few columns.

Tests: tests/sql/test_spark_text.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reclock.sql.plan.spark_literal import quote_name

if TYPE_CHECKING:
    from collections.abc import Iterable


class Stages:
    """The columns so far; their names begin with ``prefix``, and no other's do."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._stages: list[list[tuple[str, str]]] = []
        self._known: dict[str, tuple[str, int]] = {}

    def add(self, text: str, level: int) -> tuple[str, int]:
        """Have a column computed after ``level`` stages.

        Return its name, quoted, and how many stages must come before it is there.
        """
        if text not in self._known:
            while len(self._stages) <= level:
                self._stages.append([])
            name = f"{self._prefix}{len(self._known)}"
            self._stages[level].append((name, text))
            self._known[text] = quote_name(name), level + 1
        return self._known[text]

    @property
    def columns(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Names and texts of all columns, by stage."""
        return tuple(map(tuple, self._stages))

    def kept(self, results: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """Return for each stage the columns of those before it that it, or what follows, uses.

        ``results`` are the texts that come after all stages.

        >>> stages = Stages("s")
        >>> [stages.add(*column)[0] for column in (("x", 0), ("`s0`", 1), ("`s1`", 2))]
        ['`s0`', '`s1`', '`s2`']
        >>> stages.kept(["`s2`"])
        ((), ('s0',), ('s1',))
        """
        names = re.compile(f"`({re.escape(self._prefix)}[0-9]+)`")
        last: dict[str, int] = {}
        for at, texts in enumerate([*([t for _, t in s] for s in self._stages), results]):
            last |= dict.fromkeys((name for text in texts for name in names.findall(text)), at)
        kept: list[tuple[str, ...]] = []
        alive: list[str] = []
        for at, stage in enumerate(self._stages):
            alive = [name for name in alive if last.get(name, 0) >= at]
            kept.append(tuple(alive))
            alive += [name for name, _ in stage]
        return tuple(kept)
