"""Files of lines: plain or compressed, with or without a header.

A plain file is read from where a stretch begins, and measured from its end backwards: the
last newline is the end of what is there. Files are taken for compressed by their name
(``.gz``), or all of them or none by the option ``compression``.

With a header the first line of every file is not a record. It must have exactly the names of
the columns, in their order: a file with other columns would be read wrong, without a word.

Cost of measuring: what was added since the last newline is looked at once.
Tests: tests/connectors/files/test_text_content.py.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from reclock.connectors.files.content import Measure
from reclock.connectors.files.failure import truncated, unfit
from reclock.connectors.files.gzip_members import Progress, decompressed, measured, rest_of
from reclock.connectors.files.lines import MAX_LINE, SCHEMA, lines, too_long, whole_blocks
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.connectors.files.content import Stretch

_CHUNK: Final = 4 << 20
_BEYOND: Final = 64 << 10
LINE_BYTES: Final = 64
"""How long a line is, about."""

COMPRESSIONS: Final = ("gzip", "none")


@dataclass(frozen=True, slots=True)
class Header:
    """The names that the first line of every file must have."""

    names: tuple[str, ...]
    delimiter: str = ","

    def check(self, name: str, line: bytes) -> None:
        """Refuse a file with another header."""
        text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
        found = tuple(next(csv.reader([text], delimiter=self.delimiter), ()))
        if found != self.names:
            detail = f"it has {_listed(found)}; the columns are {_listed(self.names)}"
            hint = "declare the columns as the files have them, in the same order"
            raise unfit(name, "has another header than the source", detail, hint)


@dataclass(frozen=True, slots=True)
class Text:
    """Lines; ``compression`` None goes by the names of files."""

    header: Header | None = None
    compression: str | None = None

    def __post_init__(self) -> None:
        """Refuse compressions that are not known."""
        if self.compression is not None and self.compression not in COMPRESSIONS:
            message = f'invalid compression "{self.compression}"'
            raise InvalidValue(message, hint=f"write {' or '.join(COMPRESSIONS)}")

    @property
    def schema(self) -> pa.Schema:
        """The file, where the line begins, and the line."""
        return SCHEMA

    def measure(self, file: BinaryIO, name: str, size: int, known: Measure | None) -> Measure:
        """Return where the last whole line ends."""
        if self._is_compressed(name):
            before = known.memory if known else None
            progress = measured(file, name, before if isinstance(before, Progress) else None)
            return Measure(progress.whole.end, progress.whole.raw, progress)
        end, looked = (known.end, known.memory) if known else (0, 0)
        assert isinstance(looked, int)
        found = _last_newline(file, max(looked, size - MAX_LINE - 1), size)
        end = end if found is None else found + 1
        if size - end > MAX_LINE:
            raise too_long(name, end)
        return Measure(end, end, size)

    def measure_complete(self, file: BinaryIO, name: str, size: int) -> Measure:
        """Return the size; a compressed file must consist of whole members."""
        if not self._is_compressed(name):
            return Measure(size, size)
        whole = measured(file, name, None).whole
        rest = rest_of(file, whole)
        if rest or not whole.raw:
            detail = f"of its {size} bytes the last {rest} are no whole gzip member"
            raise unfit(name, "is not complete", detail, "wait until it is written")
        return Measure(whole.size, whole.raw)

    def pieces(self, file: BinaryIO, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """Yield the lines that begin in a stretch."""
        at = max(0, stretch.start - 1)
        if self.header is not None and stretch.start == 0:
            at = self._pass_header(file, stretch, self.header)
            stretch = stretch._replace(start=at)
            at = max(0, at - 1)
        if stretch.start < stretch.stop:
            yield from lines(self._bytes(file, at, stretch), at, stretch)

    def grain(self, name: str) -> int | None:
        """Return the length of a line, about; compressed bytes have no places to go to."""
        return None if self._is_compressed(name) else LINE_BYTES

    def _pass_header(self, file: BinaryIO, stretch: Stretch, header: Header) -> int:
        """Return where the first record begins."""
        first = stretch._replace(stop=1)
        for _, block in whole_blocks(self._bytes(file, 0, first), 0, first):
            line, newline, _ = block.partition(b"\n")
            header.check(stretch.name, line)
            return len(line) + len(newline)
        raise truncated(stretch.name, stretch.stop, 0)

    def _bytes(self, file: BinaryIO, at: int, stretch: Stretch) -> Iterator[bytes]:
        if self._is_compressed(stretch.name):
            chunks = _after(decompressed(file, stretch.name), at)
        else:
            chunks = _plain(file, at, stretch.stop)
        return chunks if stretch.end is None else _before(chunks, stretch.end - at)

    def _is_compressed(self, name: str) -> bool:
        if self.compression is None:
            return name.endswith(".gz")
        return self.compression == "gzip"


def _plain(file: BinaryIO, at: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from ``at`` on: those before ``stop``, then little by little."""
    file.seek(at)
    while chunk := file.read(min(_CHUNK, stop - at) if at < stop else _BEYOND):
        yield chunk
        at += len(chunk)


def _after(chunks: Iterator[bytes], at: int) -> Iterator[bytes]:
    """Yield the bytes from ``at`` on."""
    passed = 0
    for chunk in chunks:
        if passed + len(chunk) > at:
            yield chunk[max(0, at - passed) :]
        passed += len(chunk)


def _before(chunks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield the first ``count`` bytes."""
    for chunk in chunks:
        if count <= 0:
            return
        yield chunk[:count]
        count -= len(chunk)


def _last_newline(file: BinaryIO, start: int, stop: int) -> int | None:
    """Return where the last newline of ``[start, stop)`` is, looking from behind."""
    while start < stop:
        begin = max(start, stop - _BEYOND)
        file.seek(begin)
        found = file.read(stop - begin).rfind(b"\n")
        if found >= 0:
            return begin + found
        stop = begin
    return None


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
