"""What pools of connections say before somebody else uses one: forget what the last one did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deallocate:
    """``DEALLOCATE [PREPARE] name | ALL``; None is all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """``DISCARD ALL | PLANS | SEQUENCES | TEMP``: one of these words, in lower case."""

    what: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """``UNLISTEN channel | *``: nobody listens, so nothing is to be done."""
