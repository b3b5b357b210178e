"""A sink's log in files: CDCv2 for stores without transactions.

Definition. Messages are lines, appended to one file, or to the last file of a directory, until that
is ``ROLL`` bytes long and the next one begins. Next to them, under a name that readers do not look
at, is the progress of the sink: the record that other sinks write to a consistency topic.
One ``send`` is, ▸ being failpoints::

      ▸ sink.begin.before
    cut      what a crash has left of a line that is not whole
    append   the messages
      ▸ sink.produce.after
    fsync    the file, and the directory if the file is new
      ▸ sink.progress.before
    write    the progress under another name, fsync
      ▸ sink.commit.before
    rename   it over the last one, fsync the directory
      ▸ sink.commit.after

Data and progress are two steps: what was appended after the last progress is appended again by the
next process, maybe in other messages. That is what CDCv2 is for: statements may be repeated and in
any order, and a time is there when all of it is. So a reader has the exact collection at every
moment, and no whole line is ever changed (P4).

The lock of the operating system on the progress keeps a second process out; it goes when its
holder does. Cost: two fsyncs a group of times.

Tests: tests/sinks/test_files.py, tests/export/test_file_sinks.py.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.files.listing import is_data
from reclock.connectors.files.root import is_within
from reclock.errors import InvalidValue, SinkRegressed, SinkStopped, SinkUnavailable
from reclock.failpoints import hit
from reclock.sinks.consistency import FrontierRecord, read
from reclock.sinks.failure import Retry, Stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from reclock.sinks.consistency import Record
    from reclock.sinks.log import Messages

ROLL: Final = 64 << 20
"""How large a file of a directory becomes before the next one begins, in bytes."""

_LASTING: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR}
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or a ``directory`` of them; with a ``root`` no link may lead out of that."""

    path: Path
    directory: bool
    root: str | None = None

    @property
    def home(self) -> Path:
        """The directory that has all of it."""
        return self.path if self.directory else self.path.parent

    @property
    def progress(self) -> Path:
        """Where progress is."""
        return self.home / (".progress" if self.directory else f".{self.path.name}.progress")

    def files(self) -> list[Path]:
        """Return the files that are there, in the order in which they were written."""
        if not self.directory:
            return [self.path] if self.path.exists() else []
        return sorted(self.home / entry.name for entry in self.home.iterdir() if _is_ours(entry))

    def refuse_links(self) -> None:
        """Refuse to go on if something that would be written is elsewhere than in the root."""
        if self.root is None:
            return
        written = [self.path, self.progress, self._beside(".lock"), self._beside(".tmp")]
        for path in (*written, *self.files()[-1:]):
            if not is_within(str(path), self.root):
                message = f'"{path}" leads out of the directory that the sink must stay in'
                detail = f"a link leads elsewhere than into {self.root}"
                hint = "remove the link"
                raise Stop(SinkStopped(message, code="42501", detail=detail, hint=hint))

    def _beside(self, suffix: str) -> Path:
        return self.progress.with_suffix(suffix)

    def prepare(self) -> None:
        """Make the directory, if there is none; refuse what cannot be one, or has no place."""
        try:
            if self.directory:
                self.path.mkdir(parents=True, exist_ok=True)
            else:
                self.path.open("ab").close()
        except OSError as error:
            message = f'a sink cannot write to "{self.path}"'
            hint = "name a place where reclock may write"
            raise InvalidValue(message, detail=os.strerror(error.errno or 0), hint=hint) from None

    def is_used(self) -> bool:
        """Return whether output is there already."""
        if self.directory:
            return self.progress.exists() or any(is_data(e.name) for e in self.home.iterdir())
        return self.progress.exists() or any(file.stat().st_size for file in self.files())

    def peek(self) -> FrontierRecord | None:
        """Return the progress that is there."""
        try:
            key, _, value = self.progress.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        found = read(key, value, f'file "{self.progress}"')
        return found if isinstance(found, FrontierRecord) else None


def _is_ours(entry: Path) -> bool:
    return is_data(entry.name) and entry.suffix == ".json" and entry.stem.isdecimal()


class FileLog:
    """An ``Unfenced`` producer of files."""

    def __init__(self, place: Place, sink: str) -> None:
        self._place = place
        self._sink = sink

    def fence(self) -> FencedFiles:
        """Keep every other process out."""
        with _explained(self._place):
            self._place.refuse_links()
            lock = os.open(self._place.progress.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            message = f'another process writes to "{self._place.path}"'
            raise Retry(SinkUnavailable(message, hint="it is tried again by itself")) from None
        return FencedFiles(self._place, self._sink, lock)


class FencedFiles:
    """A ``Fenced`` producer of files; made by ``FileLog.fence`` alone."""

    def __init__(self, place: Place, sink: str, lock: int) -> None:
        self._place = place
        self._sink = sink
        self._lock = lock

    def progress(self) -> FrontierRecord | None:
        """Return the last frontier of this sink; None if it never wrote one, or it is lost."""
        with _explained(self._place):
            found = self._place.peek()
        if found is not None and found.sink != self._sink:
            message = f'"{self._place.path}" has the output of sink "{found.sink}"'
            raise Stop(SinkRegressed(message, hint="each sink needs a place of its own"))
        return found

    def is_emptied(self) -> bool:
        """Return whether progress is gone, and its data is not: it may be said again."""
        with _explained(self._place):
            return self._place.peek() is None and self._place.is_used()

    def last_time(self) -> int | None:
        """Return None: whatever the data has, it may be said again."""
        return None

    def records(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Refuse: files cannot be taken over."""
        message = "a sink into files cannot be recovered"
        raise InvalidValue(message, hint="name another place: it begins with a snapshot")

    def send(self, chunks: Iterable[Messages], records: Sequence[Record]) -> None:
        """Append messages, then the last of ``records``, which is the frontier."""
        with _explained(self._place):
            hit("sink.begin.before")
            self._place.refuse_links()
            path, is_new = self._current()
            with path.open("ab") as file:
                for chunk in chunks:
                    file.write(lines(chunk.values))
                file.flush()
                hit("sink.produce.after")
                os.fsync(file.fileno())
            if is_new:
                _fsync(self._place.home)
            hit("sink.progress.before")
            made = self._place.progress.with_suffix(".tmp")
            with made.open("wb") as file:
                file.write(records[-1].key + b"\n" + records[-1].value)
                file.flush()
                os.fsync(file.fileno())
            hit("sink.commit.before")
            made.replace(self._place.progress)
            _fsync(self._place.home)
            hit("sink.commit.after")

    def close(self) -> None:
        """Let others in."""
        with suppress(OSError):
            os.close(self._lock)

    def _current(self) -> tuple[Path, bool]:
        """Return the file to append to, which ends with a whole line, and whether it is new."""
        files = self._place.files()
        if files:
            with files[-1].open("r+b") as file:
                size = cut(file)
            if not self._place.directory or size < ROLL:
                return files[-1], False
        if not self._place.directory:
            return self._place.path, True
        number = int(files[-1].stem) + 1 if files else 1
        return self._place.home / f"{number:09}.json", True


def lines(values: pa.Array) -> bytes:
    r"""Return messages as lines; a newline between the words of a message is white space there.

    >>> lines(pa.array([b'{"a":1}', b'{"a":\n2}'], pa.binary()))
    b'{"a":1}\n{"a": 2}\n'
    """
    texts = values.cast(pa.large_binary())
    if pc.any(pc.match_substring(texts, "\n")).as_py():
        texts = pc.replace_substring(texts, b"\n", b" ")
    return b"".join(text + b"\n" for text in texts.to_pylist())


def cut(file: BinaryIO) -> int:
    """Cut off what follows the last newline; return how long the file is then."""
    end = whole = file.seek(0, os.SEEK_END)
    while whole:
        begin = max(0, whole - _BLOCK)
        file.seek(begin)
        found = file.read(whole - begin).rfind(b"\n")
        if found >= 0:
            whole = begin + found + 1
            break
        whole = begin
    if whole < end:
        file.truncate(whole)
        file.flush()
        os.fsync(file.fileno())
    return whole


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Say what an error of the file system means for a sink."""
    try:
        yield
    except OSError as error:
        _raise(place, error)


def _raise(place: Place, error: OSError) -> NoReturn:
    said = error.strerror or str(error)
    if error.errno in _LASTING:
        message = f'the sink cannot write to "{place.path}" any more'
        hint = "put back what was there, with the right to write, or drop the sink"
        raise Stop(SinkStopped(message, detail=said, hint=hint)) from None
    message = f'"{place.path}" did not take what a sink writes'
    hint = "make room; it is tried again by itself"
    raise Retry(SinkUnavailable(message, detail=said, hint=hint)) from None
