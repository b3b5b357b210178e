"""Files as a source: what is bound, what has come, and what must never happen.

The frontier has every file at the end of its last whole record. A file is a part from its
first record on; files that come later are new parts. What was bound before says what files
may be now; everything else is a lasting error that names the file and the offsets:

==============================================  =====================================
a bound file is gone                            ``SourceRegressed``
a file ends before what is bound                ``SourceRegressed``: truncated
bytes that were there are others                ``SourceRegressed``: changed
a file is not what it was declared to be        ``SourceStopped``
==============================================  =====================================

With ``tail`` files grow, and a last line without a newline waits for it. Without, the files
that are there when the source is created are complete as they are: their ends and fingerprints
are kept with the source (``facts``), a last line needs no newline, and what is added later,
bytes or files, is not looked at. The frontier is the same ever after; it is not closed, because
the source's time goes on.

What this process has seen of a file it knows again by ``fingerprint``; ``verify`` after reading
looks at every file once more. A file of which nothing is bound may do as it likes: if it changes
while it is read that is ``SourceUnavailable``, and it is read again. A new process knows only what
is bound: that a tailed file is shorter than that, it sees; that one was rewritten in between, at
least as long, it does not.

Cost: a probe and a verify are a ``stat`` for each file, and a look into those that changed.
Tests: tests/connectors/files/test_file_source.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, NamedTuple, Self

from reclock.connectors.files.content import Measure, Stretch, bounded
from reclock.connectors.files.failure import changed, gone, shortened, truncated, unavailable
from reclock.connectors.files.fingerprint import Identity, fingerprint
from reclock.connectors.files.listing import Directory, OneFile
from reclock.connectors.files.root import no_link, real_path
from reclock.connectors.spans import spans_of
from reclock.errors import NewerFormat, SourceRegressed, SourceUnavailable
from reclock.time.position import FilePosition, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from reclock.connectors.files.content import Content
    from reclock.connectors.files.listing import Listing
    from reclock.remap.batch import Range
    from reclock.time.antichain import Antichain

VERSION: Final = 2
"""Of the facts that are kept with a source: 2 has a ``root``, if there is one; 1 never has."""


class _Seen(NamedTuple):
    """What a file was when it was looked into; without an identity it has to be looked at."""

    identity: Identity | None
    measure: Measure
    digest: str


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads exact ranges of files; ``ends`` are those of files that are complete.

    With ``seen``, what files were where they were probed, it refuses others at the same path.
    """

    listing: Listing
    content: Content
    ends: Mapping[str, int] | None = None
    seen: Mapping[str, _Seen] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        return self.content.schema

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``ranges``: those that begin there."""
        return bounded(self._pieces(ranges))

    def grain(self, part: int | str) -> int | None:
        """Return how many positions a record of a file has, about."""
        return self.content.grain(str(part))

    def _pieces(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        for part, start, stop in spans_of(ranges):
            name = str(part)
            end = None if self.ends is None else self.ends[name]
            with _opened(self.listing, name, start) as file:
                if self.seen is not None:
                    _check(file, name, self.seen[name])
                yield from self.content.pieces(file, Stretch(name, start, stop, end))


class FileSource:
    """``FROM FILE``: one file, known by its base name."""

    _LISTING: ClassVar[type[OneFile | Directory]] = OneFile

    def __init__(
        self, listing: Listing, content: Content, complete: Mapping[str, _Seen] | None = None
    ) -> None:
        self._listing = listing
        self._content = content
        self._complete = complete
        self._seen: dict[str, _Seen] = dict(complete or {})
        self._bound: dict[str, int] = {}

    @classmethod
    def create(
        cls, path: str, content: Content, *, tail: bool = True, root: str | None = None
    ) -> tuple[Self, Antichain[FilePosition]]:
        """Return the source of a path, and the origin at which it begins.

        With a ``root`` no link leads out of that directory.
        """
        listing = cls._LISTING(os.path.abspath(path), root)
        listing.check()
        complete = None if tail else dict(_complete(listing, content))
        return cls(listing, content, complete), FilePosition.frontier({})

    @classmethod
    def open(cls, content: Content, facts: Mapping[str, Any]) -> Self:
        """Return a source that was created before, with the ``facts`` it had then."""
        if facts.get("version") not in range(1, VERSION + 1):
            message = "this source was created by another version of reclock"
            detail = f"its facts have version {facts.get('version')!r}; this reclock has {VERSION}"
            raise NewerFormat(message, detail=detail, hint="upgrade reclock and try again")
        complete = None
        if facts["ends"] is not None:
            ends = facts["ends"].items()
            complete = {name: _Seen(None, Measure(*at), digest) for name, (*at, digest) in ends}
        return cls(cls._LISTING(facts["path"], facts.get("root")), content, complete)

    @property
    def facts(self) -> dict[str, Any]:
        """What must be kept with the source to open it again: the path, and complete ends."""
        ends = None
        if self._complete is not None:
            seen = self._complete.items()
            ends = {name: [at.measure.end, at.measure.raw, at.digest] for name, at in seen}
        made = {"version": 1, "path": self._listing.path, "ends": ends}
        root = self._listing.root
        return made if root is None else made | {"version": VERSION, "root": root}

    @property
    def reader(self) -> FileReader:
        """What reads the files, here or in another process that has them at the same path."""
        ends = None if self._complete is None else _ends(self._complete)
        return FileReader(self._listing, self._content, ends)

    @property
    def elsewhere(self) -> FileReader:
        """The same for processes that may have other files, or none, at the same path."""
        seen = {name: _Seen(None, Measure(*at.measure[:2]), at.digest)
                for name, at in self._seen.items()}  # fmt: skip
        return replace(self.reader, seen=seen)

    def probe(self, bound: Antichain[FilePosition]) -> Antichain[FilePosition]:
        """Return the end of the last whole record of each file."""
        self._bound = offsets_of(bound)  # type: ignore[assignment] # files have names
        if self._complete is None:
            self._look()
        else:
            self.verify()
        return FilePosition.frontier({**dict.fromkeys(self._bound, 0), **_ends(self._seen)})

    def verify(self) -> None:
        """Refuse if a file is not the one that was probed any more."""
        for name, seen in self._seen.items():
            identity = _identity(self._listing.path_of(name))
            if not seen.measure.raw or (identity is not None and identity == seen.identity):
                continue
            try:
                with _opened(self._listing, name, seen.measure.end) as file:
                    _check(file, name, seen)
            except SourceRegressed as error:
                if self._complete is not None or self._bound.get(name):
                    raise
                raise SourceUnavailable(error.message, detail=error.detail) from None
            if self._complete is not None:
                self._seen[name] = seen._replace(identity=identity)

    def _look(self) -> None:
        """Look at all files that are there now."""
        names = self._listing.names()
        for name in sorted(self._bound.keys() - set(names)):
            if self._bound[name]:
                raise gone(name, self._bound[name])
        if not names and not os.path.exists(self._listing.path):
            message = f'"{self._listing.path}" does not exist'
            raise SourceUnavailable(message, code="58P01")
        self._seen = {name: self._looked_at(name, self._bound.get(name, 0)) for name in names}

    def _looked_at(self, name: str, bound: int) -> _Seen:
        before = self._seen.get(name)
        if before is not None and before.identity == _identity(self._listing.path_of(name)):
            seen = before
        else:
            with _opened(self._listing, name, bound) as file:
                seen = self._looked_into(file, name, bound, before)
        if seen.measure.end < bound:
            raise truncated(name, bound, seen.measure.end)
        return seen

    def _looked_into(self, file: BinaryIO, name: str, bound: int, before: _Seen | None) -> _Seen:
        if before is not None:
            try:
                _check(file, name, before)
            except SourceRegressed:
                if bound:
                    raise
                before = None
        identity = Identity.of(os.fstat(file.fileno()))
        known = None if before is None else before.measure
        measure = self._content.measure(file, name, identity.size, known)
        return _Seen(identity, measure, fingerprint(file, measure.raw))


class DirectorySource(FileSource):
    """``FROM DIRECTORY``: its files, known by their names; new files are new parts."""

    _LISTING = Directory


def _complete(listing: Listing, content: Content) -> Iterator[tuple[str, _Seen]]:
    """Yield the files that are there, each complete as it is."""
    for name in listing.names():
        with _opened(listing, name, 0) as file:
            identity = Identity.of(os.fstat(file.fileno()))
            measure = content.measure_complete(file, name, identity.size)
            yield name, _Seen(identity, measure, fingerprint(file, measure.raw))


def _ends(seen: Mapping[str, _Seen]) -> dict[str, int]:
    """Return the end of every file that has records."""
    return {name: each.measure.end for name, each in seen.items() if each.measure.end}


def _identity(path: str) -> Identity | None:
    """Return what a file is; None if it is not there."""
    try:
        return Identity.of(os.stat(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unavailable(path, error) from None


def _opened(listing: Listing, name: str, begun: int) -> BinaryIO:
    """Return a file to look into; one that is gone is an error for ever if it was ``begun``."""
    path = listing.path_of(name)
    root = listing.root
    try:
        return open(real_path(path, root), "rb", opener=no_link if root is not None else None)
    except FileNotFoundError as error:
        raise (gone(name, begun) if begun else unavailable(path, error)) from None
    except OSError as error:
        raise unavailable(path, error) from None


def _check(file: BinaryIO, name: str, seen: _Seen) -> None:
    """Refuse a file that does not begin with what was seen of it."""
    size = os.fstat(file.fileno()).st_size
    if size < seen.measure.raw:
        raise shortened(name, seen.measure.end, seen.measure.raw, size)
    if fingerprint(file, seen.measure.raw) != seen.digest:
        raise changed(name, seen.measure.end)
