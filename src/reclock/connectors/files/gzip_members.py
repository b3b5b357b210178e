"""Compressed files: one gzip member after another, of which the last may not be whole yet.

What a compressed file has is what its whole members have; one that is still being written
does not exist yet. Members may be added: they go on where the last one ended. Positions are
those of the bytes that were compressed.

Cost: compressed bytes have no places that one could go to. Measuring decompresses every byte of a
file once, also of one that is written slowly: an unfinished member is gone on with, and begun again
only if it turns out to be another. A new process measures again. Reading a range decompresses
everything before it: large files that grow are better not compressed. Memory: a chunk. Tests:
tests/connectors/files/test_gzip_members.py.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from reclock.connectors.files.failure import unfit
from reclock.connectors.files.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK: Final = 1 << 20
_GZIP: Final = 16 + zlib.MAX_WBITS


class Whole(NamedTuple):
    """The whole members: their size decompressed and in the file, and where their lines end."""

    size: int = 0
    raw: int = 0
    end: int = 0


class Members:
    """Decompresses a file from the member at ``raw`` on, and goes on when the file has grown."""

    def __init__(self, raw: int = 0) -> None:
        self.raw = raw
        """Where in the file this stands."""
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    def chunks(self, file: BinaryIO) -> Iterator[tuple[bytes, int | None]]:
        """Yield what is in the file from where this stands.

        With the last bytes of a member comes where the next one begins in the file, else None.
        """
        file.seek(self.raw)
        waiting = b""
        while waiting := waiting or file.read(_CHUNK):
            if not self._begun:  # between members there may be zeros, from block devices
                found = waiting.lstrip(b"\0")
                self.raw += len(waiting) - len(found)
                waiting = found
                self._begun = bool(found)
                if not found:
                    yield b"", self.raw
                    continue
            made = self._member.decompress(waiting, _CHUNK)
            ended = self._member.eof
            left = self._member.unused_data if ended else self._member.unconsumed_tail
            self.raw += len(waiting) - len(left)
            waiting = left
            if ended:
                self._member, self._begun = zlib.decompressobj(_GZIP), False
            yield made, self.raw if ended else None


def decompressed(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield what is in a file, from its beginning."""
    try:
        for made, _ in Members().chunks(file):
            yield made
    except zlib.error as error:
        raise _unfit(name, error) from None


class Progress:
    """How far a file was measured by this process."""

    def __init__(self, whole: Whole | None = None) -> None:
        self.whole = whole or Whole()
        self._members = Members(self.whole.raw)
        self._size, _, self._end = self.whole
        self._digest = ""

    def is_of(self, file: BinaryIO) -> bool:
        """Return whether a file begins with what was measured, unfinished members included."""
        return self._digest == fingerprint(file, self._members.raw)

    def go_on(self, file: BinaryIO) -> None:
        """Measure what has come."""
        for made, raw in self._members.chunks(file):
            last = made.rfind(b"\n")
            if last >= 0:
                self._end = self._size + last + 1
            self._size += len(made)
            if raw is not None:
                self.whole = Whole(self._size, raw, self._end)
        self._digest = fingerprint(file, self._members.raw)


def measured(file: BinaryIO, name: str, known: Progress | None) -> Progress:
    """Return what the whole members have, looking only at what is not ``known``."""
    if known is not None and known.is_of(file):
        progress = known
    else:  # perhaps the unfinished member was rewritten
        progress = Progress(known.whole if known else None)
    try:
        progress.go_on(file)
    except zlib.error as error:
        raise _unfit(name, error) from None
    return progress


def rest_of(file: BinaryIO, whole: Whole) -> int:
    """Return how many bytes follow the whole members."""
    return file.seek(0, os.SEEK_END) - whole.raw


def _unfit(name: str, error: zlib.error) -> Exception:
    return unfit(name, "is not what gzip writes", f"it cannot be decompressed: {error}")
