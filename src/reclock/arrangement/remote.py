"""Files on any file system that pyarrow has: read by pieces, with local copies of those.

A run is read by its table and the batches that are wanted (``run``). Each is a request for a range
of its file, unless a copy is on this machine (``blocks``). Requests for pieces that will be wanted
go side by side, at most ``READERS`` at a time; pieces that lie together are one request, large
ones are several. A file costs one request more when it is opened, for its size.

What is written is a local file first. It is uploaded under its name, in parts if it is large,
and appears whole, where the file system has that; else it is uploaded aside and moved. It is not
uploaded again where it is: a task that is tried twice does not touch what the first try made.

A store travels to tasks with what its file system is made of, which has no secrets: an address may
not have any (``engine.place``). Credentials are each machine's own, and so are copies
(``nearby``). A process has one store, however often it is sent there.

``TRAFFIC`` counts what this process asked for. Tests: tests/arrangement/test_remote.py.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
from pyarrow import fs

from reclock.arrangement.blocks import Blocks, map_file
from reclock.arrangement.file import Mapped, Place
from reclock.arrangement.kept import Kept
from reclock.arrangement.nearby import Nearby
from reclock.arrangement.remote_errors import patiently
from reclock.arrangement.store import check_name, scratch_in, storage_errors
from reclock.errors import StorageError
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

READERS: Final = 8
REQUEST_BYTES: Final = 8 << 20
"""What is larger is read by several requests; pieces that lie together by one up to here."""

_READY: Final = 64
"""So many pieces that were read ahead wait at most for who asked, if another came before."""

_UPLOAD_IN_PARTS: Final = 8 << 20
_PUTS_WHOLE: Final = frozenset({"s3", "gcs", "abfs"})
"""File systems on which a file appears when it is closed, whole."""


@dataclass
class Traffic:
    """What this process read: requests and bytes from afar, bytes of local copies."""

    requests: int = 0
    remote_bytes: int = 0
    copied_bytes: int = 0
    uploaded_bytes: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def add(
        self, *, requests: int = 0, remote: int = 0, copied: int = 0, uploaded: int = 0
    ) -> None:
        """Count."""
        with self._lock:
            self.requests += requests
            self.remote_bytes += remote
            self.copied_bytes += copied
            self.uploaded_bytes += uploaded


TRAFFIC: Final = Traffic()


@dataclass(frozen=True)
class RemoteStore:
    """Files under a prefix of a pyarrow file system."""

    filesystem: fs.FileSystem = field(hash=False)
    prefix: str
    nearby: Nearby

    batch_share: ClassVar[int] = 64
    openers: ClassVar[int] = READERS

    def __reduce__(self) -> tuple[Any, ...]:
        made = pickle.dumps(self.filesystem)
        return received, (made, self.prefix, self.nearby.sent(self._database))

    @cached_property
    def blocks(self) -> Blocks:
        """The copies on this machine."""
        return Blocks(self.nearby.directory, self.nearby.limit)

    @cached_property
    def kept(self) -> Kept:
        """What bounds the batches in use: they may hold a quarter of what copies may have."""
        return Kept(self.nearby.limit // 4)

    def scratch(self, stem: str) -> Path:
        """Return a new empty file next to the copies, with a hidden name."""
        return scratch_in(self.nearby.directory, stem)

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Upload whole, or upload and move; then keep the file as a copy."""
        del durable  # what is uploaded is
        final = self.path(check_name(name))
        hit("arrangement.segment.before_rename")
        with storage_errors("write", name):
            try:
                data = map_file(file)
            except FileNotFoundError as cause:
                message = f"could not write segment {name}: its local file is gone"
                hint = "leave files of the cache alone while they are written; it is tried again"
                raise StorageError(message, detail=str(cause), hint=hint) from cause
        patiently("write", final, lambda: self._upload(data, file.name, final))
        TRAFFIC.add(uploaded=len(data))
        self.blocks.adopt(file, name)
        hit("arrangement.segment.after_rename")

    def file(self, name: str) -> FarFile:
        """Return a file; it is looked for when it is first read."""
        return FarFile(self, name)

    def names(self) -> list[str]:
        """List the prefix."""
        selector = fs.FileSelector(self.prefix, allow_not_found=True)
        found = patiently("list", self.prefix, lambda: self.filesystem.get_file_info(selector))
        return sorted(info.base_name for info in found)

    def remove(self, name: str) -> None:
        """Delete the file and the copy of all of it; copies of pieces go by their age."""

        def delete() -> None:
            with suppress(FileNotFoundError):
                self.filesystem.delete_file(self.path(name))

        self.blocks.drop(name)
        patiently("remove", self.path(name), delete)

    def require(self, names: Iterable[str]) -> None:
        """Do nothing: there is one address, and it is theirs too."""

    def check(self) -> None:
        """Raise if there is no bucket, or it may not be looked at."""
        bucket = self.prefix.partition("/")[0]

        def look() -> None:
            if self.filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
                message = f"AWS Error NO_SUCH_BUCKET during HeadBucket operation: {bucket}"
                raise OSError(message)

        if self.filesystem.type_name == "s3":
            patiently("open", bucket, look)

    def path(self, name: str) -> str:
        """Return where a file is."""
        return f"{self.prefix}/{name}"

    @property
    def _database(self) -> str:
        return self.prefix.rpartition("/")[2]

    def _upload(self, data: pa.Buffer, aside: str, final: str) -> None:
        """Make a file of bytes, whole or not at all."""
        if self.filesystem.type_name in _PUTS_WHOLE:
            if len(data) > _UPLOAD_IN_PARTS and self._has(final, len(data)):
                return
            self._put(data, final)
            return
        self.filesystem.create_dir(self.prefix, recursive=True)
        self._put(data, self.path(aside))
        self.filesystem.move(self.path(aside), final)

    def _put(self, data: pa.Buffer, path: str) -> None:
        with self.filesystem.open_output_stream(path) as out:
            out.write(data)  # all at once: nothing comes between its parts

    def _has(self, path: str, size: int) -> bool:
        info = self.filesystem.get_file_info(path)
        return bool(info.type == fs.FileType.File and info.size == size)


class FarFile:
    """A file of a remote store."""

    def __init__(self, store: RemoteStore, name: str) -> None:
        self._store = store
        self._name = name
        self._path = store.path(name)
        self._ready: dict[Place, pa.Buffer] = {}
        self._lock = Lock()
        self._open: Any = None

    @property
    def kept(self) -> Kept:
        """What bounds the pieces that stay in use."""
        return self._store.kept

    def piece(self, place: Place) -> pa.Buffer:
        """Return the bytes of a place: read ahead, of a copy, or from afar."""
        with self._lock:
            ready = self._ready.pop(place, None)
        if ready is not None:
            return ready
        found = self._copy(place)
        return self._read(place) if found is None else found

    def ahead(self, places: Sequence[Place]) -> None:
        """Read what no copy has, neighbours together, several requests at a time."""
        if len(self._ready) > _READY:
            self._ready.clear()
        wanted = []
        for place in places:
            found = self._copy(place)
            if found is None:
                wanted.append(place)
            else:
                self._ready[place] = found
        spans = _spans(wanted)
        cuts = [_cuts(span) for span in spans]
        parts = iter(self._requested([cut for some in cuts for cut in some]))
        for span, some in zip(spans, cuts, strict=True):
            self._ready |= self._copied(span, [next(parts) for _ in some])

    def again(self, place: Place) -> pa.Buffer | None:
        """Forget copies, and read from afar."""
        self._store.blocks.drop(self._name)
        self._store.blocks.drop(self._name, place)
        return self._read(place)

    def whole(self) -> pa.Buffer:
        """Return all bytes."""
        found = self._store.blocks.mapped(self._name)
        if found is not None:
            return found
        size = patiently("read", self._path, lambda: self._handle().size())
        parts = self._requested(_cuts([Place(0, size)]))
        return parts[0] if len(parts) == 1 else pa.py_buffer(b"".join(map(bytes, parts)))

    def _copy(self, place: Place) -> pa.Buffer | None:
        """Return a piece from a copy on this machine."""
        blocks = self._store.blocks
        found = blocks.piece(self._name, place)
        if found is None:
            whole = blocks.mapped(self._name)
            if whole is None or len(whole) < place.offset + place.length:
                return None
            found = whole.slice(*place)
        TRAFFIC.add(copied=place.length)
        return found

    def _read(self, place: Place) -> pa.Buffer:
        """Read a piece from afar, and keep a copy."""
        return self._copied([place], self._requested(_cuts([place])))[place]

    def _copied(self, span: Sequence[Place], parts: Sequence[pa.Buffer]) -> dict[Place, pa.Buffer]:
        """Keep copies of pieces that lie together and came in parts; return them."""
        blocks = self._store.blocks
        if sum(map(len, parts)) < sum(place.length for place in span):  # the file ends before
            read = pa.py_buffer(b"".join(map(bytes, parts)))
            return {place: Mapped(read).piece(_behind(place, span[0])) for place in span}
        if len(span) == 1:
            return {span[0]: blocks.add(self._name, span[0], parts)}
        (read,) = parts
        return {
            place: blocks.add(self._name, place, [read.slice(*_behind(place, span[0]))])
            for place in span
        }

    def _requested(self, places: Sequence[Place]) -> list[pa.Buffer]:
        """Return the bytes of places, each by a request of its own."""
        if len(places) == 1:
            return [self._request(places[0])]
        return list(_requests().map(self._request, places))

    def _request(self, place: Place) -> pa.Buffer:
        data = patiently("read", self._path, lambda: self._asked(place))
        TRAFFIC.add(requests=1, remote=len(data))
        return pa.py_buffer(data)

    def _asked(self, place: Place) -> bytes:
        try:
            return bytes(self._handle().read_at(place.length, place.offset))
        except FileNotFoundError:
            raise
        except OSError:
            # Of a file that was removed since, it says anything.
            info = self._store.filesystem.get_file_info(self._path)
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(self._path) from None
            raise

    def _handle(self) -> Any:
        with self._lock:
            if self._open is None:
                self._open = self._store.filesystem.open_input_file(self._path)
            return self._open


def _spans(places: Sequence[Place]) -> list[list[Place]]:
    """Return places in order, those that follow one another together up to a request's size.

    >>> _spans([Place(0, 10), Place(20, 5), Place(10, 10)])
    [[Place(offset=0, length=10), Place(offset=10, length=10), Place(offset=20, length=5)]]
    """
    found: list[list[Place]] = []
    for place in sorted(set(places)):
        if found:
            first, last = found[-1][0], found[-1][-1]
            end = place.offset + place.length
            if last.offset + last.length == place.offset and end - first.offset <= REQUEST_BYTES:
                found[-1].append(place)
                continue
        found.append([place])
    return found


def _cuts(span: Sequence[Place]) -> list[Place]:
    """Return what to ask for, for pieces that lie together.

    >>> [cut.length >> 20 for cut in _cuts([Place(0, 20 << 20)])]
    [8, 8, 4]
    """
    end = span[-1].offset + span[-1].length
    starts = range(span[0].offset, end, REQUEST_BYTES)
    return [Place(at, min(REQUEST_BYTES, end - at)) for at in starts]


def _behind(place: Place, first: Place) -> Place:
    return Place(place.offset - first.offset, place.length)


@lru_cache(maxsize=64)
def received(filesystem: bytes, prefix: str, nearby: tuple[Any, ...]) -> RemoteStore:
    """Return the store that another process sent: one, however often."""
    return RemoteStore(pickle.loads(filesystem), prefix, Nearby.received(*nearby))


@cache
def _requests() -> ThreadPoolExecutor:
    """Return the threads that wait for requests, and do nothing else."""
    return ThreadPoolExecutor(READERS, "reclock-read")
