"""Compressed files: one gzip member after another, of which the last may not be whole yet.

What a compressed file has is what its whole members have; one that is still being written
does not exist yet. Members may be added: they go on where the last one ended. Positions are
those of the bytes that were compressed.

Cost: compressed bytes have no places that one could go to. Measuring a file decompresses it
once, then only the members that were added; reading a range decompresses everything before
it. Large files that grow are better not compressed. Memory: a chunk.
Tests: tests/connectors/files/test_gzip_members.py.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from reclock.connectors.files.failure import unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK: Final = 1 << 20
_GZIP: Final = 16 + zlib.MAX_WBITS


class Whole(NamedTuple):
    """The whole members: their size decompressed and in the file, and where lines end."""

    size: int
    raw: int
    end: int
    rest: int
    """How many bytes follow in the file, of a member that is not whole."""


def decompressed(file: BinaryIO, raw: int, name: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield what is in the file from the member at ``raw`` on.

    With the last bytes of a member comes where the next one begins in the file, else None.
    """
    file.seek(raw)
    waiting = b""
    member = zlib.decompressobj(_GZIP)
    begun = False
    while waiting := waiting or file.read(_CHUNK):
        if not begun:
            padding = len(waiting) - len(waiting.lstrip(b"\0"))
            raw, waiting = raw + padding, waiting[padding:]
            if not waiting:
                yield b"", raw
                continue
            begun = True
        try:
            made = member.decompress(waiting, _CHUNK)
        except zlib.error as error:
            detail = f"the gzip member near byte {raw} cannot be decompressed: {error}"
            raise unfit(name, "is not what gzip writes", detail) from None
        left = member.unused_data if member.eof else member.unconsumed_tail
        raw, waiting = raw + len(waiting) - len(left), left
        yield made, raw if member.eof else None
        if member.eof:
            member, begun = zlib.decompressobj(_GZIP), False


def measured(file: BinaryIO, name: str, known: Whole | None) -> Whole:
    """Return what the whole members have, looking only at what is not ``known``."""
    whole = known or Whole(0, 0, 0, 0)
    size, end = whole.size, whole.end
    for made, raw in decompressed(file, whole.raw, name):
        last = made.rfind(b"\n")
        if last >= 0:
            end = size + last + 1
        size += len(made)
        if raw is not None:
            whole = Whole(size, raw, end, 0)
    return whole._replace(rest=file.seek(0, 2) - whole.raw)
