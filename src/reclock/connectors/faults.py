"""What is wrong with records, and what every decode makes of what is not.

A *fault* is a code and a message that names the place and the reason. The first that is found of a
record is its fault.

Tests: tests/connectors/test_records.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.letters import placed

if TYPE_CHECKING:
    from collections.abc import Mapping

UNDECODABLE: Final = "22P04"
NO_VALUE: Final = "22004"
NO_KEY: Final = "23502"
"""The codes of faults."""

_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999
"""The first and the last time there is."""


class Faults:
    """What is wrong with the records of a batch: the first thing found of each."""

    def __init__(self, raw: pa.RecordBatch, whose: str) -> None:
        self._raw = raw
        self._whose = whose
        self._found: dict[int, tuple[str, str]] = {}

    def add(self, which: pa.Array, code: str, reason: str) -> None:
        """Note one reason for some records."""
        for at in np.flatnonzero(which.to_numpy(zero_copy_only=False)).tolist():
            self._found.setdefault(at, (code, self._text(at, reason)))

    def add_each(self, reasons: pa.Array, code: str, what: str) -> None:
        """Note a reason for each record that has one."""
        for at in np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False)).tolist():
            text = self._text(at, f"{what}: {reasons[at].as_py()}")
            self._found.setdefault(at, (code, text))

    def _text(self, at: int, reason: str) -> str:
        part, offset = self._raw.column(0)[at].as_py(), self._raw.column(1)[at].as_py()
        return placed(self._whose, part, offset) + reason

    def columns(self) -> list[pa.Array]:
        """Return the code and the message of every record."""
        return [self._column({at: code for at, (code, _) in self._found.items()}),
                self._column({at: text for at, (_, text) in self._found.items()})]  # fmt: skip

    def add_keyless(self, key: pa.Array, columns: list[pa.Array | None]) -> None:
        """Note the records that no key tells apart: without one, or with one that is wrong.

        No later record can mend such a fault, and no row can show it.
        """
        self.add(key.is_null(), NO_KEY, "it has no key")
        for column in columns:
            if column is not None and column.null_count:
                for at in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                    _, text = self._found.get(at, ("", self._text(at, "its key has a NULL")))
                    self._found[at] = NO_KEY, text

    def inlined(self) -> pa.Array:
        """Return the texts of those faults that a row can show; they are no faults then."""
        shown = {at: text for at, (code, text) in self._found.items() if code != NO_KEY}
        self._found = {at: f for at, f in self._found.items() if at not in shown}
        return self._column(shown)

    def _column(self, texts: Mapping[int, str]) -> pa.Array:
        if not texts:
            return pa.nulls(self._raw.num_rows, pa.string())
        values: list[str | None] = [None] * self._raw.num_rows
        for at, text in texts.items():
            values[at] = text
        return pa.array(values, pa.string())


def included(raw: pa.RecordBatch, name: str, kind: pa.DataType, faults: Faults) -> pa.Array:
    """Return a raw column as a column of the row; the writer of a record chooses its time."""
    column = raw.column(name)
    if name == "timestamp":
        ms = column.cast(pa.int64())
        wrong = pc.fill_null(pc.or_(pc.less(ms, _FIRST_MS), pc.greater(ms, _LAST_MS)), False)
        if wrong.true_count:
            faults.add(wrong, UNDECODABLE, "its timestamp is not in the years 0001 to 9999")
            column = pc.if_else(wrong, pa.scalar(None, column.type), column)
    return column if column.type == kind else column.cast(kind)


def named(columns: list[pa.Array]) -> pa.RecordBatch:
    """Return columns as a batch; names carry no meaning."""
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
