"""The files of a source, and their names.

``OneFile``: the file, by its base name. ``Directory``: the regular files in it, by their
names; symbolic links are followed, subdirectories are not entered. Names are ignored that
writers and file systems use for what is not data (yet)::

    .hidden    _SUCCESS, _metadata, …    *.tmp    *.crc

so a program that writes a file in several steps, and wants it read only when it is whole, writes it
under such a name and renames it. Paths are absolute from the beginning: a source is the same
wherever reclock is started. With a ``root``, links may lead only into that (``root``). Tests:
tests/connectors/files/test_listing.py.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Final, Protocol

from reclock.connectors.files.failure import unavailable
from reclock.errors import InvalidValue, SourceUnavailable

_IGNORED_STARTS: Final = (".", "_")
_IGNORED_ENDS: Final = (".tmp", ".crc")


class Listing(Protocol):
    """The files of a source."""

    @property
    def path(self) -> str:
        """Where they are, absolute."""
        ...

    def check(self) -> None:
        """Refuse a path that cannot be one of this kind."""
        ...

    def names(self) -> list[str]:
        """Return the names of the files that are there now, sorted."""
        ...

    @property
    def root(self) -> str | None:
        """Where links may lead; None is anywhere."""
        ...

    def path_of(self, name: str) -> str:
        """Return where the file of this name is."""
        ...


@dataclass(frozen=True, slots=True)
class OneFile:
    """A single file."""

    path: str
    root: str | None = None

    def check(self) -> None:
        """Refuse what is not a file."""
        mode = _mode(self.path)
        if stat.S_ISDIR(mode):
            message = f'"{self.path}" is a directory'
            raise InvalidValue(message, hint=f"write FROM DIRECTORY '{self.path}'")
        if not stat.S_ISREG(mode):
            message = f'"{self.path}" is not a regular file'
            raise InvalidValue(message, hint="what was read must be there to be read again")

    def names(self) -> list[str]:
        """Return the one name, if the file is there."""
        return [os.path.basename(self.path)] if os.path.isfile(self.path) else []

    def path_of(self, name: str) -> str:
        """Return the path."""
        return self.path


@dataclass(frozen=True, slots=True)
class Directory:
    """The files of a directory."""

    path: str
    root: str | None = None

    def check(self) -> None:
        """Refuse what is not a directory."""
        if not stat.S_ISDIR(_mode(self.path)):
            message = f'"{self.path}" is not a directory'
            raise InvalidValue(message, hint=f"write FROM FILE '{self.path}'")

    def names(self) -> list[str]:
        """Return the names of the files that are data; none if the directory is gone."""
        try:
            with os.scandir(self.path) as entries:
                found = sorted(e.name for e in entries if is_data(e.name) and e.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unavailable(self.path, error) from None
        for name in found:
            try:
                name.encode()
            except UnicodeEncodeError:
                message = f'"{self.path}" has a file whose name is not UTF-8'
                detail = f"it is {os.fsencode(name)!r}"
                raise SourceUnavailable(message, detail=detail, hint="rename the file") from None
        return found

    def path_of(self, name: str) -> str:
        """Return where the file is."""
        return os.path.join(self.path, name)


def is_data(name: str) -> bool:
    """Return whether a file of a directory is read.

    >>> [is_data(n) for n in ("a.csv", "a.csv.tmp", ".a.csv.crc", "_SUCCESS", "a.csv.gz")]
    [True, False, False, False, True]
    """
    return not (name.startswith(_IGNORED_STARTS) or name.endswith(_IGNORED_ENDS))


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        message = f'"{path}" does not exist'
        hint = "create it first: an empty one will do"
        raise SourceUnavailable(message, code="58P01", hint=hint) from None
    except OSError as error:
        raise unavailable(path, error) from None
