"""An open file of a store: its bytes by place, from a map or from far away.

``piece`` gives bytes at a place, fewer at the end of the file. A file that is *near* is mapped: a
piece costs nothing. One that is *far* costs a request for each piece that no local copy has, so its
reader says before what it will want (``ahead``): requests then go side by side, and neighbours
in one. A local copy may be damaged by a crash of the machine: who finds that the bytes are not
what they should be asks for them ``again``.

Tests: tests/arrangement/test_store.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.arrangement.kept import Kept


class Place(NamedTuple):
    """Where bytes are in a file."""

    offset: int
    length: int


class File(Protocol):
    """An immutable file that is open."""

    @property
    def kept(self) -> Kept | None:
        """What bounds the pieces that stay in use; None if they take no space of their own."""
        ...

    def piece(self, place: Place) -> pa.Buffer:
        """Return the bytes of a place, fewer if the file ends before."""
        ...

    def ahead(self, places: Sequence[Place]) -> None:
        """Get pieces that will be asked for next."""
        ...

    def again(self, place: Place) -> pa.Buffer | None:
        """Return bytes that were wrong from their source; None if that is where they are from."""
        ...

    def whole(self) -> pa.Buffer:
        """Return all bytes."""
        ...


@dataclass(frozen=True)
class Mapped:
    """A file that is mapped, or bytes in memory."""

    data: pa.Buffer
    kept: None = None

    def piece(self, place: Place) -> pa.Buffer:
        """Return a slice."""
        start = min(place.offset, len(self.data))
        return self.data.slice(start, min(place.length, len(self.data) - start))

    def ahead(self, places: Sequence[Place]) -> None:
        """Do nothing: all is there."""

    def again(self, place: Place) -> pa.Buffer | None:
        """Return nothing: there is no other copy."""
        del place
        return None

    def whole(self) -> pa.Buffer:
        """Return all bytes."""
        return self.data
