"""Files whose records are not lines as they lie: Parquet, and lines that are compressed.

Written from docs/sources-files.md: a Parquet file is there when its footer is, and never changes; a
position is a number of rows. A gzip file has what its whole members have; a position is that of the
bytes that were compressed, and a line may be in several members.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .feeds import Files, Log
from .model import Fault, Record, Rows, appended

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

COLUMN: dict[str, pa.DataType] = {
    "long": pa.int64(), "double": pa.float64(), "text": pa.string(), "wide": pa.uint64(),
    "decimal": pa.decimal128(20, 2),
}  # fmt: skip
"""How a file has the column v, which is declared as a bigint."""
UNFIT: dict[str, list[Any]] = {
    "long": [], "double": [1.5, float("nan"), 1e300], "text": ["x", "", "1.5"], "wide": [2**63],
    "decimal": ["1.25"],
}  # fmt: skip
"""What a file can have in it that is no bigint."""


class Parquet(Log):
    """A directory of Parquet files."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.place = self.home / self.name
        self.place.mkdir()
        self.count = 0
        self.unfinished: tuple[Path, bytes, list[Record]] | None = None
        """A file that lacks its end."""

    def statements(self) -> list[str]:
        return [
            f"CREATE SOURCE {self.name} (k BIGINT, v BIGINT, s TEXT) FROM DIRECTORY '{self.place}' "
            f"FORMAT PARQUET{self.options()}"
        ]

    def send(self, rng: Random, run: Any) -> None:
        self.finish()
        part = f"p{self.count:03}.parquet"
        self.count += 1
        kind = rng.choice(sorted(COLUMN))
        values: list[Any] = []
        records = []
        for offset in range(rng.randint(0, 4)):
            k, v, s = self.row(rng)
            unfit = UNFIT[kind] if rng.random() < self.spec.get("bad", 0) else []
            v = v if v is None or v < 2**40 or kind != "decimal" else 3
            v = abs(v) if v is not None and kind == "wide" else v
            written = rng.choice(unfit) if unfit else _as(v, kind)
            values.append((k, written, s))
            records.append(Record(part, offset, Fault() if unfit else (k, v, s)))
        raw = _file(values, kind, self.place.parent / "written")
        path = self.place / part
        if rng.random() < 0.25:
            cut = rng.randrange(len(raw))
            path.write_bytes(raw[:cut])
            self.unfinished = path, raw[cut:], records
            return
        path.write_bytes(raw)
        self.records |= {(r.part, r.offset): r for r in records}

    def finish(self) -> None:
        if self.unfinished is not None:
            path, rest, records = self.unfinished
            with path.open("ab") as file:
                file.write(rest)
            self.records |= {(r.part, r.offset): r for r in records}
            self.unfinished = None

    def settle(self, run: Any) -> None:
        self.finish()

    def open_offsets(self) -> dict[str, int]:
        return {} if self.unfinished is None else {self.unfinished[0].name: 0}

    def rows(self, time: int) -> Rows:
        return appended(self.placed(time), 3, inline=self.inline)


def _as(value: int | None, kind: str) -> Any:
    made: Any = value
    if value is not None and kind in ("text", "decimal"):
        made = str(value)
    return float(value) if value is not None and kind == "double" else made


def _file(rows: list[tuple[Any, ...]], kind: str, path: Path) -> bytes:
    """Return the bytes of a file with these rows, and a column that was not declared."""
    k, v, s = ([row[at] for row in rows] for at in range(3))
    wanted = COLUMN[kind]
    values = pa.array(v, pa.string()).cast(wanted) if kind == "decimal" else pa.array(v, wanted)
    columns = {
        "s": pa.array(s, pa.string()), "other": pa.array([1.5] * len(rows)),
        "v": values, "k": pa.array(k, pa.int64()),
    }  # fmt: skip
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path.read_bytes()


class Compressed(Files):
    """Lines in gzip members, of which the last may lack its end."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lacking: dict[str, bytes] = {}
        """The end of a file's last member."""

    def add(self, part: str, some: bytes) -> None:
        made = self.lacking.pop(part, b"") + gzip.compress(some)
        with self.path(part).open("ab") as file:
            file.write(made)
        self.ends[part] += len(some)

    def cut(self, rng: Random, part: str, line: bytes, record: Record) -> None:
        if rng.random() < 0.5:
            super().cut(rng, part, line, record)
            return
        made = gzip.compress(line)
        at = rng.randrange(len(made))
        with self.path(part).open("ab") as file:
            file.write(self.lacking.pop(part, b"") + made[:at])
        self.lacking[part] = made[at:]
        self.rest[part] = line, record

    def whole(self, part: str) -> None:
        if part in self.rest and part in self.lacking:
            line, record = self.rest.pop(part)
            with self.path(part).open("ab") as file:
                file.write(self.lacking.pop(part))
            self.ends[part] += len(line)
            self.records[part, record.offset] = record
        else:
            super().whole(part)
