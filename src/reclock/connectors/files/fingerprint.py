"""Fingerprints of files: the identity, and the first and last bytes that were read.

Definition. The *fingerprint* of a file at length n is a digest of the first 4 KiB and of the last 4
KiB before n. As long as device, inode, size and time of change stay the same, the file is not
read; otherwise the fingerprint at the length that was read must be the same. It is, in a file that
only grew, even if it was copied elsewhere; it is not in one that was truncated and rewritten.

Without reading everything again, some changes cannot be seen: bytes in the middle of a file,
farther than 4 KiB from both ends; changes that restore the size and the time of change; and, of
changes made while reclock was not running, all but those that shorten the file.

Cost: a ``stat`` for a file that did not change, 8 KiB read for one that did.
Tests: tests/connectors/files/test_file_source.py.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    import os
    from typing import Self

_SPAN: Final = 4096


class Identity(NamedTuple):
    """What ``stat`` says of a file; equal identities are taken for equal bytes."""

    device: int
    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Return the identity of a file that was looked at."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def fingerprint(file: BinaryIO, length: int) -> str:
    """Return the digest of the ends of the first ``length`` bytes."""
    digest = blake2b(length.to_bytes(8, "little"), digest_size=16)
    for start in (0, max(0, length - _SPAN)):
        file.seek(start)
        digest.update(file.read(min(_SPAN, length - start)))
    return digest.hexdigest()
